"""The package's own tests, with the kit."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import sideband_tides.guard
import sideband_tides.ops
from sideband import Plugin
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def service():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.path == "/dover"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps({"times": ["04:10", "16:32"]} if known else {}).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def host(sideband_host, service):
    plugins = [Plugin("op", "tides", sideband_tides.ops), Plugin("guard", "tides", sideband_tides.guard), "op.http"]
    settings = {
        "plugins": {"tides": {"url": service, "closed": ["wick"]}},
        "grants": {"plugin:tides": ["http:host=127.0.0.1,method=GET"]},
    }
    return sideband_host(*plugins, settings=settings)


async def test_high_waters_come_from_the_service(host):
    async with host:
        assert await host.op("tides.high_waters", {"station": "dover", "count": 1}) == {
            "station": "dover",
            "times": ["04:10"],
        }


async def test_unknown_station_has_an_error_of_its_own(host):
    async with host:
        with pytest.raises(sideband_tides.ops.StationUnknown, match="atlantis"):
            await host.op("tides.high_waters", {"station": "atlantis"})


async def test_closed_station_is_denied(host):
    async with host:
        with pytest.raises(OpDenied, match="closed"):
            await host.op("tides.high_waters", {"station": "wick"})


async def test_grant_restricts_the_station(host):
    async with host:
        with pytest.raises(OpDenied):
            await host.op("tides.high_waters", {"station": "dover"}, grants=["tides:station=wick"])
