"""The limits of calls, the sharing of workers, and the reported isolation."""

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
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

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
    """A sandbox that claims one tier, launches on another, and records the launch requests."""

    def __init__(self):
        super().__init__()
        self.claimed = Isolation.FULL
        self.actual = Isolation.NO_NAMESPACES
        self.requests = []

    async def probe(self, folders=()):
        return Probe(self.claimed)

    async def launch(self, request):
        self.requests.append(request)
        return await launch(request, isolation=self.actual)


@pytest.fixture
def sandbox():
    return Counting()


@pytest.fixture
def make_host(tmp_path, make_skill, sandbox):
    """Return a function that creates a host with the skill ``guest`` and the fixture ``sandbox``."""

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
    """A plugin with an op that blocks until ``may_leave`` is set, and a log of its events."""
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


async def test_call_and_effects_report_the_actual_isolation_of_the_worker(make_host, room):
    room.may_leave.set()
    async with make_host(room.plugin, code=ENTERS) as host:
        result = await host.run(CallRequest("guest.enter", grants=()))
        assert (await host.sandbox.probe()).isolation is Isolation.FULL
        assert result.isolation == "no-namespaces"
        effects = await query(host.ledger.folder)
    assert [effect.isolation for effect in effects] == ["no-namespaces"]


async def test_worker_below_the_required_tier_is_refused(make_host, sandbox):
    sandbox.actual = Isolation.NONE
    async with make_host() as host:
        with pytest.raises(WorkerError) as caught:
            await host.call("guest.worker")
    assert caught.value.code == "isolation.unavailable"


async def test_hint_for_weaker_isolation_keeps_one_worker_per_call(make_host, sandbox):
    sandbox.claimed = Isolation.NO_NAMESPACES
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
async def test_policy_skill_and_caller_can_request_one_worker_per_call(make_host, policy, skill, alone):
    async with make_host(skill=skill, **policy) as host:
        seen = [(await host.run(CallRequest("guest.worker", alone=alone))).output for _ in range(2)]
    assert len(set(seen)) == 2


@pytest.mark.parametrize(
    ("skill", "count"), [({}, 256 << 20), ({"memory": "64M"}, 64 << 20), ({"memory": "2G"}, 2 << 30)]
)
async def test_memory_limit_comes_from_the_skill_or_else_the_policy(make_host, sandbox, skill, count):
    async with make_host(skill=skill, memory="256M", maximum_memory="2G") as host:
        await host.call("guest.worker")
    assert [request.limits.memory for request in sandbox.requests] == [count]


async def test_memory_limit_is_part_of_the_trust_domain(make_host, room):
    room.may_leave.set()
    for memory in ("64M", "128M", "128M"):
        async with make_host(room.plugin, code=ENTERS, memory=memory) as host:
            await host.run(CallRequest("guest.enter", grants=()))
    assert room.domains[0] != room.domains[1] == room.domains[2]


@pytest.mark.parametrize(
    ("policy", "skill", "request_", "code", "parts"),
    [
        pytest.param({}, {"memory": "5G"}, {}, "limit.memory", ("guest", "5G", "4G"), id="memory of skill"),
        pytest.param({}, {"timeout": "4000"}, {}, "limit.timeout", ("guest", "4000", "3600"), id="timeout of skill"),
        pytest.param(
            {"maximum_timeout": 100}, {}, {"timeout": 101.0}, "limit.timeout", ("call", "101"), id="timeout of call"
        ),
        pytest.param({}, {}, {"timeout": float("inf")}, "limit.timeout", ("call", "inf"), id="infinite timeout"),
    ],
)
async def test_request_above_the_maximum_is_refused_before_a_worker_starts(  # noqa: PLR0917  a table
    make_host, sandbox, policy, skill, request_, code, parts
):
    async with make_host(skill=skill, **policy) as host:
        with pytest.raises(AboveMaximum) as caught:
            await host.run(CallRequest("guest.worker", **request_))
    assert (caught.value.code, caught.value.exit_code, sandbox.requests) == (code, 3, [])
    assert [part for part in parts if part not in caught.value.message] == []
    assert f"`maximum_{code.removeprefix('limit.')}` under [policy]" in caught.value.hint


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
async def test_timeout_that_is_not_positive_is_refused(make_host, sandbox, seconds):
    async with make_host() as host:
        with pytest.raises(UsageError, match="timeout"):
            await host.run(CallRequest("guest.worker", timeout=seconds))
    assert sandbox.requests == []


@BOTH_BACKENDS
async def test_policy_limits_the_number_of_workers(make_host):
    async with make_host(workers=1) as host:
        first = await host.call("guest.worker")
        other = await host.run(CallRequest("guest.worker", principal="another"))
        assert other.output != first
        assert await host.call("guest.worker") != first


@BOTH_BACKENDS
async def test_closing_host_fails_running_calls_and_closes_ops_before_plugins(make_host, room):
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


@pytest.mark.parametrize(("size", "in_thread"), [(100, False), (100_000, True)])
@pytest.mark.parametrize(("tool", "method"), [("result", "data"), ("error", "error")])
async def test_long_data_is_redacted_in_a_thread(  # noqa: PLR0917  a table
    make_host, monkeypatch, tool, method, size, in_thread
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
    assert [thread is not threading.main_thread() for thread in threads] == [in_thread]


def test_isolation_option_can_request_one_worker_per_call(sideband, make_skill):
    shown = json.loads(sideband("doctor", "--isolation", "none,call", "--json").stdout)["isolation"]
    assert (shown["required"], shown["alone"]) == ("none", True)
    assert "one worker for each call" in sideband("doctor", "--isolation", "call").stdout
    words = ("call", "guest.worker", "--skill-dir", make_skill("guest", CODE), "--isolation", "call", "--json")
    assert json.loads(sideband(*words).stdout)["output"] > 0


def test_error_above_a_maximum_names_the_setting(sideband, make_skill):
    done = sideband("call", "guest.worker", "--skill-dir", make_skill("guest", CODE, memory="8G"))
    assert done.returncode == 3
    assert "8G" in done.stderr
    assert "maximum_memory" in done.stderr
