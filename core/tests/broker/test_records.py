"""Ledger records of dispatches: limited in size, redacted, and written also after cancellation."""

import math

import anyio
import pytest
from pydantic import BaseModel
from sideband import hookimpl
from sideband.approvals import Approval
from sideband.broker import KeyReused
from sideband.hooks import Allow, Ask, Deny, Replace
from sideband.ledger import LedgerUnwritable
from sideband.ops import EffectUnknown, Level, OpContext, OpDenied, OpNotFound, OpParamsInvalid, OpTimeout, Origin, op

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

CANARY = "canary-7f3a9c51"


class Note(BaseModel):
    text: str = ""
    number: float = 0.0
    raw: bytes = b""
    items: list[int] = []


@op("note.write", record=["text", "number", "raw", "items"])
async def write(params: Note, ctx: OpContext) -> str:
    return "written"


@op("note.pay", level=Level.RESTRICTED, timeout=5)
async def pay(params: Note, ctx: OpContext) -> str:
    return "paid"


@pytest.fixture
def note(family):
    return family("note", write, pay)


@both_backends
async def test_dispatch_cancelled_while_a_guard_decides_is_recorded_as_cancelled(make_host, note, hook, outcomes):
    @hookimpl
    async def op_call(event):
        await anyio.sleep_forever()

    async with make_host(note, hook("slow", op_call)) as host:
        with anyio.move_on_after(0.05):
            await host.op("note.write", {}, key="k")
    assert [(line["op"], line["status"], line["error"]["code"]) for line in outcomes()] == [
        ("note.write", "cancelled", "op.cancelled")
    ]


async def test_name_of_an_unknown_op_is_redacted_and_truncated_in_its_record(make_host, note, outcomes):
    async with make_host(note) as host:
        host.redactor.protect(CANARY, "canary")
        with pytest.raises(OpNotFound):
            await host.op(f"note.{CANARY}" + "x" * 500, {})
    (line,) = outcomes()
    assert CANARY not in line["op"]
    assert len(line["op"]) == 200


async def test_rejected_request_of_a_worker_is_redacted_and_truncated_in_its_record(make_host, outcomes):
    async with make_host() as host:
        host.redactor.protect(CANARY, "canary")
        await host.broker.record_refusal(CANARY + "x" * 500, Origin(), "worker.protocol", f"it said {CANARY}")
    (line,) = outcomes()
    assert CANARY not in str(line)
    assert len(line["op"]) == 200


async def test_known_secret_in_an_invalid_parameter_is_redacted_in_the_error(make_host, note):
    async with make_host(note) as host:
        host.redactor.protect(CANARY, "canary")
        with pytest.raises(OpParamsInvalid) as caught:
            await host.op("note.write", {"text": [CANARY]})
    assert "[redacted:canary]" in str(caught.value)
    assert CANARY not in str(caught.value)


async def test_long_value_of_an_invalid_parameter_is_omitted_in_the_error(make_host, note):
    async with make_host(note) as host:
        with pytest.raises(OpParamsInvalid) as caught:
            await host.op("note.write", {"text": ["x" * 5_000]})
    assert len(str(caught.value)) < 300


async def test_name_of_an_unknown_parameter_is_truncated_in_the_record(make_host, note, outcomes):
    async with make_host(note) as host:
        with pytest.raises(OpParamsInvalid):
            await host.op("note.write", {"x" * 5_000: 1, "text": 5})
    assert "x" * 40 in outcomes()[0]["params"]


async def test_parameters_that_json_cannot_represent_are_recorded_without_values(make_host, note, ledger_lines):
    async with make_host(note) as host:
        assert await host.op("note.write", {"number": math.inf, "text": "hello"}) == "written"
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["params"] == {"number": "…", "text": "…"}


async def test_long_strings_lists_and_bytes_are_shortened_in_the_record(make_host, note, ledger_lines):
    async with make_host(note) as host:
        await host.op("note.write", {"text": "x" * 600, "items": list(range(60)), "raw": b"\0" * 9})
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["params"] == {"text": "x" * 500 + "…", "items": [*range(50), "…"], "raw": "(9 bytes)"}


async def test_note_of_a_guard_is_redacted_in_the_record(make_host, note, hook, ledger_lines):
    @hookimpl
    def op_call(event):
        return Allow(f"the value is {CANARY}")

    async with make_host(note, hook("talker", op_call)) as host:
        host.redactor.protect(CANARY, "canary")
        await host.op("note.write", {})
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["decisions"][0]["note"] == "the value is [redacted:canary]"


def question():
    @hookimpl
    def op_call(event):
        return Ask("Really?")

    return op_call


async def test_replacements_and_questions_of_guards_are_recorded(make_host, note, hook, ledger_lines):
    @hookimpl
    def op_call(event):
        return Replace({"text": "tame"}) if event.params.get("text") == "wild" else None

    asks = question()

    asked = []

    async def approver(request):
        asked.append(dict(request.effect))
        return Approval("allow")

    plugins = [hook("tamer", op_call), hook("asker", asks)]
    async with make_host(note, *plugins, approver=approver) as host:
        await host.op("note.write", {"text": "wild"})
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["decisions"][:2] == [
        {"plugin": "tamer", "said": "replace"},
        {"plugin": "asker", "said": "ask", "note": "Really?"},
    ]
    assert (intent["decisions"][2]["by"], intent["decisions"][2]["said"]) == ("approver", "approve")
    # The approver sees the parameters that will run, not the original ones.
    assert asked == [{"text": "tame"}]


async def test_denial_after_a_replacement_is_recorded_with_the_replaced_parameters(make_host, note, hook, outcomes):
    @hookimpl
    def op_call(event):
        return Replace({"text": "tame"}) if event.params.get("text") == "wild" else None

    asks = question()

    async with make_host(note, hook("tamer", op_call), hook("asker", asks)) as host:
        with pytest.raises(OpDenied):
            await host.op("note.write", {"text": "wild"})
    assert outcomes()[0]["params"] == {"text": "tame"}


@both_backends
async def test_finished_effect_of_a_cancelled_caller_is_recorded_as_done(make_host, family, outcomes):
    scope = anyio.CancelScope()

    @op("late.do", level=Level.RESTRICTED)
    async def do(params: Note, ctx: OpContext) -> str:
        scope.cancel()
        return "done"

    async with make_host(family("late", do)) as host:
        with scope:
            await host.op("late.do", {}, key="k")
        assert await host.op("late.do", {}, key="k") == "done"
    assert outcomes()[0]["status"] == "done"


@both_backends
async def test_cancelled_effect_with_a_key_is_unknown(make_host, family, outcomes):
    @op("late.hang", level=Level.RESTRICTED)
    async def hang(params: Note, ctx: OpContext) -> str:
        scope.cancel()
        await anyio.sleep_forever()

    async with make_host(family("late", hang)) as host:
        with anyio.CancelScope() as scope:
            await host.op("late.hang", {}, key="k")
        assert outcomes()[0]["status"] == "cancelled"
        with pytest.raises(EffectUnknown):
            await host.op("late.hang", {}, key="k")


@both_backends
async def test_idempotent_effect_that_timed_out_can_be_retried_with_its_key(make_host, family):
    tries = []

    @op("late.read", level=Level.SAFE, timeout=0.05)
    async def read(params: Note, ctx: OpContext) -> str:
        tries.append(1)
        if len(tries) == 1:
            await anyio.sleep_forever()
        return "read"

    async with make_host(family("late", read)) as host:
        with pytest.raises(OpTimeout):
            await host.op("late.read", {}, key="k")
        assert await host.op("late.read", {}, key="k") == "read"


async def test_rejected_dispatch_does_not_change_the_claim_of_its_key(make_host, note, outcomes):
    async with make_host(note) as host:
        assert await host.op("note.pay", {"text": "a"}, key="k") == "paid"
        with pytest.raises(KeyReused):
            await host.op("note.pay", {"text": "b"}, key="k")
        with pytest.raises(KeyReused):
            await host.op("note.pay", {"text": "b"}, key="k")
    assert "key" not in outcomes()[1]


@both_backends
@pytest.mark.parametrize("how", ["fails", "is cancelled"])
async def test_key_is_released_if_the_intent_is_not_written(make_host, note, monkeypatch, how, tmp_path):
    scope = anyio.CancelScope()

    async def intent(entry, *, durable, unless):
        if how == "fails":
            raise LedgerUnwritable(tmp_path, OSError(28, "No space left on device"))
        scope.cancel()
        await anyio.sleep_forever()

    async with make_host(note) as host:
        with monkeypatch.context() as patch:
            patch.setattr(host.ledger, "intent", intent)
            try:
                with scope:
                    await host.op("note.pay", {}, key="k")
            except LedgerUnwritable:
                pass
        assert await host.op("note.pay", {}, key="k") == "paid"


@pytest.fixture
def harm(family):
    @op("harm.read", level=Level.MONITORED)
    async def read(params: Note, ctx: OpContext) -> None: ...

    @op("harm.set", level=Level.CONTROLLED, idempotent=True)
    async def put(params: Note, ctx: OpContext) -> None: ...

    @op("harm.add", level=Level.CONTROLLED)
    async def add(params: Note, ctx: OpContext) -> None: ...

    return family("harm", read, put, add)


@pytest.mark.parametrize(("name", "intents"), [("read", 0), ("set", 0), ("add", 1)])
async def test_only_effects_that_change_something_and_cannot_be_repeated_are_synced(
    make_host, harm, syncs, name, intents
):
    async with make_host(harm) as host:
        await host.op("harm.read", {})
        syncs.clear()
        await host.op(f"harm.{name}", {})
        assert len(syncs) == intents


async def test_outcome_of_a_change_is_synced_before_the_next_effect(make_host, harm, syncs):
    async with make_host(harm) as host:
        await host.op("harm.add", {})
        syncs.clear()
        await host.op("harm.read", {})
        await host.op("harm.read", {})
        assert len(syncs) == 1


async def test_outcome_of_an_effect_with_a_key_has_the_result(make_host, note, outcomes):
    async with make_host(note) as host:
        await host.op("note.pay", {}, key="k")
        await host.op("note.pay", {})
    assert [line.get("result") for line in outcomes()] == ["paid", None]


async def test_effect_report_has_status_decision_and_parameters(make_host, note):
    reports = []
    async with make_host(note) as host:
        await host.op("note.write", {"text": "a"}, on_effect=reports.append)
    assert [(one.op, one.status, one.decision, dict(one.params)) for one in reports] == [
        ("note.write", "done", "no capability required", {"text": "a"})
    ]


async def test_reason_of_a_guard_is_redacted_in_error_and_record(make_host, note, hook, outcomes):
    @hookimpl
    def op_call(event):
        return Deny(f"no {CANARY} here")

    async with make_host(note, hook("strict", op_call)) as host:
        host.redactor.protect(CANARY, "canary")
        with pytest.raises(OpDenied, match=r"no \[redacted:canary\] here") as caught:
            await host.op("note.write", {})
    assert CANARY not in str(caught.value.as_dict())
    assert CANARY not in str(outcomes())


async def test_long_value_with_a_secret_is_omitted_entirely(make_host, note):
    canary = "canary-7f3a9c51"
    async with make_host(note) as host:
        host.redactor.protect(canary, "canary")
        with pytest.raises(OpParamsInvalid) as caught:
            await host.op("note.write", {"text": ["x" * 12 + canary + "x" * 5_000]})
    assert canary[:4] not in str(caught.value)
