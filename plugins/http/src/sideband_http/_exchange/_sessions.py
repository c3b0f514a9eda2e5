"""Sessions: what several requests of one call share. Each belongs to the domain that opened it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from attrs import define, evolve, field
from sideband.ops import LimitExceeded

from .._addresses._url import RequestTarget, parse_url
from .._errors import HttpSessionNotFound
from .._request._cookies import CookieJar
from .._request._plan import RequestPlan
from .._transport._connections import HttpConnections
from ._retry import RequestRetry


@define(eq=False)
class OpenSession:
    """An open session: its defaults, its cookies and its connections.

    Args:
        domain: who may use it.
        base: what relative URLs are relative to, and whose origin the defaults are for; ``None`` for any.
        timeout: seconds for one attempt.
    """

    domain: str
    connections: HttpConnections = field(repr=False)
    base: RequestTarget | None = None
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    cookies: Mapping[str, str] = field(factory=dict, repr=False)
    auth: str | None = None
    timeout: float = 30.0
    http2: bool = True
    retry: RequestRetry = field(factory=RequestRetry)
    jar: CookieJar = field(factory=CookieJar, init=False, repr=False)

    def locate(self, url: str) -> RequestTarget:
        """Where a URL leads in this session.

        Raises:
            UrlInvalid: nowhere that a request may go, or it is relative and there is no ``base_url``.
        """
        return parse_url(url) if self.base is None else self.base.join(url)

    def complete(self, plan: RequestPlan) -> RequestPlan:
        """Add the session's defaults to a request of its own origin; what the request itself says wins."""
        if self.base is not None and plan.target.origin != self.base.origin:
            return plan
        own = {name.lower() for name in plan.headers}
        added = {name: value for name, value in self.headers.items() if name.lower() not in own}
        return evolve(
            plan,
            headers={**added, **plan.headers},
            cookies={**self.cookies, **plan.cookies},
            auth=self.auth if plan.auth is None else plan.auth,
        )


@define
class HttpSessions:
    """All open sessions of the host, under ids that can't be guessed."""

    limit: int
    _open: dict[str, OpenSession] = field(factory=dict, init=False, repr=False)

    def ids(self) -> tuple[str, ...]:
        """The ids of those that are open."""
        return tuple(self._open)

    def add(self, session: OpenSession) -> str:
        """Keep a session, and return its id.

        Raises:
            LimitExceeded: its domain has too many open.
        """
        if sum(other.domain == session.domain for other in self._open.values()) >= self.limit:
            raise LimitExceeded("http_sessions", self.limit, retryable=True)
        session_id = secrets.token_hex(16)
        self._open[session_id] = session
        return session_id

    def get(self, session_id: str, domain: str) -> OpenSession:
        """The session, if it is open and belongs to ``domain``.

        Raises:
            HttpSessionNotFound: it is not. Whether it is somebody else's is not told.
        """
        session = self._open.get(session_id)
        if session is None or session.domain != domain:
            raise HttpSessionNotFound
        return session

    async def close(self, session_id: str) -> None:
        """Close a session, if it is still open."""
        session = self._open.pop(session_id, None)
        if session is not None:
            await session.connections.aclose()

    async def aclose(self) -> None:
        """Close all."""
        while self._open:
            _, session = self._open.popitem()
            await session.connections.aclose()
