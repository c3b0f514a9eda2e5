"""A collector that is slow, refuses or is gone, and exporters that fail."""

import logging
import subprocess
import sys
import threading

import anyio
import pytest
from anyio.lowlevel import checkpoint
from pydantic import ValidationError
from sideband_otel import Config

pytestmark = pytest.mark.anyio

GONE = "telemetry cannot be sent; is the collector running?"


def notices(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "sideband.otel"]


async def reported(caplog):
    """Wait until something is reported."""
    with anyio.fail_after(30):
        while not notices(caplog):  # noqa: ASYNC110  a thread of the SDK is watched
            await anyio.sleep(0.01)


def closing(seconds):
    return {"agent": {"model": "scripted:test"}, "plugins": {"otel": {"close_seconds": seconds}}}


async def test_collector_that_does_not_answer_delays_neither_a_run_nor_the_close_for_long(
    open_agent, sending, threads, caplog
):
    sending.answers.clear()
    with anyio.fail_after(20):  # far below the 60 s for which it does not answer
        async with open_agent(["done"] * 3, settings=closing(0.1)) as agent:
            for _ in range(3):
                assert (await agent.invoke("go on")).status == "completed"
    assert sending.spans == []
    lost = ["telemetry was not sent within 0.1 s, and is lost; is the collector running?"]
    assert notices(caplog) == lost
    sending.status = 400  # what fails later is not reported: the host is closed
    sending.answers.set()
    assert await anyio.to_thread.run_sync(threads, 60) == []
    assert notices(caplog) == lost


PROGRAM = """
import sys
from pathlib import Path

import anyio
import sideband_otel.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

PLUGINS = [Plugin("hook", "otel", sideband_otel.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
SETTINGS = {"plugins": {"otel": {"close_seconds": 0.1}}}


async def main():
    async with Host(home=Path(sys.argv[1]), settings=SETTINGS, plugins=PLUGINS, autoload=False) as host:
        await host.op("llm.models", {})


try:
    anyio.run(main)
except LookupError:
    print("ended")
"""


def run_program(home, seconds):
    """Run a program with a host whose only effect has no op, and return what it writes to standard error."""
    command = [sys.executable, "-c", PROGRAM.replace("0.1", str(seconds)), home]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stdout) == (0, "ended\n")
    return done.stderr


def test_messages_of_the_sdk_are_not_printed(sending, tmp_path):
    sending.status = 400
    assert run_program(tmp_path / "home", 15) == f"{GONE}\n"


def test_process_ends_although_the_collector_does_not_answer(sending, monkeypatch, tmp_path):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "120")  # and the SDK waits for 30 s, which is too long
    sending.answers.clear()
    printed = run_program(tmp_path / "home", 0.1)
    assert printed == "telemetry was not sent within 0.1 s, and is lost; is the collector running?\n"


def test_plugin_ends_before_the_host_gives_up():
    with pytest.raises(ValidationError):
        Config(close_seconds=30)


async def test_telemetry_of_a_host_that_is_cancelled_is_sent(open_host, sending):
    with anyio.CancelScope() as scope:
        async with open_host(settings=closing(25)) as host:
            await host.op("llm.models", {})
            scope.cancel()
            await checkpoint()
    assert [span.name for span in sending.spans] == ["llm.models"]


async def test_traces_that_wait_do_not_hold_back_the_last_metrics(open_host, sending):
    sending.answers.clear()
    sending.held = ("/v1/traces",)

    def release():
        sending.measured.wait(60)
        sending.answers.set()

    waiting = threading.Thread(target=release)
    waiting.start()
    async with open_host(settings=closing(25)) as host:
        await host.op("llm.models", {})
    waiting.join()
    assert [span.name for span in sending.spans] == ["llm.models"]


@pytest.mark.parametrize("signal", ["TRACES", "METRICS"])
async def test_collector_that_is_gone_is_reported_once(open_agent, monkeypatch, caplog, free_tcp_port, signal):
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", f"http://127.0.0.1:{free_tcp_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
    monkeypatch.setenv(f"OTEL_{'METRICS' if signal == 'TRACES' else 'TRACES'}_EXPORTER", "none")
    async with open_agent(["done"], settings=closing(20)) as agent:
        assert (await agent.invoke("go on")).status == "completed"
    assert notices(caplog) == [GONE]


async def test_collector_that_refuses_only_traces_is_reported_once(open_host, sending, monkeypatch, caplog):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "5")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{sending.endpoint}/refused")
    sending.refused = ("/refused",)
    async with open_host() as host:
        await host.op("llm.models", {})
        await reported(caplog)
        for _ in range(2):  # the first may have been on its way before
            sending.measured.clear()
            assert await anyio.to_thread.run_sync(sending.measured.wait, 30)
    assert notices(caplog) == [GONE]


async def test_collector_that_works_again_is_reported(open_agent, sending, monkeypatch, caplog):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    sending.status = 400  # the exporter does not retry
    async with open_agent(["done", "done"]) as agent:
        await agent.invoke("go on")
        await anyio.to_thread.run_sync(sending.arrived.wait, 30)
        await reported(caplog)
        sending.status = 200
        await agent.invoke("go on")
    assert notices(caplog) == [GONE, "telemetry is sent again"]


async def test_nothing_is_left_when_hosts_are_closed(open_host, sending, threads):
    handlers = None
    for _ in range(3):
        async with open_host() as host:
            await host.op("llm.models", {})
        assert threads(0) == []
        handlers = handlers or list(logging.getLogger("opentelemetry").handlers)
    assert logging.getLogger("opentelemetry").handlers == handlers
    assert sum(span.name == "llm.models" for span in sending.spans) == 3


async def test_loss_at_the_close_is_not_reported_if_it_is_known_that_the_collector_is_gone(
    open_host, sending, monkeypatch, caplog
):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
    sending.refused, sending.held = ("/v1/traces",), ("/v1/metrics",)
    sending.answers.clear()
    async with open_host(settings=closing(0.1)) as host:
        await host.op("llm.models", {})
        await reported(caplog)
    assert notices(caplog) == [GONE]


@pytest.mark.parametrize(
    ("variable", "value"), [("OTEL_METRIC_EXPORT_INTERVAL", "0"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "9999999")]
)
async def test_nothing_is_left_when_a_variable_is_invalid(open_host, sending, monkeypatch, threads, variable, value):  # noqa: PLR0917  the last two are one case
    monkeypatch.setenv(variable, value)
    async with open_host() as host:
        await host.op("llm.models", {})
        assert threads(0) == []
    assert sending.raw == []


EXPORTERS = """
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.trace.export import SpanExporter

READ = []


class Failing(SpanExporter):
    def export(self, spans):
        raise ValueError("it fails")

    def shutdown(self):
        raise ValueError("it fails again")


class Reading(MetricReader):
    def _receive_metrics(self, metrics_data, timeout_millis=10_000, **options):
        READ.append(metrics_data.to_json())

    def shutdown(self, timeout_millis=30_000, **options):
        self.collect()
        raise ValueError("it fails")
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install exporters of others, of which each has a fault."""
    found = tmp_path / "site" / "other-1.0.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (found / "entry_points.txt").write_text(
        "[opentelemetry_traces_exporter]\nfailing = other_exporters:Failing\n\n"
        "[opentelemetry_metrics_exporter]\nreading = other_exporters:Reading\n"
    )
    (found.parent / "other_exporters.py").write_text(EXPORTERS)
    monkeypatch.syspath_prepend(found.parent)


async def test_exporter_that_raises_is_reported(open_host, installed, monkeypatch, caplog, threads):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "failing")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    async with open_host() as host:
        await host.op("llm.models", {})
    assert notices(caplog) == [GONE]
    assert threads(0) == []


async def test_reader_of_metrics_may_be_installed_instead_of_an_exporter(open_host, installed, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "reading")
    async with open_host() as host:
        await host.op("llm.models", {})
    import other_exporters

    assert "sideband.effect.duration" in other_exporters.READ[0]
