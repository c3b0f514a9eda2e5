import logging
import os
from base64 import b64encode, urlsafe_b64encode
from json import dumps
from urllib.parse import quote, quote_plus

import pytest
from sideband.ops import OpError

pytestmark = pytest.mark.anyio

ORIGIN = "https://api.example.org"
CANARY = 'c4n4ry/+ "quoted" grüß\\z&=99'


@pytest.fixture(params=["memory", "encrypted", "keyring"])
def config(request):
    if request.param == "keyring":
        request.getfixturevalue("real_keyring")
    return {"backend": request.param}


def shapes():
    raw = CANARY.encode()
    return {
        CANARY, quote(CANARY, safe=""), quote_plus(CANARY), b64encode(raw).decode(), urlsafe_b64encode(raw).decode(),
        raw.hex(), dumps(CANARY)[1:-1], dumps(CANARY, ensure_ascii=False)[1:-1],
    }  # fmt: skip


async def test_value_appears_only_where_it_is_revealed(open_host, config, home, caplog, capfd):
    seen = []
    caplog.set_level(logging.DEBUG)
    observers = {"on_progress": seen.append, "on_effect": seen.append}

    async def run(host, op, params, **more):
        try:
            seen.append(await host.op(op, params, **observers, **more))
        except OpError as error:
            seen.append(error.as_dict())
            seen.append(repr(error))

    value = {"name": "canary", "value": CANARY, "origins": [ORIGIN]}
    probe = {"handle": "canary", "audience": ORIGIN}
    async with open_host(**config) as host:
        await run(host, "secrets.set", value | {"name": "NOT A NAME"})
        await run(host, "secrets.set", value | {"unknown": CANARY})
        await run(host, "secrets.set", value, grants=["secrets"])
        await run(host, "secrets.set", value)
        await run(host, "secrets.set", value, key="once")
        await run(host, "secrets.set", value, key="once")
        await run(host, "secrets.list", {})
        await run(host, "secrets.read", {"name": "canary"}, grants=["secrets:name=canary"])
    async with open_host(**config) as host:
        if config["backend"] == "memory":
            await run(host, "secrets.set", value)
        assert await host.op("secrets.read", {"name": "canary"}, key="read", **observers) == CANARY
        await run(host, "probe.send", probe)
        await run(host, "probe.fail", probe)
        await run(host, "probe.send", probe | {"audience": "https://evil.test"})
        await run(host, "secrets.delete", {"name": "canary"})
    written = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert written
    output = "".join(capfd.readouterr())
    for shape in shapes():
        assert shape not in repr(seen)
        assert shape not in caplog.text
        assert shape not in output
        assert [path for path, content in written.items() if shape.encode() in content] == []


@pytest.mark.usefixtures("cheap_scrypt")
async def test_passphrase_is_redacted(open_host, monkeypatch):
    monkeypatch.setenv("SIDEBAND_SECRETS_PASSPHRASE", "correct horse battery")
    async with open_host(backend="encrypted") as host:
        await host.op("secrets.set", {"name": "a", "value": "some value"})
        assert host.redactor.text(os.environ["SIDEBAND_SECRETS_PASSPHRASE"]) == "[redacted:SIDEBAND_SECRETS_PASSPHRASE]"
