"""A small HTTP service on loopback, run as a separate process. It uses the standard library only.

It reads its token from standard input, prints its port, and exits when standard input is closed, so it cannot outlive
the host.
"""

from __future__ import annotations

import hmac
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLANETS = (
    ("Mercury", 0, 4222.6),
    ("Venus", 0, 2802.0),
    ("Earth", 1, 24.0),
    ("Mars", 2, 24.7),
    ("Jupiter", 97, 9.9),
    ("Saturn", 274, 10.7),
    ("Uranus", 29, 17.2),
    ("Neptune", 16, 16.1),
)


class PlanetHandler(BaseHTTPRequestHandler):
    """Handles ``GET /planets/N`` requests that carry the token."""

    token = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Handle a request."""
        authorization = self.headers.get("Authorization", "")
        if not hmac.compare_digest(authorization, f"Bearer {self.token}"):
            self._answer(401, {"error": "missing or invalid token"})
            return
        kind, _, number = self.path.strip("/").partition("/")
        if kind != "planets" or not number.isdecimal() or not 1 <= int(number) <= len(PLANETS):
            self._answer(404, {"error": f"not found: {self.path}"})
            return
        name, moons, day_hours = PLANETS[int(number) - 1]
        self._answer(200, {"position": int(number), "name": name, "moons": moons, "day_hours": day_hours})

    def _answer(self, status: int, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's parameter name
        """Log nothing: the ledger records all requests."""


class PlanetServer(ThreadingHTTPServer):
    """A server that does not log connection errors."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error."""


def main() -> None:
    """Serve until standard input ends."""
    PlanetHandler.token = sys.stdin.readline().strip()
    with PlanetServer(("127.0.0.1", 0), PlanetHandler) as server:
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
