"""Strict URL parsing. The URL that is checked against the grant is, byte for byte, the one that is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, unquote, unquote_to_bytes, urlencode, urljoin

from attrs import evolve, frozen

from .._errors import UrlInvalid

_MAX_LENGTH = 16_384
_DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(
    r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?"
)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::(?P<port>[0-9]{1,5}))?\Z")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_ESCAPES = re.compile(r"(?:%[0-9A-F]{2})+")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL_ESCAPE = re.compile(r"%(?:[01][0-9A-F]|7F)")
_FORBIDDEN = re.compile(r"[\s\x00-\x20\x7f-\x9f\\\ud800-\udfff]")
_SEPARATOR = re.compile(r"[/\\]")

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RESERVED = frozenset(":/?#[]@!$&'()*+,;=%\\")
_PATH_SAFE = "/%:@!$&'()*+,;=~"
_QUERY_SAFE = _PATH_SAFE + "?"
# Servers decode once, and proxies before them perhaps once more. A path that still changes after this is an attack.
_MAX_DECODINGS = 4


@frozen
class RequestTarget:
    """The target of a request, in the normalized form that is both checked and sent.

    Args:
        scheme: ``http`` or ``https``.
        host: the host in lower-case ASCII; an IPv6 address has no brackets.
        port: the port, from 1 to 65535.
        path: the path, percent-encoded, with a leading ``/`` and without dot segments.
        query: the query, percent-encoded, without ``?``.
    """

    scheme: str
    host: str
    port: int
    path: str = "/"
    query: str = ""

    @property
    def origin(self) -> str:
        """The scheme, host and port, such as ``https://api.github.com``. The scheme's default port is omitted."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def request_path(self) -> str:
        """The path and query, as sent in the request line."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def url(self) -> str:
        """The full URL."""
        return self.origin + self.request_path

    @property
    def readable_path(self) -> str:
        """The path with percent-encoding decoded, except for characters with a special meaning."""
        return _ESCAPES.sub(lambda run: _readable(run.group()), self.path)

    def with_params(self, pairs: Iterable[tuple[str, str]]) -> RequestTarget:
        """Return the target with pairs added to its query."""
        added = urlencode(list(pairs))
        return evolve(self, query="&".join(part for part in (self.query, added) if part))

    def join(self, reference: str) -> RequestTarget:
        """Resolve a reference relative to this target.

        Raises:
            UrlInvalid: if the result is not a valid URL.
        """
        _check_characters(reference)
        if _SCHEME.match(reference):
            # The standard library would resolve `http:///x` to a path on this host.
            return parse_url(reference)
        try:
            joined = urljoin(self.url, reference)
        except ValueError as error:
            raise UrlInvalid(reference, str(error)) from None
        return parse_url(joined)


def parse_url(text: str) -> RequestTarget:
    """Parse and normalize an absolute URL.

    Raises:
        UrlInvalid: if the scheme is not http or https; if the URL contains a user name, control characters, whitespace
            or backslashes; if the host or port is invalid; or if the path hides dot segments behind percent-encoding.

    Example:
        >>> parse_url("HTTPS://API.GitHub.com:443/a/../repos?q=1#top").url
        'https://api.github.com/repos?q=1'
    """
    _check_characters(text)
    match = _URL.match(text)
    if match is None:
        raise UrlInvalid(text, "expected the form https://host/path")
    scheme = match["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        raise UrlInvalid(text, f"unsupported scheme `{scheme}`; expected http or https")
    if "@" in match["authority"]:
        # Not repeated in the message, because it often contains a password.
        raise UrlInvalid(f"{scheme}://…", "must not contain a user name or password")
    authority = _AUTHORITY.match(match["authority"])
    if authority is None:
        raise UrlInvalid(text, "invalid host or port")
    port = int(authority["port"]) if authority["port"] else _DEFAULT_PORTS[scheme]
    if not 0 < port < 65_536:
        raise UrlInvalid(text, f"port must be between 1 and 65535, got {port}")
    return RequestTarget(
        scheme=scheme,
        host=_normal_host(authority["host"], text),
        port=port,
        path=_normal_path(match["path"], text),
        query=quote(_STRAY_PERCENT.sub("%25", match["query"] or ""), safe=_QUERY_SAFE),
    )


def _check_characters(text: str) -> None:
    if len(text) > _MAX_LENGTH:
        raise UrlInvalid(text, f"exceeds {_MAX_LENGTH:,} characters")
    if _FORBIDDEN.search(text):
        raise UrlInvalid(text, "contains whitespace, a control character, a backslash or an unpaired surrogate")


def _normal_host(host: str, url: str) -> str:
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1]))
        except AddressValueError:
            raise UrlInvalid(url, f"invalid IPv6 address `{host}`") from None
    name = _ascii_host(host, url).lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.match(label) for label in labels):
        raise UrlInvalid(url, f"invalid host name `{host}`")
    if _NUMBER.match(labels[-1]):
        # The system's resolver also accepts `127.1` and `2130706433` as addresses, which no grant would recognize.
        try:
            return str(IPv4Address(name))
        except AddressValueError:
            raise UrlInvalid(url, f"invalid IPv4 address `{host}`; expected four decimal numbers") from None
    return name


def _ascii_host(host: str, url: str) -> str:
    if host.isascii():
        return host
    import idna  # noqa: PLC0415  only international names need it

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as error:
        raise UrlInvalid(url, f"invalid internationalised host name: {error}") from None


def _normal_path(path: str, url: str) -> str:
    if _STRAY_PERCENT.search(path):
        raise UrlInvalid(url, "the path contains a stray `%`; write `%25`")
    encoded = _ESCAPE.sub(_normal_escape, quote(path, safe=_PATH_SAFE))
    if _CONTROL_ESCAPE.search(encoded):
        raise UrlInvalid(url, "the path contains an encoded control character")
    try:
        unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        raise UrlInvalid(url, "the path is not valid percent-encoded UTF-8") from None
    plain = _without_dot_segments(encoded)
    if _hides_dot_segments(plain):
        raise UrlInvalid(url, "the path hides `.` or `..` behind repeated percent-encoding")
    return plain


def _normal_escape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()


def _without_dot_segments(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _hides_dot_segments(path: str) -> bool:
    for _ in range(_MAX_DECODINGS):
        # Some servers strip the parameters of a segment before resolving it, so that `..;x` becomes `..`.
        if any(segment.partition(";")[0] in {".", ".."} for segment in _SEPARATOR.split(path)):
            return True
        decoded = unquote(path)
        if decoded == path:
            return False
        path = decoded
    return True


def _readable(escapes: str) -> str:
    text = unquote_to_bytes(escapes).decode()
    return "".join(quote(character, safe="") if character in _RESERVED else character for character in text)
