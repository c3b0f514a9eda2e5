"""The context of a handler: its capabilities, its lifetime, and the conversion of exceptions."""

import anyio
import anyio.lowlevel
import attrs
import pytest
from pydantic import BaseModel
from sideband import SidebandError, hookimpl
from sideband.hooks import Deny
from sideband.ops import Level, OpContext, OpDenied, OpFailed, OpTimeout, Scope, op

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Nothing(BaseModel):
    text: str = ""


@attrs.frozen
class AreaScope(Scope, family="area"):
    name: str | None = None


def area(name):
    return AreaScope(name=name)


async def test_op_with_several_scopes_requires_all_of_them(make_host, family):
    @op("area.join", requires="area", scope=lambda params: [area("a"), area("b")])
    async def join(params: Nothing, ctx: OpContext) -> str:
        return "joined"

    async with make_host(family("area", join, scope=AreaScope)) as host:
        assert await host.op("area.join", {}, grants=["area:name=a|b"]) == "joined"
        with pytest.raises(OpDenied, match="`area:name=b` is not granted"):
            await host.op("area.join", {}, grants=["area:name=a"])


async def test_op_without_a_scope_requires_any_capability_of_its_family(make_host, family):
    @op("area.look", requires="area")
    async def look(params: Nothing, ctx: OpContext) -> str:
        return "seen"

    async with make_host(family("area", look, scope=AreaScope)) as host:
        assert await host.op("area.look", {}, grants=["area:name=a"]) == "seen"
        with pytest.raises(OpDenied, match="`area` is not granted"):
            await host.op("area.look", {}, grants=[])


async def test_context_is_unusable_after_its_dispatch(make_host, family):
    kept, reports = [], []

    @op("area.keep", requires="area")
    async def keep(params: Nothing, ctx: OpContext) -> None:
        ctx.require(area("a"))
        kept.append(ctx)

    async with make_host(family("area", keep, scope=AreaScope)) as host:
        await host.op("area.keep", {}, on_progress=reports.append)
        with pytest.raises(OpDenied, match="has ended"):
            kept[0].require(area("a"))
        with pytest.raises(OpDenied, match="has ended"):
            kept[0].allows(area("a"))
        with pytest.raises(OpDenied, match="has ended"):
            await kept[0].dispatch("area.keep", {})
        with pytest.raises(OpDenied, match="has ended"):
            await kept[0].credential("name", "https://example.org")
        await kept[0].progress(message="late")
    assert reports == []


async def test_progress_message_is_truncated(make_host, family):
    @op("area.talk")
    async def talk(params: Nothing, ctx: OpContext) -> None:
        await ctx.progress(message="x" * 9_999)

    reports = []
    async with make_host(family("area", talk)) as host:
        await host.op("area.talk", {}, on_progress=reports.append)
    assert len(reports[0].message) == 2_000


async def test_child_effect_has_the_key_from_its_parent(make_host, family):
    ran = []

    @op("area.child", level=Level.RESTRICTED)
    async def child(params: Nothing, ctx: OpContext) -> int:
        ran.append(1)
        return len(ran)

    @op("area.parent")
    async def parent(params: Nothing, ctx: OpContext) -> list[int]:
        return [await ctx.dispatch("area.child", {}, key="k") for _ in range(2)]

    async with make_host(family("area", parent, child)) as host:
        assert await host.op("area.parent", {}) == [1, 1]


async def test_child_effect_can_have_a_narrower_grant_than_its_parent(make_host, family):
    @op("area.enter", requires="area", scope=lambda params: area(params.text))
    async def enter(params: Nothing, ctx: OpContext) -> str:
        return params.text

    @op("area.send")
    async def send(params: Nothing, ctx: OpContext) -> str:
        return await ctx.dispatch("area.enter", {"text": "b"}, capabilities=["area:name=a"])

    async with make_host(family("area", enter, send, scope=AreaScope)) as host:
        with pytest.raises(OpDenied, match=r"granted: area:name=a\)"):
            await host.op("area.send", {}, grants=["area:name=a|b"])


@both_backends
async def test_deadline_of_a_call_limits_its_ops(make_host, family):
    @op("area.hang", timeout=60)
    async def hang(params: Nothing, ctx: OpContext) -> None:
        await anyio.sleep_forever()

    async with make_host(family("area", hang)) as host:
        with anyio.fail_after(10), pytest.raises(OpTimeout):
            await host.op("area.hang", {}, deadline=0.05)


async def test_op_without_a_timeout_gets_the_default_timeout(make_host, family):
    deadlines = []

    @op("area.clock")
    async def clock(params: Nothing, ctx: OpContext) -> None:
        deadlines.append(ctx.deadline - anyio.current_time())

    async with make_host(family("area", clock)) as host:
        await host.op("area.clock", {})
    assert 59 < deadlines[0] <= 60


@both_backends
async def test_exception_during_cancellation_at_the_deadline_becomes_a_timeout(make_host, family):
    @op("area.wrap", timeout=0.05)
    async def wrap(params: Nothing, ctx: OpContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ConnectionError("torn down")

    async with make_host(family("area", wrap)) as host:
        with pytest.raises(OpTimeout):
            await host.op("area.wrap", {})


async def test_preview_is_redacted_and_its_context_ends_with_it(make_host, family, hook):
    kept, seen = [], []

    async def preview(params, ctx):
        ctx.protect("canary-7f3a9c51", "canary")
        kept.append(ctx)
        return f"would send canary-7f3a9c51 to {params.text}"

    @op("area.send", preview=preview, level=Level.RESTRICTED)
    async def send(params: Nothing, ctx: OpContext) -> None: ...

    @hookimpl
    async def op_call(event):
        seen.append(await event.preview(event.params))
        return Deny(seen[0])

    async with make_host(family("area", send), hook("curious", op_call)) as host:
        with pytest.raises(OpDenied, match=r"would send \[redacted:canary\] to Ada"):
            await host.op("area.send", {"text": "Ada"})
        assert seen == ["would send [redacted:canary] to Ada"]
        with pytest.raises(OpDenied, match="has ended"):
            await kept[0].dispatch("area.send", {})


async def test_credential_without_a_resolver_is_denied(make_host, family):
    @op("area.ask")
    async def ask(params: Nothing, ctx: OpContext) -> None:
        await ctx.credential("token", "https://example.org")

    @op("secrets.none")
    async def none(params: Nothing, ctx: OpContext) -> None: ...

    @attrs.frozen
    class KeeperScope(Scope, family="secrets"):
        name: str | None = None
        mode: str | None = None

    async with make_host(family("area", ask), family("secrets", none, scope=KeeperScope)) as host:
        with pytest.raises(OpDenied, match="does not support credentials"):
            await host.op("area.ask", {})
        with pytest.raises(OpDenied, match="`secrets:mode=use,name=token` is not granted"):
            await host.op("area.ask", {}, grants=[])


async def test_value_and_headers_of_a_credential_are_redacted(make_host, family):
    from sideband.ops import Credential

    class Resolver:
        async def resolve(self, handle, audience, ctx):
            return Credential(handle, "value-canary-1", {"X-Token": "header-canary-2"})

    @op("secrets.show")
    async def show(params: Nothing, ctx: OpContext) -> list[str]:
        credential = await ctx.credential("token", "https://example.org")
        return [credential.value, *credential.headers.values()]

    @attrs.frozen
    class KeeperScope(Scope, family="secrets"):
        name: str | None = None
        mode: str | None = None

    async with make_host(family("secrets", show, scope=KeeperScope, credentials=Resolver())) as host:
        assert await host.op("secrets.show", {}) == ["[redacted:token]", "[redacted:token]"]


async def test_sideband_error_keeps_its_code_and_hint_and_is_redacted(make_host, family):
    @op("area.break")
    async def break_(params: Nothing, ctx: OpContext) -> None:
        ctx.protect("canary-7f3a9c51", "canary")
        raise SidebandError("no canary-7f3a9c51", hint="not canary-7f3a9c51", code="area.broken", retryable=True)

    async with make_host(family("area", break_)) as host:
        with pytest.raises(OpFailed) as caught:
            await host.op("area.break", {})
    error = caught.value
    assert (error.code, error.message, error.hint, error.retryable, error.op, error.plugin) == (
        "area.broken",
        "no [redacted:canary]",
        "not [redacted:canary]",
        True,
        "area.break",
        "area",
    )
    assert str(error) == "no [redacted:canary]"


async def test_op_error_gets_its_op_and_plugin(make_host, family):
    @op("area.fail")
    async def fail(params: Nothing, ctx: OpContext) -> None:
        raise OpFailed("no", code="area.no")

    async with make_host(family("area", fail)) as host:
        with pytest.raises(OpFailed) as caught:
            await host.op("area.fail", {})
    assert (caught.value.code, caught.value.op, caught.value.plugin) == ("area.no", "area.fail", "area")


@both_backends
async def test_exception_group_with_one_error_is_unwrapped(make_host, family):
    @op("area.group")
    async def group(params: Nothing, ctx: OpContext) -> None:
        raise ExceptionGroup("one", [OpFailed("inner", code="area.inner")])

    async with make_host(family("area", group)) as host:
        with pytest.raises(OpFailed, match="inner") as caught:
            await host.op("area.group", {})
    assert caught.value.code == "area.inner"


async def test_exception_with_a_failing_or_long_message_becomes_an_op_error(make_host, family):
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    @op("area.silent")
    async def silent(params: Nothing, ctx: OpContext) -> None:
        raise Silent if params.text == "silent" else ValueError("x" * 9_999)

    async with make_host(family("area", silent)) as host:
        with pytest.raises(OpFailed, match="Silent"):
            await host.op("area.silent", {"text": "silent"})
        with pytest.raises(OpFailed) as caught:
            await host.op("area.silent", {})
    assert len(caught.value.message) < 2_100


@both_backends
async def test_failing_cleanup_is_logged_and_the_others_run(make_host, family, caplog):
    closed = []

    @op("area.open")
    async def open_(params: Nothing, ctx: OpContext) -> None:
        async def close():
            closed.append(1)

        async def fail():
            raise RuntimeError("stuck on canary-7f3a9c51")

        ctx.protect("canary-7f3a9c51", "canary")
        ctx.on_call_end(close)
        ctx.on_call_end(fail)

    async with make_host(family("area", open_)) as host:
        await host.op("area.open", {})
    assert closed == [1]
    assert "stuck on [redacted:canary]" in caplog.text


@both_backends
async def test_cleanup_runs_after_cancellation(make_host, family):
    closed, begun = [], anyio.Event()

    @op("area.open")
    async def open_(params: Nothing, ctx: OpContext) -> None:
        async def close():
            await anyio.lowlevel.checkpoint()
            closed.append(1)

        ctx.on_call_end(close)
        begun.set()
        await anyio.sleep_forever()

    async with make_host(family("area", open_)) as host:
        async with anyio.create_task_group() as calls:
            calls.start_soon(host.op, "area.open", {})
            await begun.wait()
            calls.cancel_scope.cancel()
        assert closed == [1]


async def test_revealing_op_returns_values_under_sensitive_keys(make_host, family):
    @op("area.reveal", reveals=True)
    async def reveal(params: Nothing, ctx: OpContext) -> dict[str, str]:
        return {"password": "canary-7f3a9c51"}

    async with make_host(family("area", reveal)) as host:
        assert await host.op("area.reveal", {}) == {"password": "canary-7f3a9c51"}
