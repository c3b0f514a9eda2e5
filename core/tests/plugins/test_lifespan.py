import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest
from sideband.hooks import OpCall, hookimpl
from sideband.ops import Level, Origin
from sideband.plugins import LifespanFailed, Plugin, PluginError, PluginHost, State
from sideband.tools import Tool

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def provider(name, lifespan=None, **attributes):
    """Return an inline provider plugin."""
    value = SimpleNamespace(
        sideband_providers=lambda: [SimpleNamespace(name=name, models=print, stream=print)], **attributes
    )
    if lifespan is not None:
        value.lifespan = lifespan
    return Plugin("provider", name, value)


def recorded(steps, name, *, fail_at=None):
    @asynccontextmanager
    async def lifespan(ctx):
        if fail_at == "enter":
            raise RuntimeError("boom")
        steps.append(f"enter {name}")
        yield f"state of {name}"
        steps.append(f"exit {name}")
        if fail_at == "exit":
            raise RuntimeError("boom")

    return lifespan


async def until(condition):
    with anyio.fail_after(5):
        while not condition():
            await anyio.lowlevel.checkpoint()


def host(home, *inline, **settings):
    return PluginHost(home=home, inline=inline, autoload=False, **settings)


async def test_lifespan_is_entered_on_first_use_and_exited_with_the_host(home):
    steps = []
    async with host(home, provider("a", recorded(steps, "a"))) as plugins:
        assert steps == []
        loaded = await plugins.load("provider", "a")
        assert steps == ["enter a"]
        assert loaded.state == loaded.context.state == "state of a"
    assert steps == ["enter a", "exit a"]


async def test_lifespans_are_exited_in_reverse_order(home):
    steps = []
    async with host(home, *(provider(name, recorded(steps, name)) for name in "abc")) as plugins:
        for name in "bca":
            await plugins.load("provider", name)
    assert steps == ["enter b", "enter c", "enter a", "exit a", "exit c", "exit b"]


@both_backends
async def test_concurrent_loads_enter_the_lifespan_once(home):
    steps = []

    @asynccontextmanager
    async def lifespan(ctx):
        steps.append("enter")
        await anyio.wait_all_tasks_blocked()
        yield
        steps.append("exit")

    async with host(home, provider("a", lifespan)) as plugins, anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(plugins.load, "provider", "a")
    assert steps == ["enter", "exit"]


@both_backends
async def test_lifespan_is_entered_and_exited_in_the_same_task(home):
    tasks = []

    @asynccontextmanager
    async def lifespan(ctx):
        tasks.append(anyio.get_current_task().id)
        async with anyio.create_task_group() as group:
            with anyio.CancelScope():
                yield
            group.cancel_scope.cancel()
        tasks.append(anyio.get_current_task().id)

    async with host(home, provider("a", lifespan), provider("b", lifespan)) as plugins:
        async with anyio.create_task_group() as group:
            group.start_soon(plugins.load, "provider", "a")
        await plugins.load("provider", "b")
    a_enter, b_enter, b_exit, a_exit = tasks
    assert a_enter == a_exit
    assert b_enter == b_exit
    assert a_enter != b_enter


async def test_exception_on_enter_fails_the_plugin(home):
    async with host(home, provider("a", recorded([], "a", fail_at="enter")), provider("b")) as plugins:
        for _ in range(2):
            with pytest.raises(LifespanFailed, match="raised RuntimeError: boom") as caught:
                await plugins.load("provider", "a")
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert plugins.why("a")[0].state is State.FAILED
        assert await plugins.load("provider", "b")


@both_backends
async def test_system_exit_on_enter_does_not_end_the_host(home):
    @asynccontextmanager
    async def lifespan(ctx):
        raise SystemExit(1)
        yield

    async with host(home, provider("a", lifespan)) as plugins:
        with pytest.raises(LifespanFailed, match="SystemExit"):
            await plugins.load("provider", "a")


@both_backends
async def test_hanging_enter_times_out(home):
    exited = []

    @asynccontextmanager
    async def lifespan(ctx):
        try:
            await anyio.sleep_forever()
            yield
        finally:
            exited.append(True)

    async with host(home, provider("a", lifespan), lifespan_seconds=0.05) as plugins:
        with pytest.raises(LifespanFailed, match=r"did not yield within 0\.05 s"):
            await plugins.load("provider", "a")
    assert exited


@both_backends
async def test_exception_on_exit_does_not_prevent_other_exits(home):
    steps = []
    inline = [provider("a", recorded(steps, "a")), provider("b", recorded(steps, "b", fail_at="exit"))]
    async with host(home, *inline) as plugins:
        await plugins.load("provider", "a")
        await plugins.load("provider", "b")
    assert steps[-2:] == ["exit b", "exit a"]
    assert "raised on exit: RuntimeError: boom" in plugins.problems[0]
    assert plugins.why("b")[0].state is State.FAILED


@both_backends
async def test_hanging_exit_is_cancelled_and_others_are_exited(home):
    steps = []

    @asynccontextmanager
    async def lifespan(ctx):
        yield
        try:
            await anyio.sleep_forever()
        finally:
            steps.append("cancelled")

    inline = [provider("a", recorded(steps, "a")), provider("b", lifespan)]
    async with host(home, *inline, lifespan_seconds=0.05) as plugins:
        await plugins.load("provider", "a")
        await plugins.load("provider", "b")
    assert sorted(steps[1:]) == ["cancelled", "exit a"]
    assert "did not end within 0.05 s" in plugins.problems[0]


@both_backends
async def test_cancelled_host_exits_lifespans_in_order(home):
    steps = []

    def slow(name):
        @asynccontextmanager
        async def lifespan(ctx):
            yield
            await anyio.wait_all_tasks_blocked()
            steps.append(name)

        return lifespan

    with anyio.CancelScope() as scope:
        async with host(home, provider("a", slow("a")), provider("b", slow("b"))) as plugins:
            await plugins.load("provider", "a")
            await plugins.load("provider", "b")
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert steps == ["b", "a"]


@both_backends
async def test_exception_of_the_body_propagates_after_lifespans_are_exited(home):
    steps = []

    async def body():
        async with host(home, provider("a", recorded(steps, "a"))) as plugins:
            await plugins.load("provider", "a")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await body()
    assert steps == ["enter a", "exit a"]


@both_backends
async def test_lifespan_that_ends_early_fails_only_its_plugin(home):
    crash = anyio.Event()

    async def background():
        await crash.wait()
        raise RuntimeError("background broke")

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(background)
            yield

    async with host(home, provider("a", lifespan), provider("b", recorded([], "b"))) as plugins:
        await plugins.load("provider", "a")
        await plugins.load("provider", "b")
        crash.set()
        (record,) = plugins.why("a")
        await until(lambda: record.state is State.FAILED)
        assert "RuntimeError: background broke while the host was running" in record.reason
        with pytest.raises(LifespanFailed):
            await plugins.load("provider", "a")
        assert (await plugins.load("provider", "b")).record.state is State.ACTIVE


@both_backends
async def test_hooks_of_a_plugin_whose_lifespan_ended_deny(home):
    end = anyio.Event()

    @asynccontextmanager
    async def lifespan(ctx):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:

                async def stop():
                    await end.wait()
                    scope.cancel()

                tasks.start_soon(stop)
                yield

    @hookimpl
    def op_call(event: OpCall):
        return None

    wall = type("Wall", (), {"op_call": staticmethod(op_call)})
    plugin = Plugin("guard", "a", SimpleNamespace(lifespan=lifespan, sideband_guards=lambda: [wall]))
    event = OpCall(effect="e", op="a.b", params={}, level=Level.SAFE, origin=Origin())
    async with host(home, plugin) as plugins:
        assert (await plugins.hooks.decide(event)).allowed
        end.set()
        await until(lambda: not plugins.why("a")[0].state.usable)
        assert "ended while the host was running" in plugins.why("a")[0].reason
        assert not (await plugins.hooks.decide(event)).allowed


async def test_plugins_of_one_module_and_name_share_a_lifespan(home):
    steps = []
    value = provider("a", recorded(steps, "a"), sideband_tools=lambda: [Tool("a", "", {}, dict, print)]).value
    async with host(home, Plugin("provider", "a", value), Plugin("tool", "a", value)) as plugins:
        first = await plugins.load("provider", "a")
        second = await plugins.load("tool", "a")
        assert first.context is second.context
    assert steps == ["enter a", "exit a"]


async def test_lifespan_must_be_an_async_context_manager(home):
    async with host(home, provider("a", repr)) as plugins:
        with pytest.raises(LifespanFailed, match="asynchronous context manager"):
            await plugins.load("provider", "a")


async def test_lifespan_without_a_broker_cannot_cause_effects(home):
    @asynccontextmanager
    async def lifespan(ctx):
        for request in (ctx.dispatch("http.get", {}), ctx.credential("github", "https://api.github.com")):
            with pytest.raises(PluginError, match="no broker"):
                await request
        assert (ctx.plugin, ctx.home, ctx.state) == ("a", home, None)
        yield

    async with host(home, provider("a", lifespan)) as plugins:
        await plugins.load("provider", "a")


async def test_context_factory_creates_the_context(home):
    made = []

    def factory(record, config):
        made.append((record.label, config))
        return SimpleNamespace(state=None)

    async with host(home, provider("a", recorded([], "a")), context_factory=factory) as plugins:
        assert (await plugins.load("provider", "a")).state == "state of a"
    assert made == [("provider.a", None)]


def chain(error):
    """Return the chain of ``__context__`` of an error, up to the first error that occurs twice."""
    errors = []
    while error is not None:
        errors.append(error)
        if error in errors[:-1]:
            break
        error = error.__context__
    return errors


async def test_second_cancellation_during_close_creates_no_context_cycle(home):
    # `AsyncExitStack` follows the chain of contexts to its end; a cycle is an infinite loop that ignores Ctrl-C.
    async def use():
        async with host(home):
            try:
                await anyio.sleep_forever()
            finally:
                asyncio.get_running_loop().call_soon(task.cancel)

    task = asyncio.create_task(use())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    errors = chain(caught.value)
    assert len(errors) == len(set(map(id, errors)))
