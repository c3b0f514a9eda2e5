"""What can go wrong with a request. An HTTP status is never an error: it is what the server answered.

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
├── RedirectRefused(RuntimeError)             http.redirects, http.downgrade, http.redirect_body
├── ResponseTooLarge(ValueError)              http.too_large
├── ContentInvalid(ValueError)                http.content
├── SecretReturned(PermissionError)           http.secret
├── HttpSessionNotFound(LookupError)          http.session
└── TransportUnavailable(RuntimeError)        http.transport
AddressDenied(OpDenied)                       http.network
"""

from __future__ import annotations

from sideband.ops import OpDenied, OpFailed


def quoted(text: str) -> str:
    """``text`` as it may stand in a message: on one line, without what can't be seen.

    It is not cut here: the host cuts messages once secrets are out of them, and does not recognise half of one.
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


class HttpError(OpFailed):
    """A request that ended without a response."""

    code = "http.failed"


class UrlInvalid(HttpError, ValueError):
    """A URL that is not strictly http or https, or that servers could read in two ways. Nothing was sent to it."""

    code = "http.url"

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(
            f"`{quoted(url)}` can't be used as a URL: {problem}",
            hint="write https://host/path; put a user's credential in `auth` and a query in `params`",
        )
        self.problem = problem


class AddressRefused(HttpError, ValueError):
    """A host that is, or stands for, an address where no request may go, whatever is granted. Nothing was sent."""

    code = "http.address"
    nothing_happened = True

    def __init__(self, host: str, kind: str) -> None:
        super().__init__(
            f"`{host}` stands for a {kind} address, where no server answers",
            hint="use the address of the server itself; no grant opens these",
        )


class AddressDenied(OpDenied):
    """A name that stands for an address of a class that is not granted. Nothing was sent, nobody was connected to."""

    code = "http.network"
    nothing_happened = True

    def __init__(self, op: str, host: str, kind: str) -> None:
        super().__init__(
            op,
            f"`{host}` stands for a {kind} address, and the grant does not reach those",
            hint=f"if that is meant, grant `network={kind}` to a capability for this host: "
            f"--grant 'http:host={host},network={kind}'",
        )


class HeaderRefused(HttpError, ValueError):
    """A header or cookie that a skill may not set, or that could not be sent as one. Nothing was sent."""

    code = "http.header"

    def __init__(self, name: str, problem: str, *, hint: str = "leave it out, or give it a value of one line") -> None:
        super().__init__(f"the header `{quoted(name)}` {problem}", hint=hint)


class ConnectFailed(HttpError, ConnectionError):
    """There is no connection to the server. Nothing was sent."""

    code = "http.connect"
    retryable = True
    nothing_happened = True

    def __init__(self, origin: str, reason: str) -> None:
        super().__init__(
            f"no connection to {origin}: {quoted(reason)}", hint="check the host and port, and that the server is up"
        )


class TlsFailed(HttpError, ConnectionError):
    """The server could not prove who it is. Nothing was sent."""

    code = "http.tls"
    nothing_happened = True

    def __init__(self, origin: str, reason: str) -> None:
        super().__init__(
            f"no secure connection to {origin}: {quoted(reason)}",
            hint="trust a private certificate authority with `ca_file` under [plugins.http]",
        )


class ProxyFailed(HttpError, ConnectionError):
    """The configured proxy does not pass the request on. Nothing was sent to the server."""

    code = "http.proxy"
    nothing_happened = True

    def __init__(self, origin: str, reason: str) -> None:
        super().__init__(
            f"no way to {origin} through the proxy: {quoted(reason)}",
            hint="check `proxy`, `proxy_auth` and `no_proxy` under [plugins.http]",
        )


class AuthoritiesInvalid(HttpError, ValueError):
    """The configured certificate authorities can't be read. Nothing was sent."""

    code = "http.ca_file"
    nothing_happened = True

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"the certificate authorities in {quoted(path)} can't be used: {quoted(problem)}",
            hint="`ca_file` under [plugins.http] is a file with certificates in PEM form",
        )


class ClientCertificateInvalid(HttpError, ValueError):
    """The certificate that is configured for an origin can't be used. Nothing was sent."""

    code = "http.client_certificate"
    nothing_happened = True

    def __init__(self, origin: str, problem: str) -> None:
        super().__init__(
            f"the certificate for {origin} can't be used: {quoted(problem)}",
            hint="see [plugins.http.client_certificates]; only its owner may be able to read a key (chmod 600)",
        )


class HttpTimeout(HttpError, TimeoutError):
    """The whole response had not arrived in time. The server may have acted on the request."""

    code = "http.timeout"

    def __init__(self, method: str, origin: str, seconds: float, *, retryable: bool) -> None:
        super().__init__(
            f"{method} {origin} did not end within {seconds:g} s", hint="raise `timeout`", retryable=retryable
        )
        self.seconds = seconds


class ProtocolFailed(HttpError, ConnectionError):
    """The connection broke, or what came was not HTTP. The server may have acted on the request."""

    code = "http.protocol"

    def __init__(self, method: str, origin: str, reason: str, *, retryable: bool) -> None:
        super().__init__(
            f"{method} {origin} broke off: {quoted(reason)}",
            hint="ask again" if retryable else "look whether the server did it before you ask again",
            retryable=retryable,
        )


class RedirectRefused(HttpError, RuntimeError):
    """A redirect that is not followed."""

    code = "http.redirects"

    @classmethod
    def too_many(cls, allowed: int) -> RedirectRefused:
        """The server redirected once more than allowed."""
        return cls(
            f"the server redirected more than {allowed} times",
            hint="raise `max_redirects`, or look at the answers with `follow_redirects` off",
        )

    @classmethod
    def downgrade(cls, origin: str, target: str) -> RedirectRefused:
        """From https to http, where anybody could read along."""
        return cls(
            f"{origin} redirects to {target}, without encryption",
            hint="ask that address yourself if this is meant",
            code="http.downgrade",
        )

    @classmethod
    def body(cls, origin: str, target: str) -> RedirectRefused:
        """The body would have to be sent to somebody else."""
        return cls(
            f"{origin} redirects a request with a body to {target}",
            hint="send it there yourself if this is meant",
            code="http.redirect_body",
        )


class ResponseTooLarge(HttpError, ValueError):
    """The response is larger than asked for, as sent or once decompressed. What had come was dropped."""

    code = "http.too_large"

    def __init__(self, what: str, allowed: int) -> None:
        super().__init__(
            f"{what} has more than {allowed:,} bytes",
            hint="raise `max_bytes`, ask for less, or use http.download for a large body",
        )


class ContentInvalid(HttpError, ValueError):
    """The body is not compressed in the way that the server says."""

    code = "http.content"

    def __init__(self, encoding: str, problem: str) -> None:
        super().__init__(
            f"the body can't be decoded as `{quoted(encoding)}`: {quoted(problem)}",
            hint="the server is at fault, or what stands between; try again, or ask another one",
        )


class SecretReturned(HttpError, PermissionError):
    """A body that was to be kept holds a known secret: whoever reads it in parts would see what no answer shows."""

    code = "http.secret"

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"what {origin} sent holds a secret, and was not kept",
            hint="get it with an op that answers with the body, from which the secret is taken out",
        )


class HttpSessionNotFound(HttpError, LookupError):
    """There is no such session for this caller: closed, ended with its call, or somebody else's."""

    code = "http.session"

    def __init__(self) -> None:
        super().__init__(
            "there is no open session with this id",
            hint="open one with http.session_open in the same call; it ends with the call",
        )


class TransportUnavailable(HttpError, RuntimeError):
    """The configuration names a transport that can't be had here. No request can be sent."""

    code = "http.transport"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"the transport `{name}` can't be had: {problem}",
            hint='install sideband-http[fast] and use asyncio, or set transport = "auto" under [plugins.http]',
        )
