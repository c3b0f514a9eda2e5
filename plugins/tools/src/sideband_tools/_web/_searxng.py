"""SearXNG, a search service that users can host themselves: its JSON format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sideband.tools import ToolContext

from .._config import SearchConfig
from .._errors import SearchUnavailable
from ._requests import get
from ._services import Found

_LONGEST = 10_000


class _FoundResult(BaseModel):
    model_config = ConfigDict(extra="ignore")

    url: str = Field(max_length=_LONGEST)
    title: str = Field(default="", max_length=_LONGEST)
    content: str | None = None
    published: str | None = Field(default=None, alias="publishedDate")


class _FoundPage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    results: list[_FoundResult]


@frozen
class SearXng:
    """A SearXNG server whose setting ``search.formats`` contains ``json``. See ``SearchService``."""

    config: SearchConfig

    async def search(self, ctx: ToolContext, query: str, *, page: int, period: str | None) -> Sequence[Found]:
        """Return a page of results, the best first."""
        params: dict[str, Any] = {"q": query, "format": "json", "pageno": page, "time_range": period}
        url = f"{self.config.url.rstrip('/')}/search"
        response = await get(ctx, url, local=True, params=params, auth=self.config.key)
        return [
            Found(one.title, one.url, one.content or "", (one.published or "")[:10])
            for one in self._parsed(response).results[: self.config.results]
        ]

    def _parsed(self, response: Mapping[str, Any]) -> _FoundPage:
        if not response["ok"]:
            problem = f"{self.config.url} answered with status {response['status']}"
            if response["status"] == 403:
                problem += "; its setting `search.formats` may lack `json`"
            raise SearchUnavailable(problem)
        try:
            return _FoundPage.model_validate(response["json"])
        except ValidationError:
            raise SearchUnavailable(f"{self.config.url} did not answer in the format of SearXNG") from None
