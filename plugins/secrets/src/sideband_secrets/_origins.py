"""Origins that a secret may be sent to, in normalized form, so that they can be compared as text."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

# `op://crypto.sign` is not a network location but an op of this host, which has no port
_DEFAULT_PORTS = {"http": 80, "https": 443, "op": None, "ws": 80, "wss": 443}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*\Z")
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\Z")


def normal_origin(text: str) -> str:
    """Normalize an origin: scheme, host and port, without a default port.

    Args:
        text: ``https://api.github.com``, ``http://127.0.0.1:8080``, ``postgres://db.internal:5432``; an op that uses
            the value within the host is ``op://crypto.sign``.

    Raises:
        ValueError: if it is not a valid origin; the message states why.

    Example:
        >>> normal_origin("HTTPS://API.GitHub.com:443/")
        'https://api.github.com'
    """
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError("origin must be printable ASCII; write an international host name in punycode (`xn--…`)")
    parts = urlsplit(text)
    if not _SCHEME.match(parts.scheme) or not parts.netloc:
        raise ValueError("expected `scheme://host` or `scheme://host:port`")
    if "@" in parts.netloc:
        raise ValueError("origin must not contain a user name")
    if parts.path not in {"", "/"} or "?" in text or "#" in text:
        raise ValueError("origin must not contain a path, query or fragment")
    port = parts.port
    if port is None and parts.scheme not in _DEFAULT_PORTS:
        raise ValueError(f"port is required for the scheme `{parts.scheme}`")
    if port == 0:
        raise ValueError("port must not be 0")
    host = _normal_host(parts.hostname or "")
    suffix = "" if port in {None, _DEFAULT_PORTS.get(parts.scheme)} else f":{port}"
    return f"{parts.scheme}://{host}{suffix}"


def _normal_host(host: str) -> str:
    if ":" in host:
        if "%" in host:
            raise ValueError("origin must not contain an IPv6 zone")
        return f"[{ipaddress.IPv6Address(host).compressed}]"
    if not _HOST.match(host):
        raise ValueError("host must be a name or an address; patterns are not supported")
    return host
