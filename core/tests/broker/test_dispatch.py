"""The steps of ``Broker.dispatch``: look-up, validation, authorization, execution and recording."""

import math
import shlex

import anyio
import attrs
import pytest
from pydantic import BaseModel, ConfigDict, field_validator
from sideband import hookimpl
from sideband.broker import SessionEnds
from sideband.hooks import Redactor
from sideband.ops import (
    CapabilityInvalid,
    Level,
    LimitExceeded,
    OpCancelled,
    OpContext,
    OpDenied,
    OpError,
    OpFailed,
    OpNotFound,
    OpParamsInvalid,
    OpResultInvalid,
    OpTimeout,
    Origin,
    Scope,
    op,
)

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Text(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = ""
    secret: str = ""


@attrs.frozen
class EchoScope(Scope, family="echo"):
    text: str | None = None


@op("echo.say", requires="echo", scope=lambda params: EchoScope(text=params.text), level=Level.SAFE, record=["text"])
async def say(params: Text, ctx: OpContext) -> str:
    return params.text


@op("echo.fail")
async def fail(params: Text, ctx: OpContext) -> str:
    raise KeyError(params.text)


@op("echo.hang", timeout=0.05)
async def hang(params: Text, ctx: OpContext) -> str:
    await anyio.sleep_forever()


@op("echo.lie")
async def lie(params: Text, ctx: OpContext) -> int:
    return "not a number"


@op("echo.nan")
async def nan(params: Text, ctx: OpContext) -> float:
    return math.nan


@op("echo.nest")
async def nest(params: Text, ctx: OpContext) -> None:
    await ctx.dispatch("echo.nest", {})


class Many(BaseModel):
    values: dict[str, int] | list[int] = {}
    origin: str = ""

    @field_validator("origin")
    @classmethod
    def _checked(cls, origin: str) -> str:
        if origin:
            raise ValueError("an origin has a scheme")
        return origin


@op("echo.many")
async def many(params: Many, ctx: OpContext) -> None:
    return None


@pytest.fixture
def echo(family):
    return family("echo", say, fail, hang, lie, nan, nest, many, scope=EchoScope)


@both_backends
async def test_op_returns_its_result_and_records_intent_and_outcome(make_host, echo, ledger_lines):
    async with make_host(echo) as host:
        assert await host.op("echo.say", {"text": "hello"}) == "hello"
    effect = [line for line in ledger_lines() if line.get("op") == "echo.say"]
    assert [line["kind"] for line in effect] == ["intent", "outcome"]
    assert effect[0]["effect"] == effect[1]["effect"]
    assert effect[1]["status"] == "done"


async def test_ledger_contains_only_recordable_parameters(make_host, echo, ledger_lines):
    async with make_host(echo) as host:
        await host.op("echo.say", {"text": "shown", "secret": "hidden-value"})
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["params"] == {"text": "shown", "secret": "…"}


async def test_unknown_op_is_recorded_and_rejected_with_a_suggestion(make_host, echo, outcomes):
    async with make_host(echo) as host:
        with pytest.raises(OpNotFound, match=r"did you mean `echo.say`"):
            await host.op("echo.sya", {})
    assert outcomes()[0]["error"]["code"] == "op.unknown"


async def test_invalid_parameter_error_has_name_and_value_and_the_op_does_not_run(make_host, echo, ledger_lines):
    async with make_host(echo) as host:
        with pytest.raises(OpParamsInvalid, match=r"`text`: expected a string \(got '5'\)"):
            await host.op("echo.say", {"text": 5})
    assert not [line for line in ledger_lines() if line["kind"] == "intent"]


async def test_error_omits_the_value_of_an_unrecordable_parameter(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpParamsInvalid) as caught:
            await host.op("echo.say", {"secret": ["hidden-value"]})
    assert "hidden-value" not in str(caught.value)


async def test_value_that_matches_no_branch_of_a_union_is_one_problem(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpParamsInvalid) as caught:
            await host.op("echo.many", {"values": "x"})
    assert caught.value.message == "echo.many: `values`: expected an object or a list"


async def test_message_of_a_custom_validator_is_unchanged(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpParamsInvalid) as caught:
            await host.op("echo.many", {"origin": "x"})
    assert caught.value.message == "echo.many: `origin`: an origin has a scheme"


async def test_unknown_parameter_is_rejected_with_a_suggestion(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpParamsInvalid, match=r"`txet`.*did you mean `text`"):
            await host.op("echo.say", {"txet": "x"})


async def test_capability_in_the_hint_is_quoted_for_a_shell(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpDenied) as caught:
            await host.op("echo.say", {"text": "it's"}, grants=["echo:text=yes"])
    words = shlex.split(caught.value.hint.partition("; ")[0])
    assert words[words.index("--grant") + 1] == "echo:text=it's"


async def test_insufficient_grant_denies_the_op_without_an_intent(make_host, echo, ledger_lines):
    async with make_host(echo) as host:
        with pytest.raises(OpDenied, match="`echo:text=no` is not granted"):
            await host.op("echo.say", {"text": "no"}, grants=["echo:text=yes"])
        assert await host.op("echo.say", {"text": "yes"}, grants=["echo:text=yes"]) == "yes"
    effects = [line for line in ledger_lines() if line["kind"] in ("intent", "outcome")]
    assert [(line["kind"], line.get("status")) for line in effects] == [
        ("outcome", "denied"),
        ("intent", None),
        ("outcome", "done"),
    ]


async def test_denial_omits_a_value_that_is_too_long(make_host, echo, ledger_lines):
    async with make_host(echo) as host:
        with pytest.raises(OpDenied, match="`echo:text` with a value of 1,000,000 characters is not") as caught:
            await host.op("echo.say", {"text": "," * 1_000_000}, grants=["echo:text=yes"])
    assert len(str(caught.value)) < 300
    assert ledger_lines()[-2]["error"]["code"] == "op.denied"


async def test_empty_grant_denies_an_op_that_requires_a_capability(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpDenied, match="granted: nothing"):
            await host.op("echo.say", {"text": "x"}, grants=[])


async def test_grant_with_an_unknown_field_is_rejected(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(CapabilityInvalid, match="did you mean `text`"):
            await host.op("echo.say", {}, grants=["echo:txet=x"])


@both_backends
async def test_exception_of_a_handler_becomes_an_error_with_op_and_plugin(make_host, echo, outcomes):
    async with make_host(echo) as host:
        with pytest.raises(OpFailed, match="KeyError: 'boom'") as caught:
            await host.op("echo.fail", {"text": "boom"})
    assert (caught.value.op, caught.value.plugin) == ("echo.fail", "echo")
    assert [line["status"] for line in outcomes()] == ["failed"]


@pytest.mark.parametrize(("op", "params"), [("echo.fail", {"text": "boom"}), ("echo.lie", {})])
async def test_mistake_of_a_plugin_names_it_and_the_remedy(make_host, echo, op, params):
    async with make_host(echo) as host:
        with pytest.raises(OpError) as caught:
            await host.op(op, params)
    assert "report it to the author of the plugin `echo`" in caught.value.hint


@both_backends
async def test_hanging_handler_is_cancelled_at_its_timeout(make_host, echo, outcomes):
    async with make_host(echo) as host:
        with pytest.raises(OpTimeout, match=r"0\.05 s"):
            await host.op("echo.hang", {})
    assert [line["error"]["code"] for line in outcomes()] == ["op.timeout"]


async def test_result_of_the_wrong_type_is_an_error(make_host, echo, outcomes):
    async with make_host(echo) as host:
        with pytest.raises(OpResultInvalid, match="expected an integer"):
            await host.op("echo.lie", {})
    assert [line["error"]["code"] for line in outcomes()] == ["op.result"]


async def test_result_that_json_cannot_represent_is_an_error(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(OpResultInvalid, match="nan"):
            await host.op("echo.nan", {})


@both_backends
async def test_cancelled_dispatch_is_recorded_and_does_not_affect_others(make_host, family, outcomes):
    release = anyio.Event()

    @op("wait.forever", timeout=30)
    async def forever(params: Text, ctx: OpContext) -> None:
        await anyio.sleep_forever()

    @op("wait.released", timeout=30)
    async def released(params: Text, ctx: OpContext) -> str:
        await release.wait()
        return "fine"

    answers = []

    async def neighbor(host):
        answers.append(await host.op("wait.released", {}))

    async with make_host(family("wait", forever, released)) as host, anyio.create_task_group() as tasks:
        tasks.start_soon(neighbor, host)
        with anyio.move_on_after(0.05):
            await host.op("wait.forever", {})
        release.set()
    assert answers == ["fine"]
    assert sorted((line["op"], line["status"]) for line in outcomes()) == [
        ("wait.forever", "cancelled"),
        ("wait.released", "done"),
    ]


async def test_handler_that_raises_cancellation_itself_fails_with_an_error(make_host, family):
    @op("self.cancel")
    async def cancel(params: Text, ctx: OpContext) -> None:
        raise anyio.get_cancelled_exc_class()

    async with make_host(family("self", cancel)) as host:
        with pytest.raises(OpCancelled, match="cancelled itself"):
            await host.op("self.cancel", {})


async def test_nesting_of_dispatches_is_limited(make_host, echo):
    async with make_host(echo) as host:
        with pytest.raises(LimitExceeded, match="nested_dispatches"):
            await host.op("echo.nest", {})


async def test_child_effect_cannot_have_more_rights_than_its_parent(make_host, family):
    @op("outer.run", requires="outer")
    async def run(params: Text, ctx: OpContext) -> str:
        return await ctx.dispatch("echo.say", {"text": params.text}, capabilities=["echo"])

    async with make_host(family("outer", run), family("echo", say, scope=EchoScope)) as host:
        assert await host.op("outer.run", {"text": "a"}, grants=["outer", "echo:text=a"]) == "a"
        with pytest.raises(OpDenied):
            await host.op("outer.run", {"text": "b"}, grants=["outer", "echo:text=a"])


async def test_origin_of_a_child_effect_has_the_dispatching_plugin(make_host, family, ledger_lines):
    @op("outer.run")
    async def run(params: Text, ctx: OpContext) -> str:
        return await ctx.dispatch("echo.say", {"text": "x"})

    async with make_host(family("outer", run), family("echo", say, scope=EchoScope)) as host:
        await host.op("outer.run", {})
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent" and line["op"] == "echo.say"]
    assert intent["origin"]["plugin"] == "outer"


async def test_context_cannot_dispatch_after_its_dispatch_has_ended(make_host, family):
    kept = []

    @op("leak.keep")
    async def keep(params: Text, ctx: OpContext) -> None:
        kept.append(ctx)

    async with make_host(family("leak", keep)) as host:
        await host.op("leak.keep", {})
        with pytest.raises(OpDenied, match="has ended"):
            await kept[0].dispatch("leak.keep", {})


async def test_cleanup_functions_run_in_reverse_order_when_the_call_ends(make_host, family):
    closed = []

    @op("open.things")
    async def things(params: Text, ctx: OpContext) -> None:
        for name in "ab":

            async def close(name=name):
                closed.append(name)

            ctx.on_call_end(close)

    async with make_host(family("open", things)) as host:
        await host.op("open.things", {})
        assert closed == ["b", "a"]


async def test_cleanup_functions_of_a_session_run_when_it_ends_even_if_one_fails(make_host, family):
    closed = []

    @op("kept.things")
    async def things(params: Text, ctx: OpContext) -> None:
        async def close():
            closed.append(params.text)
            raise OSError("broken")

        ctx.on_session_end(close)

    async with make_host(family("kept", things)) as host:
        hooks = host.hooks.derive(lambda context: context)
        hooks.session_ends = SessionEnds()
        for text in ("first", "second"):
            origin = Origin(session="s1")
            await host.context_for("agent").dispatch_for(origin, "kept.things", {"text": text}, hooks=hooks)
        await hooks.session_ends.end("s2")
        assert closed == []
        await hooks.session_ends.end("s1")
        assert closed == ["second", "first"]
        await host.op("kept.things", {"text": "without a session"})
        assert closed[2:] == ["without a session"]


async def test_known_secret_is_redacted_in_results_errors_progress_and_records(make_host, family, tmp_path):
    canary = "canary-7f3a9c51"

    @op("vault.tell", record=["text"])
    async def tell(params: Text, ctx: OpContext) -> dict[str, str]:
        ctx.protect(canary, "canary")
        await ctx.progress(message=f"it is {canary}")
        if params.text == "fail":
            raise ValueError(canary)
        return {"value": canary, canary: "key"}

    progress = []
    async with make_host(family("vault", tell)) as host:
        assert canary not in str(await host.op("vault.tell", {"text": canary}, on_progress=progress.append))
        assert canary not in str(await host.op("vault.tell", {"text": canary}))
        with pytest.raises(OpFailed) as caught:
            await host.op("vault.tell", {"text": "fail"})
    assert canary not in str(caught.value.as_dict())
    assert "[redacted:canary]" in progress[0].message
    written = b"".join(file.read_bytes() for file in (tmp_path / "home").rglob("*") if file.is_file())
    # The first intent was written before the text was known to be a secret.
    assert written.count(canary.encode()) == 1


async def test_result_of_a_revealing_op_is_redacted_only_in_its_record(make_host, family, outcomes):
    canary = "canary-7f3a9c51"

    @op("vault.reveal", reveals=True)
    async def reveal(params: Text, ctx: OpContext) -> str:
        ctx.protect(canary, "canary")
        return canary

    async with make_host(family("vault", reveal)) as host:
        assert await host.op("vault.reveal", {}, key="once") == canary
    assert outcomes()[0]["result"] == "[redacted:canary]"


async def test_pattern_of_a_plugin_is_redacted_in_text_and_bytes(make_host, family, hook):
    @hookimpl
    def redactors(event):
        return [Redactor("forge", r"forge_[a-z0-9]{6}")]

    @op("vault.tell")
    async def tell(params: Text, ctx: OpContext) -> list[str | bytes]:
        return [f"it is {params.text}", params.text.encode()]

    async with make_host(family("vault", tell), hook("patterns", redactors)) as host:
        assert await host.op("vault.tell", {"text": "forge_abc123"}) == ["it is [redacted:forge]", b"[redacted:forge]"]


@both_backends
@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()])
async def test_exit_in_a_handler_fails_the_op_only(make_host, family, outcomes, error):
    @op("bad.exit")
    async def leave(params: Text, ctx: OpContext) -> None:
        raise error

    async with make_host(family("bad", leave)) as host:
        with pytest.raises(OpFailed, match=type(error).__name__):
            await host.op("bad.exit", {})
    assert [line["status"] for line in outcomes()] == ["failed"]


async def test_parameters_with_too_many_values_are_rejected(make_host, echo, outcomes):
    async with make_host(echo) as host:
        with pytest.raises(LimitExceeded, match="`params` of 100,000"):
            await host.op("echo.say", {"text": [[]] * 100_001})
    assert outcomes()[0]["params"] == {}
