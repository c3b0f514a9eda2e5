"""What a call may use, who shares its worker, and what is said of where it ran."""

import json
import threading
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import anyio.lowlevel
import pytest
from pydantic import BaseModel
from sideband import CallRequest, Host, Plugin, SidebandError, UsageError
from sideband.ledger import query
from sideband.ops import OpContext, OpFamily, op
from sideband.workers import AboveMaximum, Isolation, PlainSandbox, Probe, SkillFailed, WorkerError, launch

pytestmark = pytest.mark.anyio

CODE = """
import os
from sideband.skill import tool

@tool
async def worker() -> int:
    return os.getpid()
"""

ENTERS = """
from sideband.skill import room, tool

@tool
async def enter() -> None:
    await room.enter()
"""

LONG = """
import asyncio, contextvars, json, socket
from sideband.skill import tool

@tool
async def result(size: int) -> str:
    return "x" * size

@tool
async def error(size: int) -> None:
    call = next(value for name, value in contextvars.copy_context().items() if name.name == "sideband_call")
    line = {"__type__": "result", "__id__": call.id, "__error__": "x" * size}
    host = socket.socket(fileno=3)
    host.setblocking(True)
    host.sendall(json.dumps(line).encode() + b"\\n")
    await asyncio.sleep(60)
"""


class Nothing(BaseModel):
    pass


class Counting(PlainSandbox):
    """Proves one tier and gives another; notes what it is asked to launch."""

    def __init__(self):
        super().__init__()
        self.proves = Isolation.FULL
        self.gives = Isolation.NO_NAMESPACES
        self.requests = []

    async def probe(self, folders=()):
        return Probe(self.proves)

    async def launch(self, request):
        self.requests.append(request)
        return await launch(request, isolation=self.gives)


@pytest.fixture
def sandbox():
    return Counting()


@pytest.fixture
def make_host(tmp_path, make_skill, sandbox):
    """A host whose skill ``guest`` has these metadata and whose policy accepts what the sandbox gives."""

    def make(*plugins, code=CODE, skill=None, **policy):
        isolated = Plugin(kind="sandbox", name="counting", value=SimpleNamespace(sideband_sandboxes=lambda: [sandbox]))
        settings = {"policy": {"isolation": "no-namespaces", "deny": {"sandbox.sandbox": "another"}, **policy}}
        folder = tmp_path / "skills" / "guest"
        if not folder.exists():
            make_skill("guest", code, **(skill or {}))
        return Host(home=tmp_path / "home", settings=settings, skill_dirs=[folder], plugins=[isolated, *plugins])

    return make


@pytest.fixture
def room():
    """A family whose one op goes on until it may leave, and what happened to it in which order."""
    state = SimpleNamespace(entered=anyio.Event(), may_leave=anyio.Event(), seen=[], domains=[])

    @op("room.enter")
    async def enter(params: Nothing, ctx: OpContext) -> None:
        async def close():
            await anyio.sleep(0.05)
            state.seen.append("op closed")

        ctx.on_call_end(close)
        state.domains.append(ctx.domain)
        state.entered.set()
        await state.may_leave.wait()

    @asynccontextmanager
    async def lifespan(ctx):
        yield
        state.seen.append("plugin left")

    module = SimpleNamespace(sideband_ops=lambda: OpFamily(name="room", ops=(enter,)), lifespan=lifespan)
    state.plugin = Plugin(kind="op", name="room", value=module)
    return state


async def test_a_call_and_its_effects_say_the_tier_that_the_worker_really_ran_on(make_host, room):
    room.may_leave.set()
    async with make_host(room.plugin, code=ENTERS) as host:
        result = await host.run(CallRequest("guest.enter", grants=()))
        assert (await host.sandbox.probe()).isolation is Isolation.FULL
        assert result.isolation == "no-namespaces"
        effects = await query(host.ledger.folder)
    assert [effect.isolation for effect in effects] == ["no-namespaces"]


async def test_a_worker_below_the_required_tier_runs_nothing(make_host, sandbox):
    sandbox.gives = Isolation.NONE
    async with make_host() as host:
        with pytest.raises(WorkerError) as caught:
            await host.call("guest.worker")
    assert caught.value.code == "isolation.unavailable"


async def test_who_wants_each_call_alone_is_not_told_to_do_without(make_host, sandbox):
    sandbox.proves = Isolation.NO_NAMESPACES
    async with make_host(isolation="call") as host:
        with pytest.raises(WorkerError) as caught:
            await host.call("guest.worker")
    assert "--isolation no-namespaces,call" in caught.value.hint


async def test_calls_with_the_same_rights_share_a_worker(make_host):
    async with make_host() as host:
        assert await host.call("guest.worker") == await host.call("guest.worker")


@pytest.mark.parametrize(
    ("policy", "skill", "alone"),
    [
        ({"isolation": "no-namespaces,call"}, {}, False),
        ({}, {"isolation": "call"}, False),
        ({}, {}, True),
    ],
)
async def test_policy_skill_or_caller_can_give_each_call_a_worker_of_its_own(make_host, policy, skill, alone):
    async with make_host(skill=skill, **policy) as host:
        seen = [(await host.run(CallRequest("guest.worker", alone=alone))).output for _ in range(2)]
    assert len(set(seen)) == 2


@pytest.mark.parametrize(
    ("skill", "count"), [({}, 256 << 20), ({"memory": "64M"}, 64 << 20), ({"memory": "2G"}, 2 << 30)]
)
async def test_a_worker_may_use_the_memory_of_its_skill_or_of_the_policy(make_host, sandbox, skill, count):
    async with make_host(skill=skill, memory="256M", maximum_memory="2G") as host:
        await host.call("guest.worker")
    assert [request.limits.memory for request in sandbox.requests] == [count]


async def test_workers_that_may_use_more_memory_are_a_trust_domain_of_their_own(make_host, room):
    room.may_leave.set()
    for memory in ("64M", "128M", "128M"):
        async with make_host(room.plugin, code=ENTERS, memory=memory) as host:
            await host.run(CallRequest("guest.enter", grants=()))
    assert room.domains[0] != room.domains[1] == room.domains[2]


@pytest.mark.parametrize(
    ("policy", "skill", "request_", "code", "told"),
    [
        ({}, {"memory": "5G"}, {}, "limit.memory", "`guest` requests a memory of 5G, but the policy allows at most 4G"),
        ({}, {"timeout": "4000"}, {}, "limit.timeout", "`guest` requests a timeout of 4000 s"),
        ({"maximum_timeout": 100}, {}, {"timeout": 101.0}, "limit.timeout", "the call requests a timeout of 101 s"),
        ({}, {}, {"timeout": float("inf")}, "limit.timeout", "the call requests a timeout of inf s"),
    ],
)
async def test_who_asks_for_more_than_the_policy_allows_is_refused_before_anything_runs(  # noqa: PLR0917  a table
    make_host, sandbox, policy, skill, request_, code, told
):
    async with make_host(skill=skill, **policy) as host:
        with pytest.raises(AboveMaximum, match=told) as caught:
            await host.run(CallRequest("guest.worker", **request_))
    assert (caught.value.code, caught.value.exit_code, sandbox.requests) == (code, 3, [])
    assert f"`maximum_{code.removeprefix('limit.')}` under [policy]" in caught.value.hint


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
async def test_a_timeout_that_is_no_time_is_refused(make_host, sandbox, seconds):
    async with make_host() as host:
        with pytest.raises(UsageError, match="timeout must be positive"):
            await host.run(CallRequest("guest.worker", timeout=seconds))
    assert sandbox.requests == []


async def test_the_policy_says_how_many_workers_there_may_be(make_host):
    async with make_host(workers=1) as host:
        first = await host.call("guest.worker")
        other = await host.run(CallRequest("guest.worker", principal="another"))
        assert other.output != first
        assert await host.call("guest.worker") != first


async def test_a_host_that_ends_fails_the_calls_that_run_after_they_have_closed_all(make_host, room):
    failed = []

    async def call(host):
        try:
            await host.run(CallRequest("guest.enter", grants=()))
        except SidebandError as error:
            failed.append(error.code)

    async with anyio.create_task_group() as tasks, make_host(room.plugin, code=ENTERS) as host:
        tasks.start_soon(call, host)
        await room.entered.wait()
    assert failed == ["worker.exited"]
    assert room.seen == ["op closed", "plugin left"]
    (effect,) = await query(host.ledger.folder)
    assert effect.status == "cancelled"


@pytest.mark.parametrize(("size", "aside"), [(100, False), (100_000, True)])
@pytest.mark.parametrize(("tool", "method"), [("result", "data"), ("error", "error")])
async def test_what_is_long_is_redacted_in_a_thread(  # noqa: PLR0917  a table
    make_host, monkeypatch, tool, method, size, aside
):
    threads = []

    async with make_host(code=LONG) as host:
        redact = getattr(host.redactor, method)

        def note(value):
            threads.append(threading.current_thread())
            return redact(value)

        monkeypatch.setattr(host.redactor, method, note)
        with suppress(SkillFailed):
            await host.call(f"guest.{tool}", size=size)
    assert [thread is not threading.main_thread() for thread in threads] == [aside]


def test_the_command_line_can_give_each_call_a_worker_of_its_own(sideband, make_skill):
    shown = json.loads(sideband("doctor", "--isolation", "none,call", "--json").stdout)["isolation"]
    assert (shown["required"], shown["alone"]) == ("none", True)
    assert "each call in a worker of its own" in sideband("doctor", "--isolation", "call").stdout
    words = ("call", "guest.worker", "--skill-dir", make_skill("guest", CODE), "--isolation", "call", "--json")
    assert json.loads(sideband(*words).stdout)["output"] > 0


def test_the_command_line_says_which_key_to_raise(sideband, make_skill):
    done = sideband("call", "guest.worker", "--skill-dir", make_skill("guest", CODE, memory="8G"))
    assert done.returncode == 3
    assert "8G" in done.stderr
    assert "maximum_memory" in done.stderr
