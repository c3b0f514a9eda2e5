"""Where telemetry is sent, and what happens if it cannot be sent."""

import subprocess
import sys
import threading

import anyio
import pytest
from sideband.plugins import PluginError
from sideband_otel import ExporterInvalid
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


PROGRAM = """
import sys
from pathlib import Path

import anyio
import sideband_otel.plugin
import sideband_otel.trace
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

PLUGINS = [
    Plugin("hook", "otel", sideband_otel.plugin),
    Plugin("op", "trace", sideband_otel.trace),
    Plugin("store", "sqlite", sideband_store_sqlite.plugin),
]


async def main():
    async with Host(home=Path(sys.argv[1]), plugins=PLUGINS, autoload=False) as host:
        print(await host.op("trace.parent", {"host": "a.example"}))


anyio.run(main)
print([name for name in sys.modules if name.startswith(("opentelemetry", "requests"))])
"""


def test_without_a_variable_nothing_is_sent_and_the_sdk_is_not_imported(tmp_path):
    command = [sys.executable, "-c", PROGRAM, tmp_path / "home"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("None\n[]\n", "")


@pytest.mark.parametrize(
    ("variables", "enabled", "is_on"),
    [
        ({}, None, False),
        ({}, True, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, None, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, False, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:9"}, None, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, None, False),
        ({"OTEL_SDK_DISABLED": "true"}, True, False),
    ],
)
async def test_variables_and_configuration_decide_whether_telemetry_is_sent(
    open_host, monkeypatch, variables, enabled, is_on
):
    for name, value in {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", **variables}.items():
        monkeypatch.setenv(name, value)
    table = {} if enabled is None else {"enabled": enabled}
    async with open_host(settings={"plugins": {"otel": table}}) as host:
        context = await host.op("trace.parent", {"host": "a.example"})
    assert (context is not None) == is_on


async def test_signal_without_an_exporter_is_not_sent(open_agent, sending, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    async with open_agent(["done"]) as agent:
        await agent.invoke("go on")
    assert sending.spans == []
    assert "sideband.run.duration" in sending.metrics


async def test_headers_and_compression_of_the_variables_are_used(open_agent, sending, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=canary%2D7f3a9c51")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "billing")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    async with open_agent(["done"]) as agent:
        await agent.invoke("go on")
    assert {one.get("x-api-key") for one in sending.headers} == {"canary-7f3a9c51"}
    assert {one.get("Content-Encoding") for one in sending.headers} == {"gzip"}
    resource = sending.named("invoke_agent").resource
    assert (resource["service.name"], resource["deployment.environment"]) == ("billing", "test")


async def test_service_has_the_name_of_the_project_if_no_variable_names_it(open_agent, sending):
    async with open_agent(["done"]) as agent:
        await agent.invoke("go on")
    assert sending.named("invoke_agent").resource["service.name"] == "sideband"


async def test_values_of_headers_are_known_secrets(open_host, sending, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer%20canary-7f3a9c51")
    async with open_host() as host:
        assert host.redactor.text("it is Bearer canary-7f3a9c51") == "it is [redacted:otel]"


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin", "use one of"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "install opentelemetry-exporter-otlp-proto-grpc"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "use one of http/protobuf, grpc"),
    ],
)
async def test_exporter_that_is_not_installed_is_a_clear_error(open_host, monkeypatch, caplog, name, value, hint):  # noqa: PLR0917  the last three are one case
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    async with open_host() as host:
        with pytest.raises(PluginError) as caught:
            await host.plugins.load("hook", "otel")
    assert isinstance(caught.value.__cause__, ExporterInvalid)
    (notice,) = [record.getMessage() for record in caplog.records if record.name == "sideband.plugins"]
    assert f"`{name}`: no exporter for '{value}'" in notice
    assert hint in notice


async def test_sampled_traces_are_complete(open_agent, sending, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    async with open_agent([Turn(tool_calls=[("work", {})]), "done"] * 30) as agent:
        runs = [(await agent.invoke("go on")).run for _ in range(30)]
    sent = [span.attributes["sideband.run.id"] for span in sending.spans if span.name == "invoke_agent"]
    assert 0 < len(sent) < len(runs)
    of_runs = [span for span in sending.spans if span.name == "turn"]
    assert len(of_runs) == 2 * len(sent)
    assert {span.trace for span in of_runs} == {span.trace for span in sending.spans if span.name == "invoke_agent"}


@pytest.fixture
def threads():
    """Return a function that waits until no thread is left that a test has started."""
    before = set(threading.enumerate())

    def join(seconds):
        for thread in set(threading.enumerate()) - before:
            if "otel" in thread.name.lower():
                thread.join(seconds)
        return [one.name for one in set(threading.enumerate()) - before if "otel" in one.name.lower()]

    return join


async def test_collector_that_does_not_answer_delays_neither_a_run_nor_the_close_for_long(open_agent, sending, threads):
    sending.answers.clear()
    settings = {"agent": {"model": "scripted:test"}, "plugins": {"otel": {"close_seconds": 0.1}}}
    with anyio.fail_after(20):  # far below the 60 s for which it does not answer
        async with open_agent(["done"] * 3, settings=settings) as agent:
            for _ in range(3):
                assert (await agent.invoke("go on")).status == "completed"
    assert sending.spans == []
    sending.answers.set()
    assert await anyio.to_thread.run_sync(threads, 60) == []


async def test_collector_that_is_gone_is_reported_once(open_agent, monkeypatch, caplog, free_tcp_port):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_tcp_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    settings = {"agent": {"model": "scripted:test"}, "plugins": {"otel": {"close_seconds": 20}}}
    async with open_agent(["done"], settings=settings) as agent:
        assert (await agent.invoke("go on")).status == "completed"
    notices = [record.getMessage() for record in caplog.records if record.name == "sideband.otel"]
    assert notices == ["telemetry cannot be sent; is the collector running?"]


async def test_collector_that_works_again_is_reported(open_agent, sending, monkeypatch, caplog):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    sending.status = 400  # the exporter does not retry
    async with open_agent(["done", "done"]) as agent:
        await agent.invoke("go on")
        await anyio.to_thread.run_sync(sending.arrived.wait, 30)
        with anyio.fail_after(30):
            while not [one for one in caplog.records if one.name == "sideband.otel"]:  # noqa: ASYNC110  a thread of the SDK is watched
                await anyio.sleep(0.01)
        sending.status = 200
        await agent.invoke("go on")
    notices = [record.getMessage() for record in caplog.records if record.name == "sideband.otel"]
    assert notices == ["telemetry cannot be sent; is the collector running?", "telemetry is sent again"]


async def test_nothing_is_left_when_the_host_is_closed(open_agent, sending, threads):
    async with open_agent(["done"]) as agent:
        await agent.invoke("go on")
    assert sending.spans
    assert threads(0) == []
