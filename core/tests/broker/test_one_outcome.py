"""Faulty plugin code: each dispatch ends with one typed error and one outcome."""

import errno
import math
import threading
from contextlib import suppress

import anyio
import attrs
import pytest
from pydantic import BaseModel, field_validator
from sideband import hookimpl
from sideband.hooks import Redactor
from sideband.ledger import LedgerUnwritable
from sideband.ops import Level, OpContext, OpError, OpFailed, OpParamsInvalid, OpTimeout, Scope, op

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

CANARY = "canary-7f3a9c51"


class Text(BaseModel):
    text: str = ""
    number: float = 0.0


class Picky(BaseModel):
    text: str = ""

    @field_validator("text")
    @classmethod
    def _break(cls, value):
        return {}[value]


@attrs.frozen
class OddScope(Scope, family="odd"):
    text: str | None = None


@op("odd.scope", requires="odd", scope=lambda params: {}[params.text])
async def bad_scope(params: Text, ctx: OpContext) -> str:
    return "ran"


@op("odd.validator")
async def bad_validator(params: Picky, ctx: OpContext) -> str:
    return "ran"


@op("odd.deep")
async def deep(params: Text, ctx: OpContext) -> list:
    found = []
    for _ in range(5_000):
        found = [found]
    return found


@op("odd.surrogate")
async def surrogate(params: Text, ctx: OpContext) -> str:
    return "\ud800"


@op("odd.say", record=["text"])
async def say(params: Text, ctx: OpContext) -> str:
    return "said"


@op("odd.pay", level=Level.CONTROLLED)
async def pay(params: Text, ctx: OpContext) -> str:
    return "paid"


@op("odd.exit")
async def leave(params: Text, ctx: OpContext) -> str:
    raise SystemExit(3)


@pytest.fixture
def odd(family):
    return family("odd", bad_scope, bad_validator, deep, surrogate, say, pay, leave, scope=OddScope)


@pytest.mark.parametrize(
    "case",
    [
        ("odd.scope", {"text": "a"}, None),
        ("odd.validator", {"text": "a"}, None),
        ("odd.deep", {}, None),
        ("odd.surrogate", {}, None),
        ("odd.say", {"number": math.inf}, "k"),
    ],
)
async def test_failure_of_plugin_code_gives_one_typed_error_and_one_outcome(make_host, odd, outcomes, case):
    name, params, key = case
    async with make_host(odd) as host:
        with pytest.raises(OpError):
            await host.op(name, params, key=key)
    assert [line["op"] for line in outcomes()] == [name]


async def bad_cleanup():
    try:
        await anyio.sleep_forever()
    finally:
        raise ValueError("cleanup")


@op("odd.group", timeout=0.1)
async def group(params: Text, ctx: OpContext) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bad_cleanup)
        tasks.start_soon(anyio.sleep_forever)


@both_backends
async def test_exception_group_at_the_timeout_becomes_a_timeout(make_host, family, outcomes):
    async with make_host(family("odd", group)) as host:
        with pytest.raises(OpTimeout):
            await host.op("odd.group", {})
    assert len(outcomes()) == 1


@both_backends
async def test_exception_group_of_a_cancelled_handler_has_one_outcome(make_host, family, outcomes):
    async with make_host(family("odd", group)) as host:
        try:
            with anyio.move_on_after(0.03):
                await host.op("odd.group", {})
        except OpFailed:
            pass
    assert len(outcomes()) == 1


async def test_effect_does_not_begin_after_the_deadline_of_its_call(make_host, family):
    ran = []

    @op("odd.late")
    async def late(params: Text, ctx: OpContext) -> None:
        ran.append(1)

    async with make_host(family("odd", late)) as host:
        with pytest.raises(OpTimeout):
            await host.op("odd.late", {}, deadline=-1)
    assert not ran


async def test_failing_listener_does_not_affect_the_effect(make_host, odd):
    def listener(effect):
        raise RuntimeError("the listener's own problem")

    async with make_host(odd) as host:
        assert await host.op("odd.say", {}, on_effect=listener) == "said"


@both_backends
async def test_key_of_a_dispatch_cancelled_during_its_claim_is_free(make_host, odd, outcomes, monkeypatch):
    """The intent is in the ledger, but the effect never began."""
    began, may_end = threading.Event(), threading.Event()

    def sync(_):
        began.set()
        may_end.wait(20)

    async with make_host(odd) as host:
        await host.op("odd.pay", {}, key="first")
        with monkeypatch.context() as patch:
            patch.setattr("sideband.ledger._commit.sync_data", sync)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: host.op("odd.pay", {}, key="syncs"))
                await anyio.to_thread.run_sync(began.wait, 20)
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as others:
                        others.start_soon(lambda: host.op("odd.pay", {}, key="k"))
                        await anyio.wait_all_tasks_blocked()
                        scope.cancel()
                may_end.set()
        assert scope.cancelled_caught
        assert await host.op("odd.pay", {}, key="k") == "paid"
    assert [(line["status"], line["state"]) for line in outcomes() if line["key"] == "k"] == [
        ("cancelled", "failed"),
        ("done", "done"),
    ]


async def test_key_of_an_effect_whose_intent_could_not_be_synced_is_free(make_host, odd, outcomes, monkeypatch):
    def fail(_):
        raise OSError(errno.EIO, "I/O error")

    async with make_host(odd) as host:
        await host.op("odd.say", {})
        with monkeypatch.context() as patch:
            patch.setattr("sideband.ledger._commit.sync_data", fail)
            with pytest.raises(LedgerUnwritable):
                await host.op("odd.pay", {}, key="k")
    async with make_host(odd) as host:
        assert await host.op("odd.pay", {}, key="k") == "paid"
    assert [(line["status"], line["state"]) for line in outcomes()[1:]] == [("failed", "failed"), ("done", "done")]


async def test_patterns_of_plugins_are_redacted(make_host, family, hook):
    @hookimpl
    def redactors(event):
        return [Redactor("forge", "forge_[a-z]+")]

    @op("odd.token")
    async def token(params: Text, ctx: OpContext) -> str:
        return "it is forge_abcdef"

    async with make_host(family("odd", token), hook("forge", redactors)) as host:
        assert await host.op("odd.token", {}) == "it is [redacted:forge]"


async def test_secret_in_the_name_of_an_op_or_parameter_is_not_recorded(make_host, odd, outcomes):
    async with make_host(odd) as host:
        host.redactor.protect(CANARY, "canary")
        for name, params in ((f"odd.{CANARY}", {}), ("odd.say", {CANARY: 1})):
            with suppress(OpError):
                await host.op(name, params)
    assert CANARY not in str(outcomes())


async def test_message_is_redacted_before_it_is_truncated(make_host, odd, family):
    @op("cut.raise")
    async def fail(params: Text, ctx: OpContext) -> None:
        raise ValueError("x" * 1_990 + CANARY)

    async with make_host(odd, family("cut", fail)) as host:
        host.redactor.protect(CANARY, "canary")
        with pytest.raises(OpParamsInvalid) as caught:
            await host.op("odd.say", {"text": ["x" * 47 + CANARY]})
        assert CANARY[:8] not in str(caught.value)
        with pytest.raises(OpFailed) as failed:
            await host.op("cut.raise", {})
        assert CANARY[:8] not in str(failed.value)


class Lost(OpFailed):
    code = "lost.all"
    details = ("found",)

    @property
    def found(self):
        raise ValueError("not even this")


class Countless(OpFailed):
    code = "lost.all"
    details = 5


class Bare(OpFailed):
    code = "lost.all"

    def __init__(self, where):
        self.where = where


@pytest.mark.parametrize("error", [Lost, Countless, Bare])
async def test_error_with_faulty_attributes_is_recorded_with_its_code(make_host, family, outcomes, error):
    @op("lost.raise")
    async def fail(params: Text, ctx: OpContext) -> None:
        raise error("lost")

    async with make_host(family("lost", fail)) as host:
        with pytest.raises(OpFailed) as raised:
            await host.op("lost.raise", {}, key="k")
    assert (raised.value.code, outcomes()[-1]["status"]) == ("lost.all", "failed")
