"""Servers that echo the API key of a request in answers, errors and lists of models."""

import json
import logging
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import sideband_anthropic.plugin
import sideband_llm.plugin
import sideband_openai.plugin
import sideband_store_sqlite.plugin
from attrs import asdict
from sideband import Host, Plugin, SidebandError
from sideband_agent import Agent

pytestmark = pytest.mark.anyio

KEY = "sk-c4n4ry-0123456789-abcdef"


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        length = int(self.headers.get("content-length", 0))
        self.rfile.read(length)
        key = self.headers.get("authorization") or self.headers.get("x-api-key") or ""
        self.server.keys.append(key)
        status, kind, body = self.server.reply(key)
        body = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-request-id", key)
        self.send_header("retry-after", key)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815  names required by the base class

    def log_message(self, *_):
        pass


@contextmanager
def serving(reply):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.reply, server.keys = reply, []
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def chunk(**delta):
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': None}]})}\n\n"


def letter_by_letter(key):
    pieces = [chunk(content=one) for one in f"the key is {key}!"]
    pieces += [chunk(reasoning_content=one) for one in key]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return 200, "text/event-stream", "".join([*pieces, f"data: {json.dumps(end)}\n\n", "data: [DONE]\n\n"])


def messages_letter_by_letter(key):
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": one}}
            for one in f"the key is {key}!"
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return 200, "text/event-stream", "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)


REPLIES = {
    "refused": lambda key: (401, "application/json", json.dumps({"error": {"message": f"incorrect key {key}"}})),
    "refused with a long body": lambda key: (400, "text/plain", f"{'x' * 3_990}{key}{'y' * 5_000}"),
    "failed": lambda key: (500, "text/plain", f"{'x' * 490}{key}"),
    "redirect": lambda key: (302, "text/html", f"<a href='/{key}'>"),
    "an error event": lambda key: (
        200,
        "text/event-stream",
        f"event: error\ndata: {json.dumps({'type': 'error', 'error': {'type': key, 'message': key}})}\n\n",
    ),
    "a web page": lambda key: (200, "text/html", f"<h1>{key}</h1>"),
    "a broken stream": lambda key: (200, "text/event-stream", f"data: {key}\n\n"),
    "letter by letter": letter_by_letter,
    "letter by letter, as Messages": messages_letter_by_letter,
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("name", ["openai", "anthropic"])
async def test_key_echoed_by_a_server_is_redacted(tmp_path, monkeypatch, caplog, name, reply):
    caplog.set_level(logging.DEBUG, logger="sideband")
    plugin = {"openai": sideband_openai.plugin, "anthropic": sideband_anthropic.plugin}[name]
    events = []
    with serving(REPLIES[reply]) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        plugins = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("provider", name, plugin),
        ]
        settings = {"agent": {"model": f"{name}:any"}}
        host = Host(home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False)
        async with host, Agent(host, on_event=events.append) as agent:
            result = await agent.invoke("hi")
            try:
                models = await host.op("llm.models", {"provider": name})
            except SidebandError as error:
                models = error.as_dict()
            exported = "".join(await agent.sessions.export(agent.session.id))
    assert any(KEY in key for key in server.keys), "the server must receive the key"
    outputs = json.dumps([[asdict(event) for event in events], models, exported, str(result)], default=str)
    shown = "".join(event.delta.get("text", "") for event in events if type(event).__name__ == "MessageUpdate")
    if reply.startswith("letter by letter") and ("Messages" in reply) == (name == "anthropic"):
        assert "[redacted:" in shown
    for text in (outputs, shown, caplog.text):
        assert KEY not in text
        assert KEY[:14] not in text
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert [path for path in files if KEY[:14].encode() in path.read_bytes()] == []
