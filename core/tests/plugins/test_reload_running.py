"""Calls that run finish with the plugin they began with, and nothing of it is left afterward."""

import gc
import sys
import weakref
from textwrap import dedent
from types import ModuleType

import anyio
import pytest
from sideband import Host
from sideband.hooks import Context, ToolCall, hookimpl
from sideband.ops import CapabilityInvalid, OpNotFound

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
# Long tests run with one event loop in `make test`, and with the other in `make long`.
one_backend = pytest.mark.parametrize("anyio_backend", ["asyncio", pytest.param("trio", marks=pytest.mark.long)])

WAITING = """
    import anyio

    BEGAN, GOING_ON, EXITED = anyio.Event(), anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def lifespan(ctx):
        yield {n}
        EXITED.set()

    class Empty(BaseModel):
        pass

    @op("{name}.wait")
    async def wait(params: Empty, ctx) -> list[int]:
        BEGAN.set()
        await GOING_ON.wait()
        assert not EXITED.is_set()
        return [*await ctx.dispatch("{name}.pair", {}), ctx.state]

    def sideband_ops():
        return OpFamily(name="{name}", ops=(pair, wait))
"""


GUARD = """
    from sideband.hooks import Deny, hookimpl
    from ._numbers import NUMBER

    class Guard:
        @hookimpl
        def tool_call(self, event):
            return Deny(str(NUMBER))

    def sideband_guards():
        return Guard
"""


CACHED = """
from typing import Optional, Union

KEPT = Optional[Union[Guard, Params]]
"""


class NoTools:
    @hookimpl
    def context(self, event):
        return (*event.messages, "no tools")


@pytest.fixture
def quick_switches():
    """Let threads take turns often, so that an import goes on beside a busy event loop."""
    seconds = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)
    yield
    sys.setswitchinterval(seconds)


@pytest.fixture
async def host(home, package):
    package.write_ops(1, WAITING)
    async with Host(home=home) as host:
        yield host


async def answer(host, op, found):
    found.append(await host.op(op, {}))


def module(package):
    return sys.modules[f"{package.module}.plugin"]


@both_backends
async def test_running_call_finishes_with_the_old_plugin(host, package):
    found = []
    await host.op("acme.pair", {})
    old = module(package)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, host, "acme.wait", found)
        await old.BEGAN.wait()
        package.write_ops(2)
        await host.reload("acme")
        assert await host.op("acme.pair", {}) == [2] * 5
        old.GOING_ON.set()
    assert found == [[1] * 6]


@both_backends
async def test_old_lifespan_is_exited_after_the_last_call(host, package):
    await host.op("acme.pair", {})
    old, found = module(package), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, host, "acme.wait", found)
        await old.BEGAN.wait()
        package.write_ops(2)
        await host.reload("acme")
        package.write_ops(3)
        await host.reload("acme")
        await anyio.wait_all_tasks_blocked()
        assert not old.EXITED.is_set()
        old.GOING_ON.set()
        with anyio.fail_after(5):
            await old.EXITED.wait()


async def test_plugin_of_a_middle_version_is_kept_for_the_call_that_found_it_late(host, package):
    """A call of the first edition that uses a family for the first time after a reload uses it until its end."""
    await host.op("acme.pair", {})
    old, found = module(package), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, host, "acme.wait", found)
        await old.BEGAN.wait()
        package.write_ops(2, WAITING)
        await host.reload("acme")
        middle = module(package)
        package.write_ops(3)
        await host.reload("acme")
        await anyio.wait_all_tasks_blocked()
        assert not middle.EXITED.is_set()
        old.GOING_ON.set()
        with anyio.fail_after(5):
            await middle.EXITED.wait()


async def test_closing_the_host_exits_the_lifespan_of_a_replaced_plugin(home, package):
    package.write_ops(1, WAITING)
    async with Host(home=home) as host:
        await host.op("acme.pair", {})
        old = module(package)
        host.hooks.editions.current.users += 1  # a call that never ends
        package.write_ops(2)
        await host.reload("acme")
    assert old.EXITED.is_set()
    assert [name for name in sys.modules if name.startswith(f"{package.module}@")] == []


@one_backend
async def test_no_call_fails_or_runs_on_a_half_loaded_plugin_during_twenty_reloads(home, package, quick_switches):
    package.write_ops(1)
    found = []
    async with Host(home=home) as host:
        await host.op("acme.pair", {})
        is_done = False

        async def work():
            while not is_done:
                found.append(await host.op("acme.pair", {}))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(work)
            for number in range(2, 22):
                package.write_modules(number, {"plugin": "{ops}"})
                await host.reload("acme")
                reached = len(found)
                while len(found) < reached + 10:
                    await anyio.lowlevel.checkpoint()
            is_done = True
    assert [one for one in found if len(set(one)) != 1] == []
    assert {one[0] for one in found} == set(range(1, 22))


@one_backend
async def test_nothing_is_left_after_a_hundred_reloads(home, packages):
    package = packages(kinds=("op", "guard"))
    package.write(1, {"plugin": "{ops}" + dedent(GUARD) + CACHED})
    async with Host(home=home) as host:
        await host.op("acme.pair", {})
        agents = host.hooks.derive(lambda context: context)
        first = weakref.ref(module(package))
        for number in range(2, 102):
            package.write_modules(number, {"plugin": "{ops}" + dedent(GUARD) + CACHED})
            await host.reload("acme", kind="op")
            assert await host.op("acme.pair", {}) == [number] * 5
            assert (await agents.decide(ToolCall("c1", "t", {}))).reason == str(number)
        await anyio.wait_all_tasks_blocked()
        gc.collect()
        alive = [
            one for one in gc.get_objects() if isinstance(one, ModuleType) and one.__name__.startswith(package.module)
        ]
        classes = [
            one for one in gc.get_objects() if isinstance(one, type) and str(one.__module__).startswith(package.module)
        ]
        assert first() is None
        assert len(alive) == len({one.__name__ for one in alive})
        assert len(classes) == len({one.__name__ for one in classes})
        assert [name for name in sys.modules if name.startswith(f"{package.module}@")] == []


async def test_function_that_imports_a_neighbor_late_gets_the_one_of_its_own_version(host, package):
    package.write_ops(2, WAITING + "    from ._numbers import NUMBER as _\n")
    await host.reload("acme")
    old, found = module(package), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, host, "acme.wait", found)
        await old.BEGAN.wait()
        package.write_modules(3, {"plugin": "{ops}"})
        await host.reload("acme")
        old.GOING_ON.set()  # then it imports `._late` for the first time
    assert found[0][:2] == [2, 2]


async def test_neighbor_that_was_once_imported_late_is_imported_with_the_others(host, package):
    await host.op("acme.pair", {})
    package.write_ops(2)
    await host.reload("acme")
    package.write_modules(3, {"plugin": "{ops}"})
    assert await host.op("acme.pair", {}) == [2] * 5


async def test_op_that_the_new_version_does_not_have_is_unknown(host, package):
    await host.op("acme.pair", {})
    package.write_ops(2)
    await host.reload("acme")
    with pytest.raises(OpNotFound):
        await host.op("acme.wait", {})


SCOPED = """
    from attrs import frozen
    from sideband.ops import Scope

    @frozen
    class AcmeScope(Scope, family="{name}"):
        {field}: str | None = None

    def sideband_ops():
        return OpFamily(name="{name}", ops=(pair,), scope=AcmeScope)
"""


async def test_grants_are_checked_against_the_new_scope(host, package):
    package.write_ops(2, SCOPED.replace("{field}", "place"))
    await host.reload("acme")
    await host.broker.ops.grant(["acme:place=here"])
    package.write_ops(3, SCOPED.replace("{field}", "where"))
    await host.reload("acme")
    with pytest.raises(CapabilityInvalid, match="place"):
        await host.broker.ops.grant(["acme:place=here"])


@pytest.fixture
async def guarded(home, packages):
    package = packages(kinds=("guard",))
    package.write(1, {"plugin": GUARD})
    async with Host(home=home) as host:
        yield host, package


async def reason(hooks):
    return (await hooks.decide(ToolCall("c1", "t", {}))).reason


async def test_agent_that_is_idle_gets_the_new_guard_at_once(guarded):
    host, package = guarded
    agents = host.hooks.derive(lambda context: context)
    package.write(2, {"plugin": GUARD})
    await host.reload("acme")
    assert (await reason(host.hooks), await reason(agents)) == ("2", "2")


async def test_run_keeps_the_guard_it_began_with(guarded):
    host, package = guarded
    agents = host.hooks.derive(lambda context: context)
    with agents.pinned():
        package.write(2, {"plugin": GUARD})
        await host.reload("acme")
        assert (await reason(host.hooks), await reason(agents)) == ("2", "1")
    assert await reason(agents) == "2"


async def test_guard_whose_lifespan_ends_after_its_replacement_denies_in_the_run_that_keeps_it(home, packages):
    ending = """
    import anyio
    from contextlib import asynccontextmanager
    END = anyio.Event()

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as tasks:
            async def end():
                await END.wait()
                raise RuntimeError("the connection broke")
            tasks.start_soon(end)
            yield
            tasks.cancel_scope.cancel()
    """
    package = packages(kinds=("guard",))
    package.write(1, {"plugin": GUARD + ending})
    async with Host(home=home) as host:
        agents = host.hooks.derive(lambda context: context)
        with agents.pinned():
            old = module(package)
            package.write(2, {"plugin": GUARD})
            await host.reload("acme")
            old.END.set()
            with anyio.fail_after(5):
                while "the connection broke" not in await reason(agents):
                    await anyio.lowlevel.checkpoint()
            assert await reason(host.hooks) == "2"
        assert await reason(agents) == "2"


async def test_guard_that_an_agent_cannot_create_denies_after_a_reload(guarded):
    stopping = """
    from sideband.hooks import hookimpl

    class Stop(BaseException):
        pass

    class Guard:
        made = 0

        def __init__(self):
            Guard.made += 1
            if Guard.made > 1:
                raise Stop("no more")

        @hookimpl
        def tool_call(self, event):
            return None

    def sideband_guards():
        return Guard
    """
    host, package = guarded
    agents = host.hooks.derive(lambda context: context)
    package.write(2, {"plugin": stopping})
    (record,) = await host.reload("acme")
    assert "no more" in await reason(agents)
    assert host.plugins.why("acme") == (record,)


async def test_reloads_at_the_same_time_run_one_after_the_other(host, package):
    await host.op("acme.pair", {})
    package.write_ops(2)
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(host.reload, "acme")
    assert [one.reason for one in host.plugins.why("acme")[0].trail if one.decided_by == "reload"] == [
        "reloaded, in place of 1.0",
        "reloaded, in place of 2.0",
        "reloaded, in place of 2.0",
    ]
    assert await host.op("acme.pair", {}) == [2] * 5


async def test_guard_of_an_agent_is_not_replaced_by_a_new_plugin_with_its_name(home, packages):
    package = packages()
    package.write_ops(1)
    async with Host(home=home) as host:
        agents = host.hooks.derive(lambda context: context)
        agents.register("acme", NoTools())
        package.write(2, {"plugin": "{ops}" + dedent(GUARD)}, kinds=("op", "guard"))
        await host.reload("acme")
        assert await reason(host.hooks) == "2"
        assert (await agents.update(Context(()))).messages == ("no tools",)


async def test_new_patterns_redact_from_the_first_call_on(home, packages):
    redacting = """
    from sideband.hooks import Redactor, hookimpl

    @hookimpl
    def redactors(event):
        return [Redactor("acme", "acme-[0-9]{3}")]
    """
    package = packages(kinds=("op", "hook"))
    package.write(1, {"plugin": "{ops}" + dedent(redacting.replace("acme-", "none-"))})
    async with Host(home=home) as host:
        package.write(2, {"plugin": "{ops}" + dedent(redacting)})
        await host.reload("acme", kind="hook")
        assert "acme-123" not in host.redactor.text("acme-123")


async def test_skills_are_found_again_after_a_reload(home, packages):
    loader = """
    from types import SimpleNamespace
    from sideband.loading import LoadedSkills, SkillProblem

    async def load(sources):
        return LoadedSkills(problems=(SkillProblem("here", "test", "version {n}"),))

    def sideband_loaders():
        return [SimpleNamespace(name="acme", load=load)]
    """
    package = packages(kinds=("loader",))
    package.write(1, {"plugin": loader})
    async with Host(home=home) as host:
        await host.skills()
        package.write(2, {"plugin": loader})
        await host.reload("acme")
        assert "version 2" in [one.reason for one in (await host.skills()).problems]


LOADING = """
    import anyio
    from contextlib import asynccontextmanager
    from types import SimpleNamespace
    from sideband.loading import LoadedSkills

    BEGAN, GOING_ON, EXITED = anyio.Event(), anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def lifespan(ctx):
        yield
        EXITED.set()

    async def load(sources):
        BEGAN.set()
        {wait}
        return LoadedSkills()

    def sideband_loaders():
        return [SimpleNamespace(name="acme", load=load)]
"""


@both_backends
async def test_lifespan_of_a_replaced_loader_is_exited_after_it_has_loaded(home, packages):
    package = packages(kinds=("loader",))
    package.write(1, {"plugin": LOADING.replace("{wait}", "await GOING_ON.wait()")})
    async with Host(home=home) as host, anyio.create_task_group() as tasks:
        await host.plugins.load("loader", "acme")
        old = module(package)
        tasks.start_soon(host.skills)
        await old.BEGAN.wait()
        package.write(2, {"plugin": LOADING.replace("{wait}", "")})
        await host.reload("acme")
        await anyio.wait_all_tasks_blocked()
        assert not old.EXITED.is_set()
        old.GOING_ON.set()
        with anyio.fail_after(5):
            await old.EXITED.wait()
