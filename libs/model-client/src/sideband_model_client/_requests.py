"""What a service is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ._access import ServiceAccess
from ._strict_json import compact, whole_characters

if TYPE_CHECKING:
    import httpx


@frozen
class ServiceRequest:
    """One request.

    Attributes:
        access: how the service is reached.
        path: below the service's address, with its query.
        body: the object that is posted as JSON; ``None`` to get what is at the path.
        connect_timeout: seconds for making a connection.
        idle_timeout: seconds of silence after which the answer is given up.
        largest: the most bytes that the answer may have.

    Example:
        >>> ServiceRequest(access, "/chat", {"model": "m", "stream": True}).method
        'POST'
    """

    access: ServiceAccess
    path: str
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    connect_timeout: float = 10.0
    idle_timeout: float = 300.0
    largest: int = 64 << 20

    @property
    def method(self) -> str:
        """The HTTP method."""
        return "GET" if self.body is None else "POST"

    def for_httpx(self) -> httpx.Request:
        """Return the request in httpx's form."""
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        # Nothing compressed is asked for: a few bytes of it could become any amount.
        headers = {"accept": "application/json", "accept-encoding": "identity", **self.access.headers}
        content = None
        if self.body is not None:
            # Errors are JSON, and so are the answers of servers that do not stream.
            headers["accept"] = "text/event-stream, application/json"
            headers["content-type"] = "application/json"
            content = whole_characters(compact(self.body)).encode()
        timeout = httpx.Timeout(self.idle_timeout, connect=self.connect_timeout)
        return httpx.Request(
            self.method,
            self.access.address.url + self.path,
            headers=headers,
            content=content,
            extensions={"timeout": timeout.as_dict()},
        )
