"""Whatever an event contains, it becomes valid telemetry, and what cannot be sent does not stop the rest."""

import pytest
from sideband.ops import Origin

from .effects import effect, written

pytestmark = pytest.mark.anyio

TEXT = "It was\n\x1b[31ma text\u202e \ud800" + "y" * 5_000


@pytest.mark.parametrize(
    "changes",
    [
        {"result": {"usage": {"input": 10**400, "output": 10**30, "cost": 10**400}}},
        {"result": {"usage": {"input": -1, "output": -2, "cost": -3.0}}},
        {"result": {"usage": {"input": float("nan"), "output": float("inf"), "cost": float("nan")}}},
        {"result": {"usage": {"input": TEXT, "output": True, "cost": [TEXT]}}},
        {"result": {"usage": TEXT, "stop": [TEXT], "model": {TEXT: 1}}},
        {"result": {"usage": [TEXT], "stop": TEXT}},
        {"params": {"model": 5, "max_tokens": 10**30, "temperature": float("nan"), "thinking": [TEXT]}},
        {"params": {"model": None, "max_tokens": True, "temperature": {TEXT: 1}, "thinking": TEXT}},
        {"bytes": 10**30},
        {"ms": float("nan")},
        {"ms": float("inf")},
        {"ms": 1e300},
        {"ms": -5.0},
        {"error": {"code": TEXT}, "status": "failed"},
        {"error": {"code": 5}, "status": "failed"},
        {"effect": "\ud800", "within": "\ud801", "call": "\ud802"},
        {"origin": Origin(session="\ud800", run="\ud801", step="0.1")},
        {"op": "tool.call", "params": {"tool": [TEXT], "call": TEXT}},
        {"op": "http.get", "params": {"url": "http://[::1"}},
        {"op": "http.get", "params": {"url": "http://a.example:99999/"}},
        {"op": "http.get", "params": {"url": [TEXT]}},
    ],
    ids=lambda changes: repr(changes)[:60],
)
async def test_odd_value_is_left_out_and_does_not_stop_the_rest(sending, caplog, changes):
    first, odd, last = await written(sending, effect(), effect(**changes), effect())
    assert b"It was" not in b"".join(sending.raw)
    assert odd.end >= odd.start >= first.start - 10**9
    assert last.attributes["gen_ai.usage.input_tokens"] == 3
    counts = [point.count for _, point in sending.metrics["gen_ai.client.operation.duration"]]
    assert sum(counts) == sum(span.name.startswith("chat") for span in sending.spans)
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


@pytest.mark.parametrize("number", [True, "100", [100], float("nan"), 10**30])
async def test_request_attribute_that_is_not_a_number_is_left_out(sending, number):
    (span,) = await written(sending, effect(params={"model": "acme:small", "max_tokens": number}))
    assert "gen_ai.request.max_tokens" not in span.attributes


async def test_negative_usage_is_not_counted(sending):
    (span,) = await written(sending, effect(result={"usage": {"input": -1, "cost": -3.0}}))
    assert span.attributes["gen_ai.usage.input_tokens"] == 0
    assert "sideband.usage.cost" not in span.attributes


async def test_name_is_one_short_line(sending):
    names = {"model": f"acme:{TEXT}"}
    (span,) = await written(sending, effect(params=names, result=names))
    for name in (span.name, span.attributes["gen_ai.request.model"], span.attributes["gen_ai.response.model"]):
        assert name.isprintable()
        assert len(name) <= 200


async def test_error_that_is_a_text_is_another_error(sending):
    (span,) = await written(sending, effect(status="failed", error={"code": TEXT}))
    assert span.attributes["error.type"] == "_OTHER"
