"""The metrics, and the bounds of their attributes."""

import os

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from sideband.hooks import AgentStart
from sideband_otel._instruments import Instruments
from sideband_otel._providers import open_telemetry
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


def values(collector, name):
    """Return the attributes of the data points of a metric."""
    return [attributes for attributes, _ in collector.metrics[name]]


async def test_model_calls_are_counted_by_the_conventions(open_agent, sending):
    async with open_agent(["one", "two"]) as agent:
        first, second = await agent.invoke("go on"), await agent.invoke("and on")
    labels = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "test",
        "gen_ai.response.model": "test",
    }
    ((attributes, duration),) = sending.metrics["gen_ai.client.operation.duration"]
    assert (attributes, duration.count, list(duration.explicit_bounds)[:3]) == (labels, 2, [0.01, 0.02, 0.04])
    tokens = {
        attributes["gen_ai.token.type"]: point for attributes, point in sending.metrics["gen_ai.client.token.usage"]
    }
    assert tokens["input"].sum == first.usage.input + second.usage.input
    assert tokens["output"].sum == first.usage.output + second.usage.output
    assert list(tokens["input"].explicit_bounds)[:4] == [1, 4, 16, 64]


async def test_runs_turns_tools_and_effects_are_counted(open_agent, sending):
    work = Turn(tool_calls=[("work", {})])
    async with open_agent([work, "done"]) as agent:
        await agent.invoke("go on")
    assert values(sending, "sideband.run.duration") == [
        {"sideband.run.reason": "completed", "sideband.run.source": "interactive"}
    ]
    assert [point.as_int for _, point in sending.metrics["sideband.run.active"]] == [0]
    assert [point.count for _, point in sending.metrics["sideband.turn.duration"]] == [2]
    assert values(sending, "sideband.tool.duration") == [{"gen_ai.tool.name": "work"}]
    effects = {attributes["sideband.op"]: attributes for attributes in values(sending, "sideband.effect.duration")}
    assert effects["tool.call"]["sideband.status"] == "done"
    assert set(effects) == {"llm.generate", "llm.models", "tool.call"}


async def test_workers_are_counted(open_host, sending, skills):
    async with open_host(skill_dirs=[skills]) as host:
        await host.call("clock.now")
    assert [point.as_int for _, point in sending.metrics["sideband.worker.active"]] == [0]
    assert values(sending, "sideband.worker.ended") == [{"sideband.isolation": "none", "sideband.status": "retired"}]
    assert [point.count for _, point in sending.metrics["sideband.worker.start.duration"]] == [1]


async def test_runs_whose_end_is_lost_are_forgotten_and_not_counted_for_ever(sending, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    opened = open_telemetry(os.environ)
    for number in range(10_010):
        opened.telemetry.begin_run(AgentStart(f"r{number}"), f"s{number}")
    opened.telemetry.begin_run(AgentStart("r10009"), "s10009")
    await opened.close(60)
    ended = [point.count for _, point in sending.metrics["sideband.run.duration"]]
    assert ended == [10_001]  # with that which began again
    assert [point.as_int for _, point in sending.metrics["sideband.run.active"]] == [0]


def test_values_that_others_choose_are_bounded():
    instruments = Instruments(NoOpMeterProvider().get_meter("test"))
    for number in range(200):
        instruments.bounded({"gen_ai.tool.name": f"tool-{number}"})
    found = [instruments.bounded({"gen_ai.tool.name": name}) for name in ("tool-7", "tool-200", "x" * 500)]
    assert [one["gen_ai.tool.name"] for one in found] == ["tool-7", "other", "other"]
    assert instruments.bounded({"sideband.op": "http.get"}) == {"sideband.op": "http.get"}
