"""Service addresses in a normal form, which is both checked and used."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address

from attrs import frozen

_PORTS = {"http": 80, "https": 443}
# Strict enough that no two URL parsers can disagree about the host.
_AUTHORITY = re.compile(
    r"(?P<host>[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?", re.ASCII | re.IGNORECASE
)
_PATH = re.compile(r"(/[A-Za-z0-9._~%-]+)*/?")


@frozen
class ServiceAddress:
    """The normalized address of a service.

    Attributes:
        origin: the scheme, host and port. The scheme's default port is omitted.
        host: the host in lower case. An IPv6 address has no brackets.
        path: the base path of the service, without a trailing slash.

    Example:
        >>> address = ServiceAddress.parse("HTTPS://Models.example.org:443/api/")
        >>> address.origin, address.path, address.url
        ('https://models.example.org', '/api', 'https://models.example.org/api')
    """

    origin: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str) -> ServiceAddress:
        """Parse an address such as ``https://openrouter.ai/api/v1``.

        Raises:
            ValueError: if the text is not a valid service address; the message names the problem.

        Example:
            >>> ServiceAddress.parse("https://me:secret@example.org")
            Traceback (most recent call last):
                ...
            ValueError: must not contain a user name, query or fragment
        """
        scheme, _, rest = text.strip().partition("://")
        scheme = scheme.lower()
        authority, slash, path = rest.partition("/")
        if scheme not in _PORTS or not authority:
            raise ValueError("expected the form https://host/path")
        if any(sign in rest for sign in "@?#"):
            raise ValueError("must not contain a user name, query or fragment")
        if not _PATH.fullmatch(slash + path):
            raise ValueError("the path has an empty segment, or a character that must be percent-encoded")
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            raise ValueError("invalid host; write an internationalised name in punycode (`xn--…`)")
        host, port = _host(found["host"].lower()), _port(found["port"], _PORTS[scheme])
        shown = f"[{host}]" if ":" in host else host
        suffix = "" if port == _PORTS[scheme] else f":{port}"
        return cls(f"{scheme}://{shown}{suffix}", host, (slash + path).rstrip("/"))

    @property
    def url(self) -> str:
        """The full address.

        Example:
            >>> ServiceAddress.parse("http://[0:0::1]:080/v1/").url
            'http://[::1]/v1'
        """
        return self.origin + self.path

    @property
    def is_loopback(self) -> bool:
        """Whether the service runs on this machine.

        Example:
            >>> ServiceAddress.parse("http://127.0.0.1:11434/v1").is_loopback
            True
        """
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def _host(text: str) -> str:
    if not text.startswith("["):
        return text
    try:
        return IPv6Address(text[1:-1]).compressed
    except ValueError:
        raise ValueError("the host is not a valid IPv6 address") from None


def _port(text: str | None, default: int) -> int:
    port = default if text is None else int(text)
    if not 0 < port < 1 << 16:
        raise ValueError("the port must be between 1 and 65535")
    return port
