"""The op family passes the tests that every op family passes."""

from urllib.request import Request, urlopen

import anyio
import pytest
from sideband_testing import Example, OpFamilyConformance
from sideband_testing.conformance import tree_of

URL = "{server}/note"
NEW = {"url": URL, "body": "new"}
UNKNOWN = "only for PUT and DELETE can the server be asked whether it happened"
CREATING = ("http.put", "http.request")  # so that what the server has shows whether it happened
ON_SERVER = "a change on a server cannot be undone"


class TestHttp(OpFamilyConformance):
    """The ops change a note on a server, which answers from the process of the test."""

    plugin = "op.http"
    also = ("op.files",)
    max_modules = 120
    max_steps = 5
    examples = (
        Example("http.get", {"url": URL}),
        Example("http.get", {"url": "http://127.0.0.1:9/"}, error="http.connect"),
        Example("http.head", {"url": URL}),
        Example("http.options", {"url": URL}),
        Example("http.put", NEW),
        Example("http.delete", {"url": URL}),
        Example("http.post", NEW),
        Example("http.patch", NEW),
        Example("http.request", {"method": "PUT", **NEW}),
        Example("http.download", {"url": URL, "path": "note.txt"}),
        Example("http.fetch_blob", {"url": URL}),
        Example("http.session_open", {"base_url": "{server}"}),
        Example("http.session_request", {"session_id": "none", "url": "/note"}, error="http.session"),
        Example("http.session_close", {"session_id": "none"}, error="http.session"),
    )
    unknown_after_kill = {"http.post": UNKNOWN, "http.patch": UNKNOWN}
    remains_after_undo = dict.fromkeys(
        ("http.put", "http.delete", "http.post", "http.patch", "http.request"), ON_SERVER
    )

    @pytest.fixture(autouse=True)
    def serving(self, http_server):
        self.values["server"] = http_server.origin
        self.note = b"old"
        http_server.answer(self.answer)

    def answer(self, exchange):
        method, body = exchange.request.method, exchange.request.body
        if method == "RESET":
            self.note = body or None
        elif method == "DELETE":
            self.note = None
        elif method == "PUT":
            self.note = body
        elif method in ("POST", "PATCH"):
            self.note = (self.note or b"") + body
        found = self.note is not None or method == "RESET"
        return exchange.respond(self.note or b"", status=200 if found else 404)

    async def prepare_host(self, host, example):
        (host.home / "files" / "note.txt").unlink(missing_ok=True)
        # By a request, since the process that a check kills is a copy of that of the server.
        content = b"" if example.name in CREATING else b"old"
        reset = Request(f"{self.values['server']}/note", content, method="RESET")
        await anyio.to_thread.run_sync(lambda: urlopen(reset).close())

    def observe(self, folder, home):
        return self.note, tree_of(home / "files")
