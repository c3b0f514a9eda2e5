"""What observers learn of an effect, and the trace context that a plugin gives it."""

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.ops import ContextRevoked, Level, OpContext, OpError, op

pytestmark = pytest.mark.anyio

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Question(BaseModel):
    text: str = ""


class Answer(BaseModel):
    text: str
    words: int
    note: str = "x" * 2_000


@op("mind.answer", level=Level.SAFE, reports=["words", "note"])
async def answer(params: Question, ctx: OpContext) -> Answer:
    if not params.text:
        raise ValueError("no question")
    return Answer(text=params.text, words=len(params.text.split()))


@op("mind.ask", level=Level.SAFE)
async def ask(params: Question, ctx: OpContext) -> int:
    return (await ctx.dispatch("mind.answer", {"text": params.text}))["words"]


@op("mind.trace", level=Level.SAFE)
async def trace(params: Question, ctx: OpContext) -> str | None:
    return await ctx.trace_parent()


@pytest.fixture
def mind(family):
    return family("mind", answer, ask, trace)


@pytest.fixture
def effects():
    return []


@pytest.fixture
def watching(effects):
    @hookimpl
    def effect(event):
        effects.append(event)

    return Plugin("hook", "watching", SimpleNamespace(effect=effect))


def tracing(name, answer):
    """Return a plugin that gives effects this trace context."""

    @hookimpl
    def trace_parent(event):
        return answer(event) if callable(answer) else answer

    return Plugin("hook", name, SimpleNamespace(trace_parent=trace_parent))


async def test_observer_gets_the_reported_fields_of_a_result_shortened(make_host, mind, watching, effects):
    async with make_host(mind, watching) as host:
        await host.op("mind.answer", {"text": "one two"})
    (event,) = effects
    assert event.result["words"] == 2
    assert set(event.result) == {"words", "note"}
    assert len(event.result["note"]) < 600


async def test_observer_gets_no_result_of_a_failed_effect(make_host, mind, watching, effects):
    async with make_host(mind, watching) as host:
        with pytest.raises(OpError):
            await host.op("mind.answer", {})
    assert [dict(event.result) for event in effects] == [{}]


async def test_observer_gets_nothing_of_a_result_that_has_no_fields(make_host, family, watching, effects):
    @op("mind.say", level=Level.SAFE, reports=["words"])
    async def say(params: Question, ctx: OpContext) -> Any:
        return "these words"

    async with make_host(family("mind", say), watching) as host:
        assert await host.op("mind.say", {}) == "these words"
    assert [(effect.status, dict(effect.result)) for effect in effects] == [("done", {})]


async def test_reported_field_is_redacted(make_host, family, watching, effects):
    @op("mind.tell", level=Level.SAFE, reports=["text"])
    async def tell(params: Question, ctx: OpContext) -> Answer:
        return Answer(text="it is canary-7f3a9c51", words=3)

    async with make_host(family("mind", tell), watching) as host:
        host.redactor.protect("canary-7f3a9c51", "canary")
        await host.op("mind.tell", {})
    assert effects[0].result["text"] == "it is [redacted:canary]"


def test_unknown_reported_field_is_reported_where_the_op_is_declared():
    with pytest.raises(TypeError, match=r"op `mind\.x`: unknown fields of Answer in `reports`: wordz"):

        @op("mind.x", reports=["wordz"])
        async def wrong(params: Question, ctx: OpContext) -> Answer: ...


async def test_observer_learns_which_effect_caused_another_one(make_host, mind, watching, effects):
    async with make_host(mind, watching) as host:
        await host.op("mind.ask", {"text": "one two"})
    inner, outer = effects
    assert (inner.op, outer.op) == ("mind.answer", "mind.ask")
    assert (inner.within, outer.within) == (outer.effect, None)
    assert inner.call == outer.call != ""


async def test_effect_has_the_trace_context_of_the_first_plugin_that_traces_it(make_host, mind):
    silent, first = tracing("a-silent", None), tracing("first", lambda event: [PARENT] if event.effect else [])
    async with make_host(mind, silent, first) as host:
        assert await host.op("mind.trace", {}) == PARENT


async def test_effect_that_has_ended_has_no_trace_context(make_host, family):
    contexts = []

    @op("mind.keep", level=Level.SAFE)
    async def keep(params: Question, ctx: OpContext) -> None:
        contexts.append(ctx)

    async with make_host(family("mind", keep), tracing("first", [PARENT])) as host:
        await host.op("mind.keep", {})
        with pytest.raises(ContextRevoked):
            await contexts[0].trace_parent()


async def test_effect_has_no_trace_context_if_no_plugin_traces_it(make_host, mind):
    async with make_host(mind) as host:
        assert await host.op("mind.trace", {}) is None


@pytest.mark.parametrize(
    "wrong",
    [
        PARENT.upper(),
        PARENT.replace("00-4b", "01-4b"),
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
        PARENT + "\r\nx-injected: 1",
        PARENT + "\n",
    ],
)
async def test_invalid_trace_context_is_not_used_and_is_reported(make_host, mind, wrong):
    reports = []
    async with make_host(mind, tracing("wrong", [wrong]), on_hook=reports.append) as host:
        assert await host.op("mind.trace", {}) is None
    (problem,) = [report.error.message for report in reports if report.error]
    assert "expected a `traceparent`" in problem
