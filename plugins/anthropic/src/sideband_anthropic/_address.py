"""Addresses of services, in the one form that is both checked and used."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from attrs import frozen

__all__ = ["OFFICIAL", "Address"]

OFFICIAL = "https://api.anthropic.com"

_PORTS = {"http": 80, "https": 443}
_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")
_PATH = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._~%-")


@frozen
class Address:
    """Where a service is.

    Attributes:
        origin: scheme, host and port, the port left out if it is the scheme's own.
        host: in lower case, without brackets.
        path: below which ``/v1/messages`` is, without a slash at its end.
    """

    origin: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address such as ``https://api.anthropic.com``. A ``/v1`` at its end is taken as said twice.

        Raises:
            ValueError: it is none; the message says what is wrong.
        """
        parts = urlsplit(text.strip())
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("an address has the form https://host/path")
        if "@" in parts.netloc or "?" in text or "#" in text:
            raise ValueError("an address holds no user name, query or fragment")
        if not _PATH.issuperset(parts.path):
            raise ValueError("its path holds a character that would have to be percent-encoded")
        host = _checked_host(parts.hostname)
        port = parts.port
        shown = f"[{host}]" if ":" in host else host
        suffix = "" if port in {None, _PORTS[parts.scheme]} else f":{port}"
        path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
        return cls(f"{parts.scheme}://{shown}{suffix}", host, path)

    def url(self, path: str) -> str:
        """The address of something below it: ``/v1/messages``."""
        return f"{self.origin}{self.path}{path}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def _checked_host(host: str) -> str:
    if ":" in host:
        return ipaddress.IPv6Address(host).compressed
    if not _HOST.issuperset(host):
        raise ValueError("its host is no plain name; write an international one in punycode (`xn--…`)")
    return host
