"""A model server that answers immediately, for sideband and the peers: Chat Completions, streamed or not.

It calls the tool ``add`` until the last input has as many results as the model's name specifies (``tools-2``), then
ends the run. Prints its port. Exits when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def message(request: dict[str, Any]) -> dict[str, Any]:
    """Return the message of the model."""
    roles = [one["role"] for one in request["messages"]]
    last = max(number for number, role in enumerate(roles) if role == "user")
    done = roles[last:].count("tool")
    if done >= int(request["model"].rpartition("-")[2]):
        return {"role": "assistant", "content": "All is done."}
    function = {"name": "add", "arguments": f'{{"a": {done}, "b": 1}}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"index": 0, "id": f"call_{done}", "type": "function", "function": function}],
    }


def whole(request: dict[str, Any]) -> bytes:
    """Return the answer as a single response."""
    answer = message(request)
    choice = {"index": 0, "message": answer, "finish_reason": "tool_calls" if "tool_calls" in answer else "stop"}
    body = json.dumps({**_head(request, "chat.completion"), "choices": [choice], "usage": USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def streamed(request: dict[str, Any]) -> bytes:
    """Return the answer as events: the message, the finish reason and the usage."""
    answer = message(request)
    finish = "tool_calls" if "tool_calls" in answer else "stop"
    head = _head(request, "chat.completion.chunk")
    events = [
        {**head, "choices": [{"index": 0, "delta": answer, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {**head, "choices": [], "usage": USAGE},
    ]
    body = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"
    head_lines = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head_lines + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def _head(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "c1", "object": kind, "created": 1, "model": request["model"]}


class Connection(asyncio.Protocol):
    """Answers requests sequentially."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        """Answer each complete request."""
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
    """Serve until standard input is closed."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
