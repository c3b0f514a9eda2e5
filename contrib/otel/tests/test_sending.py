"""Where telemetry is sent, and what happens if it cannot be sent."""

import subprocess
import sys

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
        ({"OTEL_TRACES_EXPORTER": "none, none"}, None, False),
        ({"OTEL_TRACES_EXPORTER": "none,console"}, None, True),
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


async def test_service_has_the_name_of_the_project_if_no_variable_names_it(open_agent, sending):
    async with open_agent(["done"]) as agent:
        await agent.invoke("go on")
    assert sending.named("invoke_agent").resource["service.name"] == "sideband"


@pytest.mark.parametrize("variable", ["PROTOCOL", "TRACES_PROTOCOL", "HEADERS", "TRACES_HEADERS"])
async def test_empty_variable_is_like_none(open_host, sending, monkeypatch, variable):
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{variable}", "")
    async with open_host() as host:
        await host.op("llm.models", {})
    assert [span.name for span in sending.spans] == ["llm.models"]


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


async def test_console_exporters_do_not_write_into_the_answer(open_host, monkeypatch, capfd):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "console")
    async with open_host() as host:
        await host.op("llm.models", {})
    out, err = capfd.readouterr()
    assert out == ""
    assert '"name": "llm.models"' in err
    assert '"sideband.effect.duration"' in err


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
