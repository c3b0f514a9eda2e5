"""Count the requests for each path, outside of the hosts that send them. The port is printed.

The answer to a path that begins with `/look` is never the same, and usually large. `/seen` and `/total` return the
counts.
"""

import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGE = 40_000
seen = Counter()
looks = Counter()
lock = threading.Lock()


def answer(path):
    if path == "/seen":
        return json.dumps(seen)
    if path == "/total":
        return str(seen.total() + looks.total())
    if not path.startswith("/look"):
        seen[path] += 1
        return "ok"
    looks[path] += 1
    number = looks.total()
    return f"{number} {'.' * (LARGE if number % 3 else 0)}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        with lock:
            data = answer(self.path).encode()
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET  # noqa: N815  name required by the base class

    def handle(self):
        try:
            super().handle()
        except OSError:
            return  # a killed host closes its connections

    def log_message(self, *words): ...


def serve():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    serve()
