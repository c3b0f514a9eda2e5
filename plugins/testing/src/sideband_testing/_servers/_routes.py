"""The routes of a server: friendly ones, and those of a server that breaks off, lies or floods."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from ._exchange import HttpExchange, response

Route = Callable[[HttpExchange], bool]

_PLAIN = "text/plain"
_EMPTY_STATUSES = frozenset({204, 304})


def _echo(exchange: HttpExchange) -> bool:
    request = exchange.request
    seen = {
        "method": request.method,
        "path": request.path,
        "headers": dict(request.headers),
        "body": base64.b64encode(request.body).decode(),
    }
    return exchange.respond(json.dumps(seen).encode(), kind="application/json")


def _text(exchange: HttpExchange) -> bool:
    query = exchange.request.query
    return exchange.respond("grüß".encode(query.get("as", "utf-8")), kind=query.get("kind", _PLAIN))


def _raw(exchange: HttpExchange) -> bool:
    query = exchange.request.query
    return exchange.respond(base64.b64decode(query["body"]), kind=query.get("kind", "application/octet-stream"))


def _status(exchange: HttpExchange) -> bool:
    code = int(exchange.request.query["code"])
    return exchange.respond(b"" if code in _EMPTY_STATUSES else b"body", status=code)


def _redirect(exchange: HttpExchange) -> bool:
    query = exchange.request.query
    cookies = [("Set-Cookie", query["cookie"])] if "cookie" in query else []
    headers = [("Location", query["to"]), *cookies]
    return exchange.respond(b"elsewhere", status=int(query.get("code", 302)), headers=headers)


def _loop(exchange: HttpExchange) -> bool:
    return exchange.respond(status=302, headers=[("Location", "/loop")])


def _bytes(exchange: HttpExchange) -> bool:
    return exchange.respond(b"x" * int(exchange.request.query["count"]))


def _chunked(exchange: HttpExchange) -> bool:
    exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(int(exchange.request.query["count"])):
        exchange.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
    exchange.send(b"0\r\n\r\n")
    return True


def _gzip(exchange: HttpExchange) -> bool:
    body = gzip.compress(b"\0" * int(exchange.request.query["count"]))
    return exchange.respond(body, headers=[("Content-Encoding", "gzip")])


def _deflate(exchange: HttpExchange) -> bool:
    return exchange.respond(zlib.compress(b"deflated"), headers=[("Content-Encoding", "deflate")])


def _bad_gzip(exchange: HttpExchange) -> bool:
    return exchange.respond(b"this is not gzip", headers=[("Content-Encoding", "gzip")])


def _brotli(exchange: HttpExchange) -> bool:
    return exchange.respond(b"\x8b\x02\x80hello", headers=[("Content-Encoding", "br")])


def _repeated(exchange: HttpExchange) -> bool:
    headers = [("X-Many", "1"), ("X-Many", "2"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    return exchange.respond(headers=headers)


def _many_headers(exchange: HttpExchange) -> bool:
    return exchange.respond(headers=[(f"X-{number}", "y" * 1000) for number in range(80)])


def _set_cookie(exchange: HttpExchange) -> bool:
    return exchange.respond(headers=[("Set-Cookie", exchange.request.query["cookie"])])


def _slow(exchange: HttpExchange) -> bool:
    return exchange.wait()


def _slow_body(exchange: HttpExchange) -> bool:
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
    return exchange.wait()


def _trickle(exchange: HttpExchange) -> bool:
    exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    with suppress(OSError):
        while not exchange.sleep(0.02):
            exchange.send(b"1\r\nx\r\n")
    return False


def _garbage(exchange: HttpExchange) -> bool:
    exchange.send(b"this is not http at all\r\n\r\n")
    return False


def _cut(exchange: HttpExchange) -> bool:
    exchange.send(response(b"x" * 100, status=200, kind=_PLAIN)[:-90])
    return False


ROUTES: dict[str, Route] = {
    "/echo": _echo,
    "/text": _text,
    "/raw": _raw,
    "/status": _status,
    "/redirect": _redirect,
    "/loop": _loop,
    "/bytes": _bytes,
    "/chunked": _chunked,
    "/gzip": _gzip,
    "/deflate": _deflate,
    "/badgzip": _bad_gzip,
    "/brotli": _brotli,
    "/repeated": _repeated,
    "/manyheaders": _many_headers,
    "/setcookie": _set_cookie,
    "/slow": _slow,
    "/slowbody": _slow_body,
    "/trickle": _trickle,
    "/garbage": _garbage,
    "/cut": _cut,
}


def route(exchange: HttpExchange, attempt: int) -> bool:
    """Answer a request by its path; other paths like ``/echo``.

    Args:
        exchange: the request and its connection.
        attempt: the number of this request among those for the same target, from 1.
    """
    path, query = urlsplit(exchange.request.path).path, exchange.request.query
    if path in ("/flaky", "/hangup"):
        if attempt > int(query["failures"]):
            return exchange.respond(b"at last")
        after = [("Retry-After", query["after"])] if "after" in query else []
        return path == "/flaky" and exchange.respond(status=int(query.get("code", 503)), headers=after)
    return ROUTES.get(path, _echo)(exchange)
