"""Sources of secrets are opened before the first effect and record of a host."""

import json
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin, SidebandError
from sideband.ops import EgressRefused, Level, OpContext, SecretsClosed, op

pytestmark = pytest.mark.anyio
VALUE = "s3cr3t-value-of-a-source"
HOME = "https://home.example"
CONFIGURED = {"plugins": {"source": {}}}
REQUIRED = {**CONFIGURED, "policy": {"require_open_secrets": True}}


class Sending(BaseModel):
    content: str = ""
    audience: str | None = None


class Source:
    """A source whose ``opening`` runs when it is opened. An empty result means that it is open."""

    name = "source"

    def __init__(self, opening):
        self.closed = "it was not opened"
        self._opening = opening

    async def open(self, ctx):
        self.closed = await self._opening(ctx)


async def opens(ctx):
    ctx.protect(VALUE, "canary", origins=[HOME])


async def stays_closed(ctx):
    return "it needs a passphrase"


async def fails(ctx):
    raise SidebandError("the server does not respond")


async def crashes(ctx):
    raise RuntimeError(VALUE)


async def exits(ctx):
    raise SystemExit(VALUE)


def plugin(opening, **more):
    source = Source(opening)
    return Plugin("secrets", "source", SimpleNamespace(sideband_secret_sources=lambda: [source], source=source, **more))


@pytest.fixture
def mail(family):
    @op("mail.send", level=Level.RESTRICTED, record=["content"])
    async def send(params: Sending, ctx: OpContext) -> str:
        ctx.check_egress(params.audience, {"body": params.content})
        return params.content

    @op("mail.keep", level=Level.SAFE, record=["content"])
    async def keep(params: Sending, ctx: OpContext) -> str:
        return params.content

    return family("mail", send, keep)


@pytest.fixture
def lines(tmp_path):
    """Return a function that reads the lines of the ledger."""

    def read():
        files = sorted((tmp_path / "home" / "ledger").glob("*.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [{**line, **line.pop("content", {})} for line in lines]

    return read


async def test_value_of_a_source_is_known_to_the_first_effect(make_host, mail, lines):
    async with make_host(mail, plugin(opens), settings=CONFIGURED) as host:
        with pytest.raises(EgressRefused):
            await host.op("mail.send", {"content": VALUE})
        assert await host.op("mail.keep", {"content": VALUE}) == "[redacted:canary]"
        assert await host.op("mail.send", {"content": VALUE, "audience": HOME}) == "[redacted:canary]"
        with pytest.raises(SidebandError) as caught:
            await host.op(f"mail.{VALUE}", {VALUE: VALUE})
    assert VALUE not in str(caught.value)
    assert VALUE not in repr(lines())
    assert not any("secrets" in line for line in lines())


async def test_records_state_that_a_source_is_closed(make_host, mail, lines):
    source = plugin(stays_closed)
    async with make_host(mail, source, settings=CONFIGURED) as host:
        await host.op("mail.keep", {"content": "first"})
        source.value.source.closed = None
        await host.op("mail.keep", {"content": "second"})
    marks = [(line["kind"], line.get("secrets")) for line in lines() if line["kind"] in ("intent", "outcome")]
    assert marks == [("intent", "closed"), ("outcome", "closed"), ("intent", None), ("outcome", None)]


async def test_refused_dispatch_is_recorded_with_the_closed_source(make_host, mail, lines):
    async with make_host(mail, plugin(stays_closed), settings=CONFIGURED) as host:
        with pytest.raises(SidebandError):
            await host.op("mail.unknown", {})
    assert [line["secrets"] for line in lines() if line["kind"] == "outcome"] == ["closed"]


async def test_closed_source_does_not_prevent_sending_by_default(make_host, mail):
    async with make_host(mail, plugin(stays_closed), settings=CONFIGURED) as host:
        assert await host.op("mail.send", {"content": "hello"}) == "hello"


@pytest.mark.parametrize(
    ("opening", "reason"),
    [(stays_closed, "passphrase"), (fails, "not opened"), (crashes, "not opened"), (exits, "not opened")],
)
async def test_policy_refuses_to_send_data_while_a_source_is_closed(make_host, mail, opening, reason):
    source = plugin(opening)
    async with make_host(mail, source, settings=REQUIRED) as host:
        with pytest.raises(SecretsClosed, match=reason) as caught:
            await host.op("mail.send", {"content": "hello", "audience": HOME})
        assert (caught.value.code, caught.value.exit_code) == ("op.secrets", 3)
        assert VALUE not in str(caught.value)
        assert await host.op("mail.keep", {"content": "hello"}) == "hello"
        source.value.source.closed = None
        assert await host.op("mail.send", {"content": "hello"}) == "hello"


async def test_source_that_fails_without_being_closed_counts_as_closed(make_host, mail):
    source = plugin(fails)
    source.value.source.closed = None
    async with make_host(mail, source, settings=REQUIRED) as host:
        with pytest.raises(SecretsClosed, match="the server does not respond"):
            await host.op("mail.send", {"content": "hello"})


async def test_source_that_hangs_counts_as_closed(make_host, mail, monkeypatch):
    async def hangs(ctx):
        await anyio.sleep_forever()

    monkeypatch.setattr("sideband.broker._secret_sources._OPEN_SECONDS", 0.05)
    async with make_host(mail, plugin(hangs), settings=REQUIRED) as host:
        with pytest.raises(SecretsClosed):
            await host.op("mail.send", {"content": "hello"})


async def test_plugin_that_cannot_be_loaded_counts_as_closed(make_host, mail):
    broken = Plugin("secrets", "source", SimpleNamespace())
    async with make_host(mail, broken, settings=REQUIRED) as host:
        with pytest.raises(SecretsClosed, match="sideband_secret_sources"):
            await host.op("mail.send", {"content": "hello"})


async def test_denied_plugin_that_is_in_use_counts_as_closed(make_host, mail):
    settings = {**REQUIRED, "policy": {**REQUIRED["policy"], "deny": {"secrets.source": "not here"}}}
    async with make_host(mail, plugin(opens), settings=settings) as host:
        with pytest.raises(SecretsClosed, match="not here"):
            await host.op("mail.send", {"content": "hello"})


async def test_plugin_that_is_not_in_use_is_not_loaded(make_host, mail):
    source = plugin(fails)
    async with make_host(mail, source, settings={"policy": {"require_open_secrets": True}}) as host:
        assert await host.op("mail.send", {"content": "hello"}) == "hello"
        (record,) = host.plugins.why("source", kind="secrets")
    assert source.value.source.closed == "it was not opened"
    assert record.state.name == "FOUND"


async def test_plugin_with_a_folder_in_the_home_is_in_use(make_host, mail, tmp_path):
    (tmp_path / "home" / "source").mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    async with make_host(mail, plugin(opens)) as host:
        assert host.redactor.text(VALUE) == "[redacted:canary]"


async def test_source_is_opened_with_the_state_of_its_plugin(make_host, mail):
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def lifespan(ctx):
        yield {"value": VALUE}

    async def from_state(ctx):
        ctx.protect(ctx.state["value"], "canary")

    async with make_host(mail, plugin(from_state, lifespan=lifespan), settings=CONFIGURED) as host:
        assert host.redactor.text(VALUE) == "[redacted:canary]"


async def test_plugin_sends_nothing_while_a_required_source_is_closed(make_host, mail):
    contexts = []

    async def locked(ctx):
        contexts.append(ctx)
        return "locked"

    async with make_host(mail, plugin(locked), settings=REQUIRED):
        with pytest.raises(SecretsClosed):
            contexts[0].check_egress(None, {"body": "hello"})


async def test_plugin_sends_no_secret_of_another_origin(make_host, mail):
    contexts = []

    async def kept(ctx):
        contexts.append(ctx)
        ctx.protect(VALUE, "canary", origins=[HOME])

    async with make_host(mail, plugin(kept), settings=CONFIGURED):
        contexts[0].check_egress(HOME, {"body": VALUE})
        with pytest.raises(EgressRefused, match="`canary`"):
            contexts[0].check_egress(None, {"body": VALUE})
