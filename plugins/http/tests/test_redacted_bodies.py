"""The text of a JSON body is redacted like the data parsed from it."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

pytestmark = pytest.mark.anyio


@contextmanager
def answering(body, kind="application/json"):
    """Run a server that answers each request with this body, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("kind", ["application/json", "application/vnd.api+json; charset=utf-8"])
async def test_value_under_a_sensitive_key_is_redacted_in_text_and_data(host, kind):
    with answering(b'{"user": "ada", "password": "hunter2", "nested": [{"GITHUB_TOKEN": {"a": "b"}}]}', kind) as url:
        answer = await host.op("http.get", {"url": url})
    assert answer["body"] == '{"user": "ada", "password": "[redacted]", "nested": [{"GITHUB_TOKEN": "[redacted]"}]}'
    assert json.loads(answer["body"]) == answer["json"]


async def test_value_of_a_repeated_key_is_redacted_in_the_text(host):
    with answering(b'{"password": "hunter2", "password": null}') as url:
        answer = await host.op("http.get", {"url": url})
    assert "hunter2" not in repr(answer)


async def test_large_body_is_redacted_too(host):
    body = json.dumps([{"id": number, "token": f"hunter{number}"} for number in range(20_000)]).encode()
    with answering(body) as url:
        answer = await host.op("http.get", {"url": url})
    assert "hunter" not in repr(answer)
    assert json.loads(answer["body"]) == answer["json"]


async def test_other_text_is_unchanged(host):
    with answering(b'{"password": "hunter2"}', "text/plain") as url:
        answer = await host.op("http.get", {"url": url})
    assert (answer["body"], answer["json"]) == ('{"password": "hunter2"}', None)
