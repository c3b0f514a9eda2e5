"""Functions for skills in addition to the generated ones: a session as a context manager. Standard library only."""

# mypy: disable-error-code="import-not-found, misc"
# The types are generated with the functions, so they exist only beside them: `sideband sdk stubs` writes both.

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sideband.skill import dispatch

if TYPE_CHECKING:
    from typing import Unpack

    from sideband_sdk.http import Response, SessionOpenOptions, SessionRequestOptions

__all__ = ["session"]


class session:  # noqa: N801  used like a function: `async with http.session(...) as api`
    """A session: shared cookies, defaults and retries. Takes the parameters of ``http.session_open``.

    Example:
        async with http.session(base_url="https://api.example.org", auth="example", retry=3) as api:
            first = await api.get("/items", params={"page": 1})
            await api.post("/items", json={"name": "new"})
    """

    def __init__(self, **options: Unpack[SessionOpenOptions]) -> None:
        self._options = options
        self._session_id: str | None = None

    async def __aenter__(self) -> Self:
        opened = await dispatch("http.session_open", self._options)
        self._session_id = opened["session_id"]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await dispatch("http.session_close", {"session_id": self._session_id})

    async def request(self, method: str, url: str, /, **options: Unpack[SessionRequestOptions]) -> Response:
        """Send a request in this session. Takes the parameters of ``http.session_request``."""
        if self._session_id is None:
            raise RuntimeError("use it as `async with http.session(...) as api`")
        if "method" in options:
            raise TypeError("pass the method by position, as in `await api.request('PUT', url)`")
        params = {"session_id": self._session_id, "method": method, "url": url, **options}
        answer: Response = await dispatch("http.session_request", params)
        return answer

    async def get(self, url: str, **options: Unpack[SessionRequestOptions]) -> Response:
        """Fetch a URL."""
        return await self.request("GET", url, **options)

    async def head(self, url: str, **options: Unpack[SessionRequestOptions]) -> Response:
        """Fetch the headers of a URL."""
        return await self.request("HEAD", url, **options)

    async def options(self, url: str, **options: Unpack[SessionRequestOptions]) -> Response:
        """Request the options of a URL."""
        return await self.request("OPTIONS", url, **options)

    async def post(self, url: str, **options: Unpack[SessionRequestOptions]) -> Response:
        """Post to a URL."""
        return await self.request("POST", url, **options)

    async def put(self, url: str, **options: Unpack[SessionRequestOptions]) -> Response:
        """Replace the resource at a URL."""
        return await self.request("PUT", url, **options)

    async def patch(self, url: str, **options: Unpack[SessionRequestOptions]) -> Response:
        """Modify the resource at a URL."""
        return await self.request("PATCH", url, **options)

    async def delete(self, url: str, **options: Unpack[SessionRequestOptions]) -> Response:
        """Delete the resource at a URL."""
        return await self.request("DELETE", url, **options)
