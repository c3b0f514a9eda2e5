"""Functions for skills in addition to the generated ones: a session as a context manager. Standard library only."""

from typing import Any, Self

from sideband.skill import dispatch

__all__ = ["session"]


class session:  # noqa: N801  used like a function: `async with http.session(...) as api`
    """A session: shared cookies, defaults and retries. Takes the parameters of ``http.session_open``.

    Example:
        async with http.session(base_url="https://api.example.org", auth="example", retry=3) as api:
            first = await api.get("/items", params={"page": 1})
            await api.post("/items", json={"name": "new"})
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._session_id: str | None = None

    async def __aenter__(self) -> Self:
        opened = await dispatch("http.session_open", self._options)
        self._session_id = opened["session_id"]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await dispatch("http.session_close", {"session_id": self._session_id})

    async def request(self, method: str, url: str, **options: Any) -> Any:
        """Send a request in this session. Takes the parameters of ``http.session_request``."""
        if self._session_id is None:
            raise RuntimeError("use it as `async with http.session(...) as api`")
        params = {"session_id": self._session_id, "method": method, "url": url, **options}
        return await dispatch("http.session_request", params)

    async def get(self, url: str, **options: Any) -> Any:
        """Fetch a URL."""
        return await self.request("GET", url, **options)

    async def head(self, url: str, **options: Any) -> Any:
        """Fetch the headers of a URL."""
        return await self.request("HEAD", url, **options)

    async def options(self, url: str, **options: Any) -> Any:
        """Request the options of a URL."""
        return await self.request("OPTIONS", url, **options)

    async def post(self, url: str, **options: Any) -> Any:
        """Post to a URL."""
        return await self.request("POST", url, **options)

    async def put(self, url: str, **options: Any) -> Any:
        """Replace the resource at a URL."""
        return await self.request("PUT", url, **options)

    async def patch(self, url: str, **options: Any) -> Any:
        """Modify the resource at a URL."""
        return await self.request("PATCH", url, **options)

    async def delete(self, url: str, **options: Any) -> Any:
        """Delete the resource at a URL."""
        return await self.request("DELETE", url, **options)
