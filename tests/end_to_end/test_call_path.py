"""The path of a skill call with one op: a bound on its work, and every change of rights is seen by the next call."""

import re
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import CallRequest, Host, Plugin
from sideband.approvals import Approval
from sideband.hooks import Deny, OpCall, Phase, hookimpl
from sideband.ledger import query
from sideband.loading import SkillSources
from sideband.ops import OpContext, OpDenied, OpError, OpFamily, op
from sideband.workers import CallTimeout, GrantRequired, SkillFailed
from sideband_skills import FolderLoader

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

CALLS = 20
# About 10 % above the figures of November 2026.
HOST_CALLS = 378
WORKER_CALLS = 117
KEYED_CALLS = 460

CODE = """
import os, sys
from sideband.skill import echo, tool

calls = 0

def count(_frame, event, _argument):
    global calls
    calls += event == "call"

@tool
async def say(text: str) -> dict:
    return await echo.say(text=text)

@tool
async def worker() -> int:
    return os.getpid()

@tool
async def begin() -> None:
    sys.setprofile(count)

@tool
async def end() -> int:
    sys.setprofile(None)
    return calls

@tool
async def stay() -> None:
    await echo.stay()

@tool
async def delegate() -> None:
    await echo.delegate()
"""


class Text(BaseModel):
    text: str


class Nothing(BaseModel):
    pass


@pytest.fixture
def echo():
    """A plugin with ops that answer at once, that stay, and that start another op which outlives them."""
    state = SimpleNamespace(left=anyio.Event(), stays=anyio.Event(), late=[])

    @op("echo.say", requires="echo", record=["text"])
    async def say(params: Text, ctx: OpContext) -> dict[str, str]:
        return {"text": params.text}

    @op("echo.stay")
    async def stay(params: Nothing, ctx: OpContext) -> None:
        state.stays.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                state.late += [error.code async for error in errors_of(ctx.dispatch, "echo.say", {"text": "late"})]
            state.left.set()

    async def errors_of(function, *arguments):
        try:
            await function(*arguments)
        except OpError as error:
            yield error

    @op("echo.delegate")
    async def delegate(params: Nothing, ctx: OpContext) -> None:
        state.tasks.start_soon(ignoring_errors, ctx.dispatch, "echo.stay", {})
        await anyio.wait_all_tasks_blocked()

    async def ignoring_errors(function, *arguments):
        with suppress(OpError):
            await function(*arguments)

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as state.tasks:
            yield
            state.tasks.cancel_scope.cancel()

    family = OpFamily("echo", (say, stay, delegate))
    state.plugin = Plugin("op", "echo", SimpleNamespace(sideband_ops=lambda: family, lifespan=lifespan))
    return state


@pytest.fixture
def folder(make_skill):
    return make_skill("skill", CODE, "echo")


@pytest.fixture
def make_host(tmp_path, folder, echo):
    def make(*plugins, **options):
        settings = {"policy": {"isolation": "none"}, "grants": {"skill": ["echo"]}}
        options = {"settings": settings, "skill_dirs": [folder], **options}
        return Host(home=tmp_path / "home", plugins=[echo.plugin, *plugins], **options)

    return make


@contextmanager
def counting():
    """Count the Python functions that this thread calls, those of ``asyncio`` and anyio too, and what it sends."""
    found = SimpleNamespace(calls=0, sent=0)

    def profile(_frame, event, argument):
        found.calls += event == "call"
        found.sent += event == "c_call" and argument.__qualname__ == "socket.send"

    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(None)


async def test_skill_call_with_one_op_makes_few_calls_in_host_and_worker(make_host):
    async with make_host() as host:
        for _ in range(3):
            await host.call("skill.say", text="hello")
        await host.call("skill.begin")
        with counting() as found:
            for _ in range(CALLS):
                await host.call("skill.say", text="hello")
        in_worker = await host.call("skill.end")
    remedy = "shorten what you added to the path; `benchmarks/skill_call.py` shows what it costs"
    assert found.calls / CALLS < HOST_CALLS, f"{found.calls / CALLS:.0f} calls in the host: {remedy}"
    assert in_worker / CALLS < WORKER_CALLS, f"{in_worker / CALLS:.0f} calls in the worker: {remedy}"


async def test_call_with_a_key_makes_few_calls_in_the_host(make_host):
    async with make_host() as host:
        for number in range(3):
            await host.run(CallRequest("skill.worker", key=f"before-{number}"))
        with counting() as found:
            for number in range(CALLS):
                await host.run(CallRequest("skill.worker", key=f"key-{number}"))
    remedy = "make what all keyed calls share once"
    assert found.calls / CALLS < KEYED_CALLS, f"{found.calls / CALLS:.0f} calls in the host: {remedy}"


async def test_lines_for_many_calls_in_flight_are_sent_together(make_host):
    async with make_host() as host:
        await host.call("skill.say", text="hello")
        with counting() as found:
            async with anyio.create_task_group() as tasks:
                for _ in range(64):
                    tasks.start_soon(partial(host.call, "skill.say", text="hello"))
    assert found.sent < 64, f"{found.sent} writes for 64 calls: send lines through `WorkerChannel.send_soon`"


def is_running(pid):
    return Path(f"/proc/{pid}").exists()


async def test_grant_that_is_revoked_between_two_calls_of_a_worker_is_gone(make_host, tmp_path):
    answers = iter([Approval("allow", "always"), Approval("deny")])

    async def answer(request):
        return next(answers)

    async with make_host(settings={"policy": {"isolation": "none"}}, approver=answer) as host:
        await host.call("skill.say", text="one")
        worker = await host.call("skill.worker")
        file = tmp_path / "home" / "grants.toml"
        file.write_text(re.sub("capabilities = .*", "capabilities = []", file.read_text()))
        with pytest.raises(GrantRequired):
            await host.call("skill.say", text="two")
        assert is_running(worker)
        assert len(await query(host.ledger.folder, op="echo.say")) == 1


async def test_grant_of_a_single_call_has_its_own_worker_and_does_not_last(make_host):
    async with make_host() as host:
        await host.call("skill.say", text="one")
        worker = await host.call("skill.worker")
        assert (await host.run(CallRequest("skill.worker", grants=()))).output != worker
        assert await host.call("skill.worker") == worker
        with pytest.raises(SkillFailed, match="not granted"):
            await host.run(CallRequest("skill.say", {"text": "two"}, grants=()))
        await host.call("skill.say", text="three")
        effects = await query(host.ledger.folder, op="echo.say")
    assert sorted(effect.status for effect in effects) == ["denied", "done", "done"]


async def test_skill_that_is_now_one_of_the_project_loses_the_grants_of_the_policy(make_host, folder, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text('[policy]\nisolation = "none"\n[grants]\nskill = ["echo"]\n')
    places = iter([SkillSources(folders=(folder,)), SkillSources(project_folders=(folder,))])

    async def load(sources):
        return await FolderLoader().load(next(places))

    moving = SimpleNamespace(sideband_loaders=lambda: [SimpleNamespace(name="moving", load=load)])
    async with make_host(Plugin("loader", "moving", moving), skill_dirs=[], settings=None) as host:
        await host.call("skill.say", text="one")
        host.tools.forget_skills()
        with pytest.raises(GrantRequired):
            await host.call("skill.say", text="two")


async def test_code_of_a_skill_that_is_loaded_again_runs_at_once(make_host, folder):
    async with make_host() as host:
        await host.call("skill.say", text="one")
        (folder / "tools.py").write_text(CODE.replace("echo.say(text=text)", "echo.say(text='new')"))
        host.tools.forget_skills()
        assert await host.call("skill.say", text="two") == {"text": "new"}


async def test_secret_that_is_protected_between_two_calls_is_redacted_in_the_second(make_host):
    async with make_host() as host:
        assert await host.call("skill.say", text="new-secret") == {"text": "new-secret"}
        host.redactor.protect("new-secret", "late")
        assert await host.call("skill.say", text="new-secret") == {"text": "[redacted:late]"}
        newest, oldest = await query(host.ledger.folder, op="echo.say")
    assert (oldest.params, newest.params) == ({"text": "new-secret"}, {"text": "[redacted:late]"})


class Silence:
    @hookimpl
    def op_call(self, event: OpCall) -> Deny:
        return Deny("be quiet")


async def test_guard_that_is_added_between_two_calls_decides_about_the_second(make_host):
    async with make_host() as host:
        await host.call("skill.say", text="one")
        host.hooks.register("silence", Silence(), phase=Phase.GUARD)
        with pytest.raises(SkillFailed, match="be quiet") as caught:
            await host.call("skill.say", text="two")
    assert caught.value.__cause__.code == OpDenied.code


async def test_guards_decide_about_the_effects_of_a_call_with_a_key_but_not_about_its_record(make_host):
    async with make_host() as host:
        host.hooks.register("silence", Silence(), phase=Phase.GUARD)
        assert (await host.run(CallRequest("skill.worker", key="k"))).output
        with pytest.raises(SkillFailed, match="be quiet"):
            await host.run(CallRequest("skill.say", {"text": "one"}, key="other"))


@BOTH_BACKENDS
async def test_op_that_outlasts_the_call_of_its_skill_is_recorded_as_timed_out(make_host, echo):
    async with make_host() as host:
        with pytest.raises(CallTimeout):
            await host.run(CallRequest("skill.stay", timeout=0.5))
        (effect,) = await query(host.ledger.folder, op="echo.stay")
    assert (effect.status, effect.error["code"]) == ("failed", "op.timeout")


@pytest.mark.parametrize("anyio_backend", ["asyncio", pytest.param("trio", marks=pytest.mark.long)])
async def test_op_that_an_op_started_in_a_task_of_its_plugin_ends_at_the_deadline_of_the_call(make_host, echo):
    async with make_host() as host:
        await host.run(CallRequest("skill.delegate", timeout=1.5))
        with anyio.fail_after(20):
            await echo.left.wait()


@BOTH_BACKENDS
@pytest.mark.parametrize("tool", ["stay", "delegate"])
async def test_op_of_a_cancelled_call_cannot_dispatch(make_host, echo, tool):
    async with make_host() as host:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.call, f"skill.{tool}")
            await echo.stays.wait()
            tasks.cancel_scope.cancel()
        if tool == "delegate":  # it started another op in a task of its plugin, which goes on
            echo.tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await echo.left.wait()
        assert echo.late == ["op.revoked"]
        (late,) = await query(host.ledger.folder, op="echo.say")
    assert (late.status, late.error["code"]) == ("denied", "op.revoked")


@BOTH_BACKENDS
async def test_op_of_a_call_past_its_deadline_cannot_dispatch(make_host, echo):
    async with make_host() as host:
        with pytest.raises(CallTimeout):
            await host.run(CallRequest("skill.stay", timeout=0.5))
        assert echo.late == ["op.revoked"]
