"""Origins: the places a secret may be sent to, in one normal form, so that comparing them is comparing text."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

# `op://crypto.sign` is no place in a network but an op of this host, which has no port
_DEFAULT_PORTS = {"http": 80, "https": 443, "op": None, "ws": 80, "wss": 443}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*\Z")
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\Z")


def normal_origin(text: str) -> str:
    """Scheme, host and port; a port that the scheme implies is left out.

    Args:
        text: ``https://api.github.com``, ``http://127.0.0.1:8080``, ``postgres://db.internal:5432``; an op that uses
            the value in the host itself is ``op://crypto.sign``.

    Raises:
        ValueError: it is no origin; the message says why.

    Example:
        >>> normal_origin("HTTPS://API.GitHub.com:443/")
        'https://api.github.com'
    """
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError("an origin is printable ASCII; write an international host name in punycode (`xn--…`)")
    parts = urlsplit(text)
    if not _SCHEME.match(parts.scheme) or not parts.netloc:
        raise ValueError("an origin is `scheme://host` or `scheme://host:port`")
    if "@" in parts.netloc:
        raise ValueError("an origin holds no user name")
    if parts.path not in {"", "/"} or "?" in text or "#" in text:
        raise ValueError("an origin ends after the host and port: leave out path, query and fragment")
    port = parts.port
    if port is None and parts.scheme not in _DEFAULT_PORTS:
        raise ValueError(f"the scheme `{parts.scheme}` implies no port: write it")
    if port == 0:
        raise ValueError("port 0 is none")
    host = _normal_host(parts.hostname or "")
    suffix = "" if port in {None, _DEFAULT_PORTS.get(parts.scheme)} else f":{port}"
    return f"{parts.scheme}://{host}{suffix}"


def _normal_host(host: str) -> str:
    if ":" in host:
        if "%" in host:
            raise ValueError("an address with a zone is no origin")
        return f"[{ipaddress.IPv6Address(host).compressed}]"
    if not _HOST.match(host):
        raise ValueError("the host is no plain name or address (patterns are not possible)")
    return host
