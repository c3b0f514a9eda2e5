"""The names and attributes of spans and metrics of model calls and requests."""

import pytest

from .effects import effect, written

pytestmark = pytest.mark.anyio


async def test_model_call_without_a_model_has_a_name(sending):
    (span,) = await written(sending, effect(params={}, result={}))
    assert span.name == "chat"


async def test_provider_of_a_model_that_names_none_is_that_of_the_request(sending):
    (span,) = await written(sending, effect(result={"model": "small-1"}))
    assert span.attributes["gen_ai.provider.name"] == "acme"


@pytest.mark.parametrize(("url", "port"), [("http://a.example/", 80), ("https://a.example", 443), ("https://a:7/", 7)])
async def test_receiver_has_a_port(sending, url, port):
    (span,) = await written(sending, effect(op="http.get", params={"url": url}))
    assert span.attributes["server.port"] == port


async def test_embeddings_have_the_name_of_their_operation(sending):
    usage = {"input": 3, "output": 0}
    (span,) = await written(sending, effect(op="llm.embed", result={"model": "acme:small", "usage": usage}))
    assert (span.name, span.attributes["gen_ai.operation.name"]) == ("embeddings small", "embeddings")


async def test_cached_tokens_are_a_part_of_the_input_tokens(sending):
    usage = {"input": 1, "cache_read": 10, "cache_write": 100, "output": 5, "reasoning": 2}
    (span,) = await written(sending, effect(result={"usage": usage}))
    assert {name: value for name, value in span.attributes.items() if name.startswith("gen_ai.usage.")} == {
        "gen_ai.usage.input_tokens": 111,
        "gen_ai.usage.cache_read.input_tokens": 10,
        "gen_ai.usage.cache_creation.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 2,
    }


async def test_costs_are_added_where_they_are_known(sending):
    unknown = effect(result={"model": "acme:small-1", "usage": {"input": 3, "output": 2, "cost": None}})
    await written(sending, effect(), unknown, effect())
    assert [point.as_double for _, point in sending.metrics["sideband.model.cost"]] == [1.0]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end", "stop"),
        ("tool_calls", "tool_call"),
        ("length", "length"),
        ("refusal", "content_filter"),
        ("other", "other"),
    ],
)
async def test_finish_reasons_are_those_of_the_conventions(sending, stop, reason):
    (span,) = await written(sending, effect(result={"stop": stop}))
    assert span.attributes["gen_ai.response.finish_reasons"] == [reason]


async def test_request_attributes_are_those_of_the_call(sending):
    params = {"model": "acme:small", "max_tokens": 100, "temperature": 0.5, "thinking": "low"}
    (span,) = await written(sending, effect(params=params))
    expected = {
        "gen_ai.request.model": "small",
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.temperature": 0.5,
        "sideband.request.thinking": "low",
    }
    assert {name: span.attributes.get(name) for name in expected} == expected


async def test_tool_call_is_not_a_request_to_another_system(sending):
    tool, request = await written(sending, effect(op="tool.call", egress=True), effect(op="http.get", egress=True))
    assert (tool.kind, request.kind) == (1, 3)


@pytest.mark.parametrize("status", ["failed", "unknown", "cancelled"])
async def test_effect_that_has_an_error_has_failed(sending, status):
    (span,) = await written(sending, effect(status=status, error={"code": "op.any"}))
    assert (span.failed, span.attributes["error.type"]) == (True, "op.any")


@pytest.mark.parametrize("status", ["failed", "denied", "unknown"])
async def test_effect_that_failed_without_an_error_has_failed(sending, status):
    (span,) = await written(sending, effect(status=status))
    assert (span.failed, span.attributes["sideband.status"]) == (True, status)
