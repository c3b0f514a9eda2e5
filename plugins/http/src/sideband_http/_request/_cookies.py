"""Cookies that servers set. They stay in the host, and go back to where they came from only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_MOST = 300
_MOST_AT_ONCE = 100
_LARGEST = 4_096
_LARGEST_TOGETHER = 32_768
# Longer ones are ignored (RFC 6265bis); the standard library fails at numbers of thousands of digits.
_LONGEST_ATTRIBUTE = 1_024
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"[ -:<-~]*\Z")


class CookieJar:
    """The cookies of one session, or of the redirects of one request.

    A cookie belongs to the host that set it, even if it says that it is for all of ``example.org``: whose names end in
    the same way is not known here, and with some endings (``github.io``) they belong to strangers.
    """

    def __init__(self) -> None:
        self._cookies: httpx.Cookies | None = None

    def learn(self, response: httpx.Response) -> None:
        """Keep what a response sets. A jar that is full keeps what it has."""
        if "set-cookie" not in response.headers:
            return
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        if self._cookies is None:
            self._cookies = httpx.Cookies()
            # Otherwise it would send them to all hosts whose names end in that one's.
            strict = DefaultCookiePolicy.DomainStrictNonDomain
            self._cookies.jar.set_policy(DefaultCookiePolicy(strict_ns_domain=strict))
        for line in response.headers.get_list("set-cookie")[:_MOST_AT_ONCE]:
            own = _for_host(line, response.request.url.host)
            if own is not None and self._has_room(own, self._cookies):
                self._cookies.extract_cookies(
                    httpx.Response(200, headers={"set-cookie": own}, request=response.request)
                )

    def _has_room(self, line: str, cookies: httpx.Cookies) -> bool:
        name, _, value = line.partition(";")[0].partition("=")
        others = [one for one in cookies.jar if one.name != name.strip()]
        size = sum(len(one.name) + len(one.value or "") for one in others) + len(name) + len(value)
        return len(others) < _MOST and size <= _LARGEST_TOGETHER

    def cookies_for(self, request: httpx.Request) -> dict[str, str]:
        """The cookies that belong to a request, by domain, path, age and ``Secure``."""
        if self._cookies is None:
            return {}
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        blank = httpx.Request(request.method, request.url)
        self._cookies.set_cookie_header(blank)
        return parse_cookie_header(blank.headers.get("cookie", ""))


def cookie_header(cookies: Mapping[str, str]) -> str:
    """The value of a ``Cookie`` header."""
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def parse_cookie_header(value: str) -> dict[str, str]:
    """The cookies of a ``Cookie`` header that was built here or by a cookie jar."""
    pairs = (part.partition("=") for part in value.split("; ") if part)
    return {name: content for name, _, content in pairs}


def _for_host(line: str, host: str) -> str | None:
    """What a ``Set-Cookie`` means for the one host that sent it; ``None`` if it can't set that, or not send it back."""
    pair, *attributes = line.split(";")
    name, _, value = pair.partition("=")
    if not _NAME.match(name.strip()) or not _VALUE.match(value.strip()) or len(pair) > _LARGEST:
        return None
    kept = [pair]
    for attribute in attributes:
        if len(attribute) > _LONGEST_ATTRIBUTE:
            continue
        key, _, domain = attribute.partition("=")
        if key.strip().lower() != "domain":
            kept.append(attribute)
        elif not _is_within(host, domain.strip().lower().removeprefix(".")):
            return None
    return ";".join(kept)


def _is_within(host: str, domain: str) -> bool:
    return domain in {"", host} or host.endswith(f".{domain}")
