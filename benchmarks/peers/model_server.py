"""A server of models that answers at once, for ours and the peers: Chat Completions, whole or as a stream.

It asks for the tool ``add`` until the conversation has as many results as the model's name says (``tools-2``), and
then ends. Prints its port. Ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def message(request: dict[str, Any]) -> dict[str, Any]:
    """What the model says."""
    done = sum(one["role"] == "tool" for one in request["messages"])
    if done >= int(request["model"].rpartition("-")[2]):
        return {"role": "assistant", "content": "All is done."}
    function = {"name": "add", "arguments": f'{{"a": {done}, "b": 1}}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"index": 0, "id": f"call_{done}", "type": "function", "function": function}],
    }


def whole(request: dict[str, Any]) -> bytes:
    """The answer in one piece."""
    said = message(request)
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls" if "tool_calls" in said else "stop"}
    body = json.dumps({**_head(request, "chat.completion"), "choices": [choice], "usage": USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def streamed(request: dict[str, Any]) -> bytes:
    """The answer as events: one with all of it, one that ends it, one with what it cost."""
    said = message(request)
    finish = "tool_calls" if "tool_calls" in said else "stop"
    head = _head(request, "chat.completion.chunk")
    events = [
        {**head, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {**head, "choices": [], "usage": USAGE},
    ]
    body = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"
    head_lines = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head_lines + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def _head(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "c1", "object": kind, "created": 1, "model": request["model"]}


class Connection(asyncio.Protocol):
    """Answers one request after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        """Answer each request that is whole."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            _, _, rest = head.partition(b"content-length:")
            length = int(rest.split(b"\r\n", 1)[0] or 0)
            if len(self._data) < end + 4 + length:
                return
            body, self._data = self._data[end + 4 : end + 4 + length], self._data[end + 4 + length :]
            if not body:
                self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                continue
            request = json.loads(body)
            self._transport.write(streamed(request) if request.get("stream") else whole(request))


async def main() -> None:
    """Serve until nobody needs it."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
