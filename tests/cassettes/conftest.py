"""Hosts with real plugins and a cassette, a server, and a process without sockets."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import sideband_http.plugin
import sideband_llm.plugin
import sideband_prompt.plugin
import sideband_skills.plugin
import sideband_sql.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_cassettes import Cassette
from sideband_scripted import Scripted


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.json"


@pytest.fixture
def hosting(tmp_path, file):
    """Return a function that makes a host with a cassette, a state folder of its own, and the skills of the test."""
    made = []

    def make(mode, *turns, plugins=(), grants=None, path=file, **agent):
        made.append(mode)
        model = Scripted(turns or ["ok"], name="scripted")
        used = [
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("loader", "skills", sideband_skills.plugin),
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("op", "http", sideband_http.plugin),
            Plugin("op", "sql", sideband_sql.plugin),
            Plugin("hook", "prompt", sideband_prompt.plugin),
            Plugin("provider", "scripted", model),
            *plugins,
        ]
        settings = {"agent": {"model": "scripted:test", **agent}, "policy": {"isolation": "none"}}
        folder = tmp_path / "skills"
        return Host(
            home=tmp_path / f"home{len(made)}",
            settings=settings,
            plugins=used,
            autoload=False,
            skill_dirs=[folder] if folder.exists() else [],
            grants=grants or {},
            cassette=Cassette(path, mode),
        )

    return make


class Pages(BaseHTTPRequestHandler):
    """Counts requests, and answers each with its number."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.requests.append(self.path)
        content = f'{{"page": "{self.path}",\n"number": {len(self.server.requests)}}}'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    """A server on loopback, with the list of its ``requests`` and its ``url``."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as running:
        running.requests = []
        running.url = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def without_sockets(monkeypatch):
    """Refuse every socket that could leave the process. The event loop and workers have pairs of their own."""
    real = socket.socket

    class Refused(real):
        def __init__(self, *arguments, fileno=None):
            if fileno is None and len(arguments) < 4:
                raise AssertionError("a socket was opened")
            super().__init__(*arguments, **({} if fileno is None else {"fileno": fileno}))

        def connect(self, address):
            raise AssertionError(f"connects to {address}")

    monkeypatch.setattr(socket, "socket", Refused)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("a name was looked up"))
