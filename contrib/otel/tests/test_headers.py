"""The headers that the variables set."""

import pytest
from sideband.plugins import PluginError
from sideband_otel import HeadersInvalid

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a9c51"


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


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", f"authorization=Bearer%20{CANARY}"),
        ("OTEL_EXPORTER_OTLP_HEADERS", f"x-tenant=billing, x-api-key = {CANARY}"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-api-key=canary%2D7f3a9c51"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://me:{CANARY}@127.0.0.1:9"),
    ],
)
async def test_secrets_of_variables_are_redacted(open_host, sending, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    async with open_host(settings={"plugins": {"otel": {"close_seconds": 0}}}) as host:
        assert host.redactor.text(f"it is {CANARY}.") == "it is [redacted:otel]."


async def test_value_that_the_sdk_does_not_decode_is_a_secret_as_it_is(open_host, sending, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=canary%2D7f3a 9c51")
    async with open_host() as host:
        await host.op("llm.models", {})
        assert host.redactor.text("it is canary%2D7f3a 9c51.") == "it is [redacted:otel]."
    assert sending.headers[0]["x-api-key"] == "canary%2D7f3a 9c51"


async def test_invalid_endpoint_is_reported_and_stops_nothing(open_host, monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[::1")
    async with open_host() as host:
        await host.op("llm.models", {})
    assert "telemetry cannot be sent" in caplog.text


async def test_name_of_a_data_set_is_not_a_secret(open_host, sending, monkeypatch, http_server):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-honeycomb-dataset=sideband,x-scope-orgid=sideband")
    async with open_host() as host:
        assert (await host.op("http.get", {"url": http_server.url("/echo")}))["status"] == 200


@pytest.mark.parametrize("wrong", [f"authorization: {CANARY}", f"a=b, {CANARY}", f"a={CANARY};b", f"a b={CANARY}"])
async def test_invalid_header_is_reported_without_its_value(open_host, sending, monkeypatch, caplog, wrong):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", wrong)
    async with open_host() as host:
        with pytest.raises(PluginError) as caught:
            await host.plugins.load("hook", "otel")
    assert isinstance(caught.value.__cause__, HeadersInvalid)
    number = len(wrong.split(","))
    assert f"`OTEL_EXPORTER_OTLP_METRICS_HEADERS`: header {number} is invalid" in caplog.text
    assert CANARY not in caplog.text
    assert sending.raw == []
