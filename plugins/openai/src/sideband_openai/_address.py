"""Addresses of services, in the one form that is both checked and used."""

from __future__ import annotations

import re

from attrs import frozen

__all__ = ["OFFICIAL", "Address"]

OFFICIAL = "https://api.openai.com/v1"

# Strict enough that no two readers can see different hosts in it.
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])"
    r"(:(?P<port>[0-9]{1,5}))?(?P<path>(/[A-Za-z0-9._~%-]+)*)/?"
)
_PORTS = {"http": "80", "https": "443"}


@frozen
class Address:
    """Where a service is.

    Attributes:
        origin: scheme, host and port, the port left out if it is the scheme's own.
        host: in lower case; an IPv6 address in brackets.
        path: below which the service answers, without a slash at its end.
    """

    origin: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address such as ``https://openrouter.ai/api/v1``.

        Raises:
            ValueError: it is none; the message says what is missing.
        """
        scheme, separator, rest = text.strip().partition("://")
        authority, slash, path = rest.partition("/")
        found = _ADDRESS.fullmatch(f"{scheme.lower()}{separator}{authority.lower()}{slash}{path}")
        if found is None:
            raise ValueError("an address has the form https://host/path, without user name, query or blanks")
        port = found["port"] or _PORTS[found["scheme"]]
        suffix = "" if port == _PORTS[found["scheme"]] else f":{port}"
        return cls(f"{found['scheme']}://{found['host']}{suffix}", found["host"], found["path"])

    @property
    def url(self) -> str:
        """The whole address."""
        return self.origin + self.path

    @property
    def is_official(self) -> bool:
        """Whether it is OpenAI's own service."""
        return self.origin == "https://api.openai.com"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        name = self.host
        numbers = re.fullmatch(r"127\.\d{1,3}\.\d{1,3}\.\d{1,3}", name)
        return name in {"localhost", "[::1]"} or name.endswith(".localhost") or numbers is not None
