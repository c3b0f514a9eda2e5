"""No secret is in a cassette, and what was redacted still matches in a replay, where no secret is known."""

import base64
import json
import urllib.parse

import pytest
from pydantic import BaseModel, Field
from sideband.ops import Level, OpContext, OpFailed, op
from sideband_cassettes import read_cassette

pytestmark = pytest.mark.anyio

SECRET = "s3cr3t/v4lue+of=my key"


class Name(BaseModel):
    name: str = ""
    password: str = ""


class Sent(BaseModel):
    headers: dict[str, object] = {}
    text: str = ""
    pin: str = Field(default="", repr=False)


@pytest.fixture
def plugins(family):
    @op("vault.read", level=Level.SAFE, reveals=True)
    async def read(params: Name, ctx: OpContext) -> str:
        """Reveal the secret."""
        ctx.protect(SECRET, "my-key")
        return SECRET

    @op("vault.careless", level=Level.SAFE, reveals=True)
    async def careless(params: Name, ctx: OpContext) -> dict:
        """Reveal a secret of which the plugin tells nothing."""
        return {"token": "unpr0tected-token", "raw": b"unpr0tected-bytes"}

    @op("net.send", level=Level.SAFE)
    async def send(params: Sent, ctx: OpContext) -> dict:
        """Send it, and return it."""
        await ctx.emit({"type": "text", "text": params.text})
        return {"echo": params.text, "headers": params.headers}

    @op("net.fail", level=Level.SAFE)
    async def fail(params: Sent, ctx: OpContext) -> str:
        """Fail with what was sent."""
        raise OpFailed(f"cannot send {params.text}")

    return family("vault", read, careless), family("net", send, fail)


def forms(secret):
    raw = secret.encode()
    return {
        "plain": secret,
        "url": urllib.parse.quote(secret, safe=""),
        "hex": raw.hex(),
        "base64": base64.b64encode(raw).decode(),
        "base64url": base64.urlsafe_b64encode(raw).decode(),
        "basic 1": base64.b64encode(b"u:" + raw).decode(),
        "basic 2": base64.b64encode(b"me:" + raw).decode(),
        "basic 3": base64.b64encode(b"user:" + raw).decode(),
        "json": json.dumps(secret),
    }


async def steps(host):
    secret = await host.op("vault.read", {"name": "my-key"})
    for form, text in forms(secret).items():
        await host.op("net.send", {"text": f"{form} {text}", "headers": {"Authorization": f"Basic {text}", form: text}})
        with pytest.raises(OpFailed):
            await host.op("net.fail", {"text": text})
    return secret


async def test_no_encoding_of_a_secret_is_in_the_file_and_each_is_replayed(hosting, plugins, file):
    async with hosting("record", *plugins) as host:
        assert await steps(host) == SECRET
    text = file.read_text()
    planted = {one.split(":")[-1] for one in forms(SECRET).values()}
    found = [one for one in planted if one in text or one.rstrip("=")[2:-2] in text]
    assert found == []
    assert "[redacted:my-key]" in text
    async with hosting("replay", *plugins) as host:
        assert await steps(host) == "[redacted:my-key]"


async def test_a_secret_that_becomes_known_later_is_not_in_the_file(hosting, plugins, file):
    async with hosting("record", *plugins) as host:
        await host.op("net.send", {"text": f"sent before {SECRET}"})
        host.redactor.protect(SECRET, "late")
    assert SECRET not in file.read_text()
    assert read_cassette(file).effects[0].params == {"text": "sent before [redacted:late]"}


async def test_value_that_an_op_reveals_is_a_secret_even_if_its_plugin_did_not_protect_it(hosting, plugins, file):
    async def use(host):
        found = await host.op("vault.careless", {})
        await host.op("net.send", {"text": f"with {found['token']} and {found['raw']!r}"})

    async with hosting("record", *plugins) as host:
        await use(host)
    assert "unpr0tected" not in file.read_text()
    assert base64.b64encode(b"unpr0tected-bytes").decode() not in file.read_text()
    async with hosting("replay", *plugins) as host:
        await use(host)


async def test_token_that_a_server_has_just_made_is_not_in_the_file(hosting, family, file):
    @op("net.login", level=Level.SAFE)
    async def login(params: Name, ctx: OpContext) -> dict:
        """Log in."""
        return {"access_token": "m1nted", "nested": [{"refresh_token": "m1nted"}], "user": "ada"}

    async with hosting("record", family("net", login)) as host:
        answer = await host.op("net.login", {})
    assert "m1nted" not in file.read_text()
    async with hosting("replay", family("net", login)) as host:
        assert await host.op("net.login", {}) == answer


async def test_secret_parameters_and_sensitive_keys_are_not_compared(hosting, plugins, file):
    async with hosting("record", *plugins) as host:
        await host.op("net.send", {"pin": "1234-first", "headers": {"X-Api-Key": "first-key"}})
    assert "first" not in file.read_text()
    async with hosting("replay", *plugins) as host:
        await host.op("net.send", {"pin": "1234-second", "headers": {"X-Api-Key": "second-key"}})
