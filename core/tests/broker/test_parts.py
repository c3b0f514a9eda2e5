"""Parts of results, model providers, and the host's own ops."""

from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.broker import Call
from sideband.ops import Grant, Level, OpNotFound, Origin, op
from sideband.plugins import PluginNotFound

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Nothing(BaseModel):
    pass


@op("story.tell", level=Level.SAFE)
async def tell(params: Nothing, ctx) -> str:
    """Tell a story in parts."""
    ctx.protect("hush-hush", "secret")
    for part in ("once", "hush-hush", "end, hus"):
        await ctx.emit({"text": part})
    return "end"


def call(host, **options):
    import anyio

    deadline = anyio.current_time() + 10
    return Call(id="c1", grant=Grant.of(()), domain="test", origin=Origin(), deadline=deadline, **options)


async def test_parts_are_passed_on_redacted_and_in_order(make_host, family):
    got = []

    async def take(part):
        got.append(part["text"])

    async with make_host(family("story", tell)) as host:
        assert await host.broker.dispatch(call(host, on_part=take), "story.tell", {}) == "end"
    assert "".join(got) == "once[redacted:secret]end, hus"


async def test_parts_without_a_listener_are_discarded(make_host, family):
    async with make_host(family("story", tell)) as host:
        assert await host.op("story.tell", {}) == "end"


async def test_op_gets_a_provider_with_the_context_of_its_plugin(make_host, family):
    found = []

    @op("story.ask", level=Level.SAFE)
    async def ask(params: Nothing, ctx) -> str:
        """Ask a provider."""
        provider, context = await ctx.provider("muse-loud")
        found.append((provider.name, context.plugin, await ctx.providers()))
        with pytest.raises(PluginNotFound):
            await ctx.provider("muse-quiet")
        return ""

    muses = [SimpleNamespace(name=name, models=print, stream=print) for name in ("muse", "muse-loud")]
    provider = Plugin("provider", "muse", SimpleNamespace(sideband_providers=lambda: muses))
    async with make_host(family("story", ask), provider) as host:
        await host.op("story.ask", {})
    assert found == [("muse-loud", "muse", ("muse", "muse-loud"))]


async def test_own_op_of_the_host_cannot_be_dispatched_by_name(make_host):
    async with make_host() as host:
        with pytest.raises(OpNotFound):
            await host.op("tool.call", {"tool": "echo", "arguments": {}, "call": "c1"})


async def test_key_of_an_effect_that_did_not_happen_is_free_for_another(make_host, family):
    from sideband.ops import OpError, OpFailed

    class Text(BaseModel):
        text: str

    class Refused(OpFailed):
        nothing_happened = True

    @op("story.write", level=Level.CONTROLLED)
    async def write(params: Text, ctx) -> str:
        """Write, or refuse to."""
        if params.text == "bad":
            raise Refused("not that")
        return params.text

    async with make_host(family("story", write)) as host:
        with pytest.raises(OpError):
            await host.op("story.write", {"text": "bad"}, key="k1")
        assert await host.broker.recall("k1") is None
        assert await host.op("story.write", {"text": "good"}, key="k1") == "good"
        assert await host.broker.recall("k1") == ("done", "good")
        assert await host.broker.recall("k2") is None


async def test_sensitive_keys_are_not_redacted_in_results_with_foreign_names(make_host, family):
    @op("story.form", level=Level.SAFE, foreign_names=True)
    async def form(params: Nothing, ctx) -> dict:
        """Answer with names that the caller chose."""
        ctx.protect("hush-hush", "secret")
        return {"password": "chosen", "token": "hush-hush"}

    async with make_host(family("story", form)) as host:
        reply = await host.op("story.form", {})
    assert reply["password"] == "chosen"
    assert "hush-hush" not in reply["token"]


@both_backends
async def test_exit_in_a_task_of_a_handler_fails_the_op_only(make_host, family):
    from sideband.ops import OpError

    @op("story.exit", level=Level.SAFE)
    async def leave(params: Nothing, ctx) -> str:
        """Try to end the host."""
        raise BaseExceptionGroup("tasks", [SystemExit(1)])

    async with make_host(family("story", leave), family("other", other)) as host:
        with pytest.raises(OpError):
            await host.op("story.exit", {})
        assert await host.op("other.fine", {}) == "fine"


@op("other.fine", level=Level.SAFE)
async def other(params: Nothing, ctx) -> str:
    """Be fine."""
    return "fine"
