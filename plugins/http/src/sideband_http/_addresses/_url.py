"""A strict reading of URLs. What is checked against the grant is, byte for byte, what is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, unquote, unquote_to_bytes, urlencode, urljoin

from attrs import evolve, frozen

from .._errors import UrlInvalid

_LONGEST = 16_384
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
# Servers decode once, proxies before them perhaps once more. What is still changing after this is made to deceive.
_MOST_DECODINGS = 4


@frozen
class RequestTarget:
    """Where a request goes, in the one form that is both checked and sent.

    Args:
        scheme: ``http`` or ``https``.
        host: lower-case ASCII; an IPv6 address without brackets.
        port: from 1 to 65535.
        path: begins with ``/``, percent-encoded, without dot segments.
        query: percent-encoded, without ``?``.
    """

    scheme: str
    host: str
    port: int
    path: str = "/"
    query: str = ""

    @property
    def origin(self) -> str:
        """Scheme, host and port, the port left out if it is the scheme's own: ``https://api.github.com``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def request_path(self) -> str:
        """Path and query, as they stand in a request."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def url(self) -> str:
        """The whole URL."""
        return self.origin + self.request_path

    @property
    def readable_path(self) -> str:
        """The path with its percent-encoding undone, except for what would then mean something else."""
        return _ESCAPES.sub(lambda run: _readable(run.group()), self.path)

    def with_params(self, pairs: Iterable[tuple[str, str]]) -> RequestTarget:
        """The same, with pairs added to its query."""
        added = urlencode(list(pairs))
        return evolve(self, query="&".join(part for part in (self.query, added) if part))

    def join(self, reference: str) -> RequestTarget:
        """Where a relative reference leads from here.

        Raises:
            UrlInvalid: it leads nowhere that a request may go.
        """
        _check_characters(reference)
        if _SCHEME.match(reference):
            # The standard library takes `http:///x` for a path of this host.
            return parse_url(reference)
        try:
            joined = urljoin(self.url, reference)
        except ValueError as error:
            raise UrlInvalid(reference, str(error)) from None
        return parse_url(joined)


def parse_url(text: str) -> RequestTarget:
    """Read an absolute URL and bring it into its one normal form.

    Raises:
        UrlInvalid: it is not http or https, holds a user name, control characters, white space or backslashes, has no
            proper host or port, or its path hides dot segments from a reader who decodes less than the server.

    Example:
        >>> parse_url("HTTPS://API.GitHub.com:443/a/../repos?q=1#top").url
        'https://api.github.com/repos?q=1'
    """
    _check_characters(text)
    match = _URL.match(text)
    if match is None:
        raise UrlInvalid(text, "it is not of the form https://host/path")
    scheme = match["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        raise UrlInvalid(text, f"its scheme is `{scheme}`, not http or https")
    if "@" in match["authority"]:
        # The text is not repeated: what stands there is often a password.
        raise UrlInvalid(f"{scheme}://…", "it holds a user name or password")
    authority = _AUTHORITY.match(match["authority"])
    if authority is None:
        raise UrlInvalid(text, "its host or port is malformed")
    port = int(authority["port"]) if authority["port"] else _DEFAULT_PORTS[scheme]
    if not 0 < port < 65_536:
        raise UrlInvalid(text, f"there is no port {port}")
    return RequestTarget(
        scheme=scheme,
        host=_normal_host(authority["host"], text),
        port=port,
        path=_normal_path(match["path"], text),
        query=quote(_STRAY_PERCENT.sub("%25", match["query"] or ""), safe=_QUERY_SAFE),
    )


def _check_characters(text: str) -> None:
    if len(text) > _LONGEST:
        raise UrlInvalid(text, f"it is longer than {_LONGEST:,} characters")
    if _FORBIDDEN.search(text):
        raise UrlInvalid(text, "it holds white space, a control character, a backslash or half a character")


def _normal_host(host: str, url: str) -> str:
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1]))
        except AddressValueError:
            raise UrlInvalid(url, f"`{host}` is no IPv6 address") from None
    name = _ascii_host(host, url).lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.match(label) for label in labels):
        raise UrlInvalid(url, f"`{host}` is no host name")
    if _NUMBER.match(labels[-1]):
        # The system's resolver reads `127.1` and `2130706433` as addresses too, which no grant would recognise.
        try:
            return str(IPv4Address(name))
        except AddressValueError:
            raise UrlInvalid(url, f"`{host}` is no IPv4 address of four decimal numbers") from None
    return name


def _ascii_host(host: str, url: str) -> str:
    if host.isascii():
        return host
    import idna  # noqa: PLC0415  only international names need it

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as error:
        raise UrlInvalid(url, f"its host is no international name: {error}") from None


def _normal_path(path: str, url: str) -> str:
    if _STRAY_PERCENT.search(path):
        raise UrlInvalid(url, "its path has a `%` that encodes nothing; write `%25`")
    encoded = _ESCAPE.sub(_normal_escape, quote(path, safe=_PATH_SAFE))
    if _CONTROL_ESCAPE.search(encoded):
        raise UrlInvalid(url, "its path encodes a control character")
    try:
        unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        raise UrlInvalid(url, "its path is not percent-encoded UTF-8") from None
    plain = _without_dot_segments(encoded)
    if _hides_dot_segments(plain):
        raise UrlInvalid(url, "its path hides `.` or `..` from whoever decodes it only once")
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
    for _ in range(_MOST_DECODINGS):
        # Some servers cut parameters off a segment before they resolve it: `..;x` is `..` to them.
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
