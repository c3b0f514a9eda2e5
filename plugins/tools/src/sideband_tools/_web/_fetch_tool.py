"""The tool `fetch`: read a page of the web."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urldefrag, urljoin

from sideband.ops import Level
from sideband.tools import ToolContext, ToolOutput, tool

from .._config import config_of
from .._documents import DocumentText, page_text, pdf_text
from .._errors import AnswerNotText
from ._models import PageParams
from ._pages import KeptPages, PageKey, PageText
from ._requests import from_web, get, host_of

_CHARACTERS = 30_000
_OF_ERRORS = 2_000
_REDIRECTS = 5
_LONGEST = 2_000
_IN_URLS = "%/:?#[]@!$&'()*+,;=~"
_KIND = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}\Z")
_PAGES = ("text/html", "application/xhtml+xml")
_ACCEPT = "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, application/pdf, */*;q=0.5"


@tool("fetch", level=Level.MONITORED, read_only=True, resume="replay")
async def fetch(params: PageParams, ctx: ToolContext) -> str | ToolOutput:
    """Read a page of the web as text: HTML as Markdown, PDF files, JSON and plain text.

    It runs no scripts and has no logins. The user is asked once for each host. The first part of a long page is always
    fetched; further ones are of the same version.
    """
    key = PageKey(ctx.session.id, urldefrag(params.url).url, params.source)
    pages: KeptPages = ctx.state
    if params.offset and (page := pages.get(key)):
        return _part(page, params.offset)
    url, response = await _followed(ctx, key.url)
    if location := _location(url, response):
        why = "on another host" if host_of(location) != host_of(url) else "not followed"
        return f"[{url} redirects to {location}, {why}: call `fetch` with this URL if you want to read it]"
    document = await _document(url, response, source=params.source)
    if not response["ok"]:
        # First, because a terminal shows the first line of an error.
        text = f"the server answered with status {response['status']}\n{from_web(document.text[:_OF_ERRORS], url, [])}"
        return ToolOutput(text, is_error=True)
    text = f"# {document.title}\n\n{document.text}" if document.title else document.text
    page = PageText(url, text, datetime.now(UTC))
    if len(text) > _CHARACTERS:
        pages.keep(key, page)
    else:
        pages.drop(key)
    return _part(page, params.offset)


async def _followed(ctx: ToolContext, url: str) -> tuple[str, Mapping[str, Any]]:
    """Return the response to a request, after redirects within the host, and its URL."""
    local = config_of(ctx).local_hosts
    for _ in range(_REDIRECTS):
        response = await get(ctx, url, local=host_of(url) in local, headers={"accept": _ACCEPT})
        location = _location(url, response)
        if not location or not _may_follow(url, location):
            break
        url = location
    return url, response


def _location(url: str, response: Mapping[str, Any]) -> str:
    """Return the URL that a response redirects to; empty if it does not redirect."""
    location = response["headers"].get("location", "")
    is_redirect = bool(location) and 300 <= response["status"] < 400
    # The server chose it, and it is shown outside of the marks.
    return quote(urljoin(url, location), safe=_IN_URLS)[:_LONGEST] if is_redirect else ""


def _may_follow(url: str, location: str) -> bool:
    encrypted = url.startswith("https:") <= location.startswith("https:")
    return encrypted and host_of(location) == host_of(url)


async def _document(url: str, response: Mapping[str, Any], *, source: bool) -> DocumentText:
    kind = response["headers"].get("content-type", "").partition(";")[0].strip().lower()
    body, data = response["body"], response["bytes"]
    if body is not None and (body.startswith("%PDF-") or "\0" in body):
        body, data = None, str(body).encode()
    if data is not None and data.startswith(b"%PDF-"):
        return await pdf_text(url, data, characters=_CHARACTERS * 100)
    is_page = kind in _PAGES or (
        not kind and body is not None and body.lstrip()[:14].lower().startswith("<!doctype html")
    )
    if is_page and not source:
        return await page_text(data if body is None else body.encode(), url)
    if body is None and response["json"] is not None:
        body = json.dumps(response["json"], ensure_ascii=False, indent=1)
    if body is None:
        raise AnswerNotText(url, kind if _KIND.match(kind) else "", response["body_length"])
    return DocumentText(body)


def _part(page: PageText, offset: int) -> str:
    length = len(page.text)
    if not page.text.strip():
        return f"[{page.url} has no text: it may need a browser that runs its scripts]"
    if offset >= length:
        return f"[offset {offset:,} is beyond the end: the text of {page.url} has {length:,} characters]"
    end = min(offset + _CHARACTERS, length)
    notes = []
    if offset or end < length:
        notes += [f"fetched {page.fetched:%Y-%m-%d %H:%M:%S} UTC", f"characters {offset:,} to {end:,} of {length:,}"]
    if end < length:
        notes.append(f"continue with offset {end}")
    return from_web(page.text[offset:end], page.url, notes)
