import json

import pytest
from sideband.messages import UserMessage
from sideband.providers import ProviderRefused

pytestmark = pytest.mark.anyio


def page(*entries, more=False):
    return json.dumps(
        {"data": list(entries), "has_more": more, "last_id": entries[-1]["id"] if entries else None}
    ).encode()


def entry(name, **fields):
    return {"type": "model", "id": name, "display_name": name, **fields}


def thinking(**types):
    supported = {name: {"supported": value} for name, value in types.items()}
    return {"thinking": {"supported": any(types.values()), "types": supported}}


async def test_listed_models_combine_service_and_data_file(host, server, models):
    described = entry("claude-opus-4-6", max_input_tokens=1_000_000, max_tokens=99_000)
    server.reply(page(described, entry("claude-haiku-4-5-20251001")), kind="application/json")
    listed = await models(host)
    assert server.requests[0].path == "/v1/models?limit=1000"
    opus, haiku = listed["claude-opus-4-6"], listed["claude-haiku-4-5-20251001"]
    assert (opus.context_window, opus.max_output) == (1_000_000, 99_000)
    assert (haiku.context_window, haiku.max_output, haiku.images, haiku.thinking) == (200_000, 64_000, True, True)
    assert (haiku.prices.input, haiku.prices.output, haiku.prices.cache_read) == (1, 5, 0.1)


async def test_all_pages_are_read(host, server, models):
    server.reply(page(entry("a b"), more=True), kind="application/json")
    server.reply(page(entry("c")), kind="application/json")
    assert list(await models(host)) == ["a b", "c"]
    assert server.requests[1].path == "/v1/models?limit=1000&after_id=a%20b"


async def test_endless_list_stops_after_20_pages(host, server, models):
    for _ in range(30):
        server.reply(page(entry("a"), more=True), kind="application/json")
    assert list(await models(host)) == ["a"]
    assert len(server.requests) == 20


async def test_unknown_properties_of_a_model_are_unset(host, server, models):
    server.reply(page(entry("kimi-k2")), kind="application/json")
    assert (await models(host))["kimi-k2"].model_fields_set == {"id"}


async def test_dated_model_is_also_listed_without_its_date(host, server, models):
    server.reply(page(entry("claude-haiku-4-5-20251001", max_tokens=50_000)), kind="application/json")
    listed = await models(host)
    assert list(listed) == ["claude-haiku-4-5-20251001", "claude-haiku-4-5"]
    assert listed["claude-haiku-4-5"].max_output == 50_000
    assert listed["claude-haiku-4-5"].prices.output == 5


async def test_retired_models_and_invalid_entries_are_skipped(host, server, models):
    strange = [{"id": 5}, {"no": "id"}, {"id": "old", "lifecycle": "retired"}, {"id": "x", "capabilities": [1]}]
    body = json.dumps({"data": [*strange, "text", None]}).encode()
    server.reply(body, kind="application/json")
    assert list(await models(host)) == ["x"]


async def test_service_without_a_list_has_the_known_models(host, server, models):
    server.refuse(404, "not found")
    listed = await models(host)
    assert listed["claude-haiku-4-5"].prices.output == 5
    assert all(info.context_window and info.prices for info in listed.values())


async def test_error_status_of_the_list_is_refused(host, server, models):
    server.refuse(401, {"type": "authentication_error", "message": "invalid x-api-key"})
    with pytest.raises(ProviderRefused, match="invalid x-api-key"):
        await models(host)


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        ("text/html", b"<html>", "web page"),
        ("text/plain", b"<html>", "other than a list of models"),
        ("application/json", b"[]", "other than a list of models"),
    ],
)
async def test_invalid_list_is_not_retryable(host, server, models, *, kind, body, problem):
    server.reply(body, kind=kind)
    with pytest.raises(ProviderRefused, match=problem) as caught:
        await models(host)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("types", "level", "expected"),
    [
        ({"adaptive": True, "disabled": False, "enabled": False}, "off", "adaptive"),
        ({"adaptive": True, "disabled": True, "enabled": False}, "off", "disabled"),
        ({"adaptive": False, "disabled": True, "enabled": True}, "low", "enabled"),
        ({"adaptive": False, "disabled": True, "enabled": False}, "low", None),
    ],
    ids=str,
)
async def test_thinking_types_reported_by_the_service_take_precedence(
    host, server, models, listen, say, *, types, level, expected
):
    server.reply(page(entry("claude-new-7", capabilities=thinking(**types))), kind="application/json")
    await models(host)
    server.reply(say.start(), *say.text(0, "x"), *say.end())
    await listen(host, model="claude-new-7", thinking=level)
    assert server.bodies[-1].get("thinking", {}).get("type") == expected


async def test_capabilities_reported_by_the_service_take_precedence(host, server, models):
    unsupported = {"image_input": {"supported": False}, "thinking": {"supported": False}}
    server.reply(page(entry("claude-haiku-4-5", capabilities=unsupported)), kind="application/json")
    info = (await models(host))["claude-haiku-4-5"]
    assert (info.images, info.thinking) == (False, False)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"input_tokens": 100_000, "output_tokens": 10_000}, 0.015),
        ({"input_tokens": 100_000, "cache_read_input_tokens": 1, "output_tokens": 10_000}, 0.07500005),
    ],
)
async def test_cost_of_a_call_is_computed_if_prices_depend_on_prompt_length(host, server, listen, say, *, usage, cost):
    server.reply(say.start(usage), *say.text(0, "x"), *say.end())
    _, message = await listen(host, UserMessage(content="x"), model="claude-haiku-5-5")
    assert message.usage.cost == pytest.approx(cost)


async def test_cost_is_unset_for_models_with_fixed_prices(host, server, listen, say):
    server.reply(say.start({"input_tokens": 5}), *say.text(0, "x"), *say.end())
    assert (await listen(host))[1].usage.cost is None
