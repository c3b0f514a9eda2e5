"""The fixture `http_server`: a real HTTP server on the loopback interface."""

from ._exchange import HttpExchange, HttpRequest
from ._server import HttpServer

__all__ = ["HttpExchange", "HttpRequest", "HttpServer"]
