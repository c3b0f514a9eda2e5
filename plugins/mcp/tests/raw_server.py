"""A server of the older protocol that needs the standard library only. A test replaces what it does.

Usage: raw_server.py BEHAVIOR, the source of a function ``answer(method, params, id, send)``. It returns the result of
a request, or ``None`` if it has sent what it wants by itself.
"""

import json
import sys

TOOL = {"name": "go", "description": "Go.", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def default(method, params):
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        info = {"name": "raw", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return text("gone")
    return {} if method == "ping" else None


def serve(answer):
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message or "id" not in message:
            answer(message.get("method"), message, None)
            continue
        method, number = message["method"], message["id"]
        if method == "server/discover":
            send(id=number, error={"code": -32601, "message": "unknown method"})
            continue
        result = answer(method, message.get("params") or {}, number)
        if result is not None:
            send(id=number, result=result)


space = {"send": send, "text": text, "default": default, "TOOL": TOOL}
exec(sys.argv[1], space)
serve(space["answer"])
