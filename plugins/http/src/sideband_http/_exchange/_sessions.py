"""Sessions, which several requests of a call share. Each belongs to the trust domain that opened it."""

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
    """An open session with its defaults, cookies and connections.

    Args:
        domain: the trust domain that may use it.
        base: the base of relative URLs. If set, the defaults apply to its origin only.
        timeout: the time limit of an attempt, in seconds.
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
        """Return the target of a URL in this session.

        Raises:
            UrlInvalid: if the URL is invalid, or is relative and the session has no ``base_url``.
        """
        return parse_url(url) if self.base is None else self.base.join(url)

    def complete(self, plan: RequestPlan) -> RequestPlan:
        """Add the session's defaults to a request for its origin. Values of the request take precedence."""
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
    """The open sessions of the host, by unguessable ids."""

    limit: int
    _open: dict[str, OpenSession] = field(factory=dict, init=False, repr=False)

    def ids(self) -> tuple[str, ...]:
        """Return the ids of the open sessions."""
        return tuple(self._open)

    def add(self, session: OpenSession) -> str:
        """Add a session and return its id.

        Raises:
            LimitExceeded: if its domain has too many open sessions.
        """
        if sum(other.domain == session.domain for other in self._open.values()) >= self.limit:
            raise LimitExceeded("http_sessions", self.limit, retryable=True)
        session_id = secrets.token_hex(16)
        self._open[session_id] = session
        return session_id

    def get(self, session_id: str, domain: str) -> OpenSession:
        """Return the session if it is open and belongs to ``domain``.

        Raises:
            HttpSessionNotFound: otherwise. The error does not reveal whether the session exists.
        """
        session = self._open.get(session_id)
        if session is None or session.domain != domain:
            raise HttpSessionNotFound
        return session

    async def close(self, session_id: str) -> None:
        """Close a session if it is still open."""
        session = self._open.pop(session_id, None)
        if session is not None:
            await session.connections.aclose()

    async def aclose(self) -> None:
        """Close all sessions."""
        while self._open:
            _, session = self._open.popitem()
            await session.connections.aclose()
