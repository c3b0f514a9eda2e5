"""Errors of requests. An HTTP status is never an error but part of the response.

HttpError(OpFailed)                           http.failed
├── UrlInvalid(ValueError)                    http.url
├── AddressRefused(ValueError)                http.address
├── HeaderRefused(ValueError)                 http.header
├── ConnectFailed(ConnectionError)            http.connect
├── TlsFailed(ConnectionError)                http.tls
├── ProxyFailed(ConnectionError)              http.proxy
├── AuthoritiesInvalid(ValueError)            http.ca_file
├── ClientCertificateInvalid(ValueError)      http.client_certificate
├── HttpTimeout(TimeoutError)                 http.timeout
├── ProtocolFailed(ConnectionError)           http.protocol
├── RedirectRefused(RuntimeError)             http.redirects
│   ├── RedirectUnencrypted                       http.downgrade
│   └── RedirectWithBody                          http.redirect_body
├── ResponseTooLarge(ValueError)              http.too_large
├── ContentInvalid(ValueError)                http.content
├── SecretReturned(PermissionError)           http.secret
├── HttpSessionNotFound(LookupError)          http.session
└── TransportUnavailable(RuntimeError)        http.transport
AddressDenied(OpDenied)                       http.network
"""

from __future__ import annotations

from collections.abc import Sequence

from sideband.ops import OpDenied, OpFailed


def quoted(text: str) -> str:
    """Return ``text`` on one line, with non-printable characters escaped.

    It is not truncated here: the host truncates messages after redaction, which cannot recognize half of a secret.
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


class HttpError(OpFailed):
    """A request failed without a response."""

    code = "http.failed"


class UrlInvalid(HttpError, ValueError):
    """A URL is not http or https, is malformed, or is ambiguous. No request was sent to it."""

    code = "http.url"

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(
            f"invalid URL `{quoted(url)}`: {problem}",
            hint="use the form https://host/path; pass credentials in `auth` and query values in `params`",
        )
        self.problem = problem


class AddressRefused(HttpError, ValueError):
    """A host is, or resolves to, an address that no grant allows. No request was sent."""

    code = "http.address"
    nothing_happened = True

    def __init__(self, host: str, kind: str) -> None:
        super().__init__(
            f"`{host}` resolves to a {kind} address, which is never allowed",
            hint="check the DNS records of the host; multicast and reserved addresses cannot be granted",
        )


class AddressDenied(OpDenied):
    """A name resolves to an address of a class that is not granted. No connection was made.

    Args:
        op: the name of the op.
        host: the name.
        kinds: the classes of its addresses.
        granting: how to grant them.
    """

    code = "http.network"
    nothing_happened = True

    def __init__(self, op: str, host: str, kinds: Sequence[str], granting: str) -> None:
        addresses = " and ".join(f"a {kind} address" for kind in kinds)
        super().__init__(
            op,
            f"`{host}` resolves to {addresses}, which the grant does not cover",
            hint=f"if this is intended, {granting}",
        )


class HeaderRefused(HttpError, ValueError):
    """A header or cookie is malformed, or a skill may not set it. No request was sent."""

    code = "http.header"

    def __init__(self, name: str, problem: str, *, hint: str = "remove it, or use a value on one line") -> None:
        super().__init__(f"header `{quoted(name)}` {problem}", hint=hint)


class ConnectFailed(HttpError, ConnectionError):
    """The connection to the server failed. No request was sent."""

    code = "http.connect"
    retryable = True
    nothing_happened = True

    def __init__(self, origin: str, reason: str) -> None:
        super().__init__(
            f"cannot connect to {origin}: {quoted(reason)}",
            hint="check the host and port, and that the server is running",
        )


class TlsFailed(HttpError, ConnectionError):
    """The TLS handshake failed. No request was sent."""

    code = "http.tls"
    nothing_happened = True

    def __init__(self, origin: str, reason: str) -> None:
        super().__init__(
            f"cannot establish a secure connection to {origin}: {quoted(reason)}",
            hint="to trust a private certificate authority, set `ca_file` in [plugins.http]",
        )


class ProxyFailed(HttpError, ConnectionError):
    """The configured proxy refused or failed to open a tunnel. No request was sent to the server."""

    code = "http.proxy"
    nothing_happened = True

    def __init__(self, origin: str, reason: str) -> None:
        super().__init__(
            f"cannot reach {origin} through the proxy: {quoted(reason)}",
            hint="check `proxy`, `proxy_auth` and `no_proxy` in [plugins.http]",
        )


class AuthoritiesInvalid(HttpError, ValueError):
    """The configured certificate authorities cannot be loaded. No request was sent."""

    code = "http.ca_file"
    nothing_happened = True

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"cannot load certificate authorities from {quoted(path)}: {quoted(problem)}",
            hint="set `ca_file` in [plugins.http] to a PEM file with certificates",
        )


class ClientCertificateInvalid(HttpError, ValueError):
    """The client certificate configured for an origin cannot be loaded. No request was sent."""

    code = "http.client_certificate"
    nothing_happened = True

    def __init__(self, origin: str, problem: str) -> None:
        super().__init__(
            f"cannot load the client certificate for {origin}: {quoted(problem)}",
            hint="check [plugins.http.client_certificates]; a key must be readable by its owner only (chmod 600)",
        )


class HttpTimeout(HttpError, TimeoutError):
    """The request timed out. The server may have processed it."""

    code = "http.timeout"

    def __init__(self, method: str, origin: str, seconds: float, *, retryable: bool) -> None:
        super().__init__(
            f"{method} {origin} timed out after {seconds:g} s", hint="increase `timeout`", retryable=retryable
        )
        self.seconds = seconds


class ProtocolFailed(HttpError, ConnectionError):
    """The connection was lost, or the response was not valid HTTP. The server may have processed the request."""

    code = "http.protocol"

    def __init__(self, method: str, origin: str, reason: str, *, retryable: bool) -> None:
        super().__init__(
            f"{method} {origin} failed: {quoted(reason)}",
            hint="try again" if retryable else "before you try again, check whether the request took effect",
            retryable=retryable,
        )


class RedirectRefused(HttpError, RuntimeError):
    """A redirect was not followed, because there were too many."""

    code = "http.redirects"

    @classmethod
    def too_many(cls, allowed: int) -> RedirectRefused:
        """Return the error for too many redirects."""
        return cls(
            f"more than {allowed} redirects",
            hint="increase `max_redirects`, or set `follow_redirects` to false to inspect the responses",
        )


class RedirectUnencrypted(RedirectRefused):
    """A redirect from https to unencrypted http was not followed."""

    code = "http.downgrade"

    def __init__(self, origin: str, target: str) -> None:
        super().__init__(
            f"{origin} redirects to {target}, which is not encrypted",
            hint="if this is intended, request that URL directly",
        )


class RedirectWithBody(RedirectRefused):
    """A redirect that would send the body to another origin was not followed."""

    code = "http.redirect_body"

    def __init__(self, origin: str, target: str) -> None:
        super().__init__(
            f"{origin} redirects a request with a body to {target}",
            hint="if this is intended, send the request there directly",
        )


class ResponseTooLarge(HttpError, ValueError):
    """The response exceeds the limit, before or after decompression. It was discarded."""

    code = "http.too_large"

    def __init__(self, what: str, allowed: int) -> None:
        super().__init__(
            f"{what} exceeds {allowed:,} bytes",
            hint="increase `max_bytes`, request less, or use http.download for a large body",
        )


class ContentInvalid(HttpError, ValueError):
    """The body does not match its ``Content-Encoding``."""

    code = "http.content"

    def __init__(self, encoding: str, problem: str) -> None:
        super().__init__(
            f"cannot decode the body as `{quoted(encoding)}`: {quoted(problem)}",
            hint="the server or a proxy sent invalid data; try again, or use another server",
        )


class SecretReturned(HttpError, PermissionError):
    """A body to be saved contains a known secret, which cannot be redacted when the file or blob is read in parts."""

    code = "http.secret"

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"the body from {origin} contains a secret and was not saved",
            hint="use an op that returns the body, such as http.get, which redacts the secret",
        )


class HttpSessionNotFound(HttpError, LookupError):
    """The session is unknown, closed, ended with its call, or belongs to another caller."""

    code = "http.session"

    def __init__(self) -> None:
        super().__init__(
            "unknown or closed session",
            hint="open a session with http.session_open in the same call; it ends with the call",
        )


class TransportUnavailable(HttpError, RuntimeError):
    """The configured transport is unavailable. No request can be sent."""

    code = "http.transport"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"transport `{name}` is unavailable: {problem}",
            hint='install sideband-http[fast] and use asyncio, or set transport = "auto" in [plugins.http]',
        )


ERRORS = (
    AddressDenied,
    AddressRefused,
    AuthoritiesInvalid,
    ClientCertificateInvalid,
    ConnectFailed,
    ContentInvalid,
    HeaderRefused,
    HttpError,
    HttpSessionNotFound,
    HttpTimeout,
    ProtocolFailed,
    ProxyFailed,
    RedirectRefused,
    RedirectUnencrypted,
    RedirectWithBody,
    ResponseTooLarge,
    SecretReturned,
    TlsFailed,
    TransportUnavailable,
    UrlInvalid,
)
"""The errors that skills can catch by class."""
