"""Cookies set by servers. They stay in the host and are sent only to the host that set them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_MAX_COOKIES = 300
_MAX_PER_RESPONSE = 100
_MAX_COOKIE_BYTES = 4_096
_MAX_JAR_BYTES = 32_768
# Longer attributes are ignored (RFC 6265bis). The standard library fails on numbers with thousands of digits.
_MAX_ATTRIBUTE_BYTES = 1_024
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(r"[ -:<-~]*\Z")


class CookieJar:
    """The cookies of a session, or of the redirects of a request.

    A cookie is sent only to the host that set it, even if its ``Domain`` is ``example.org``: without a public suffix
    list, subdomains that belong to different owners (as in ``github.io``) cannot be recognized.
    """

    def __init__(self) -> None:
        self._cookies: httpx.Cookies | None = None

    def learn(self, response: httpx.Response) -> None:
        """Store the cookies that a response sets. A full jar keeps its existing cookies."""
        if "set-cookie" not in response.headers:
            return
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        if self._cookies is None:
            self._cookies = httpx.Cookies()
            # The default policy would send them to subdomains too.
            strict = DefaultCookiePolicy.DomainStrictNonDomain
            self._cookies.jar.set_policy(DefaultCookiePolicy(strict_ns_domain=strict))
        for line in response.headers.get_list("set-cookie")[:_MAX_PER_RESPONSE]:
            own = _for_host(line, response.request.url.host)
            if own is not None and self._has_room(own, self._cookies):
                self._cookies.extract_cookies(
                    httpx.Response(200, headers={"set-cookie": own}, request=response.request)
                )

    def _has_room(self, line: str, cookies: httpx.Cookies) -> bool:
        name, _, value = line.partition(";")[0].partition("=")
        others = [one for one in cookies.jar if one.name != name.strip()]
        size = sum(len(one.name) + len(one.value or "") for one in others) + len(name) + len(value)
        return len(others) < _MAX_COOKIES and size <= _MAX_JAR_BYTES

    def cookies_for(self, request: httpx.Request) -> dict[str, str]:
        """Return the cookies for a request, selected by domain, path, age and ``Secure``."""
        if self._cookies is None:
            return {}
        import httpx  # noqa: PLC0415  slow to import; only requests need it

        blank = httpx.Request(request.method, request.url)
        self._cookies.set_cookie_header(blank)
        return parse_cookie_header(blank.headers.get("cookie", ""))


def cookie_header(cookies: Mapping[str, str]) -> str:
    """Return the value of a ``Cookie`` header."""
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def parse_cookie_header(value: str) -> dict[str, str]:
    """Parse a ``Cookie`` header that was built here or by a cookie jar."""
    pairs = (part.partition("=") for part in value.split("; ") if part)
    return {name: content for name, _, content in pairs}


def _for_host(line: str, host: str) -> str | None:
    """Restrict a ``Set-Cookie`` line to the host that sent it.

    Return ``None`` if the host may not set the cookie, or the cookie could not be sent back.
    """
    pair, *attributes = line.split(";")
    name, _, value = pair.partition("=")
    if not _NAME.match(name.strip()) or not _VALUE.match(value.strip()) or len(pair) > _MAX_COOKIE_BYTES:
        return None
    kept = [pair]
    for attribute in attributes:
        if len(attribute) > _MAX_ATTRIBUTE_BYTES:
            continue
        key, _, domain = attribute.partition("=")
        if key.strip().lower() != "domain":
            kept.append(attribute)
        elif not _is_within(host, domain.strip().lower().removeprefix(".")):
            return None
    return ";".join(kept)


def _is_within(host: str, domain: str) -> bool:
    return domain in {"", host} or host.endswith(f".{domain}")
