"""Requests to a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from sideband.messages import JsonPieces

from ._access import ServiceAccess
from ._strict_json import encoded

if TYPE_CHECKING:
    import httpx


@frozen
class ServiceRequest:
    """A request to a service.

    Attributes:
        access: the access to the service.
        path: the path relative to the service's address, including the query.
        body: the object to post as JSON, or its pieces; ``None`` for a GET request.
        connect_timeout: the time limit for connecting, in seconds.
        idle_timeout: the time limit for each wait for data, in seconds.
        largest: the maximum size of the response in bytes.

    Example:
        >>> ServiceRequest(access, "/chat", {"model": "m", "stream": True}).method
        'POST'
    """

    access: ServiceAccess
    path: str
    body: Mapping[str, Any] | JsonPieces | None = field(default=None, repr=False)
    connect_timeout: float = 10.0
    idle_timeout: float = 300.0
    largest: int = 64 << 20

    @property
    def method(self) -> str:
        """The HTTP method."""
        return "GET" if self.body is None else "POST"

    def checked_content(self) -> bytes | None:
        """Return the body as it is sent.

        Raises:
            EgressRefused: if it contains a secret.
        """
        if self.body is None:
            return None
        content = self.body if isinstance(self.body, JsonPieces) else encoded(self.body)
        self.access.check_egress(None, {"request to the model": content})
        return bytes(content)

    def for_httpx(self, content: bytes | None) -> httpx.Request:
        """Return the request with this content as an httpx request."""
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        # No compression: a few compressed bytes could expand to any amount.
        headers = {"accept": "application/json", "accept-encoding": "identity", **self.access.headers}
        if content is not None:
            # Errors are JSON, as are the responses of servers that do not stream.
            headers["accept"] = "text/event-stream, application/json"
            headers["content-type"] = "application/json"
        timeout = httpx.Timeout(self.idle_timeout, connect=self.connect_timeout)
        return httpx.Request(
            self.method,
            self.access.address.url + self.path,
            headers=headers,
            content=content,
            extensions={"timeout": timeout.as_dict()},
        )
