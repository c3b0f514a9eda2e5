"""Cookies that servers set. They stay in the host, and go back to where they came from only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._headers import parse_cookie_header

if TYPE_CHECKING:
    import httpx

__all__ = ["CookieJar"]

_MOST = 300


class CookieJar:
    """The cookies of one session, or of the redirects of one request."""

    def __init__(self) -> None:
        self._cookies: httpx.Cookies | None = None

    def learn(self, response: httpx.Response) -> None:
        """Keep what a response sets. A jar that is full keeps what it has."""
        if "set-cookie" not in response.headers:
            return
        if self._cookies is None:
            import httpx  # noqa: PLC0415  slow to import; only requests need it

            self._cookies = httpx.Cookies()
        if len(self._cookies) < _MOST:
            self._cookies.extract_cookies(response)

    def cookies_for(self, request: httpx.Request) -> dict[str, str]:
        """The cookies that belong to a request, by domain, path, age and ``Secure``."""
        if self._cookies is None:
            return {}
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        blank = httpx.Request(request.method, request.url)
        self._cookies.set_cookie_header(blank)
        return parse_cookie_header(blank.headers.get("cookie", ""))
