"""The op family `http`: requests, sessions and downloads."""

from ._addresses._classes import AddressClass
from ._errors import (
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
from ._scope import HttpScope
from ._version import __version__

__all__ = [
    "AddressClass",
    "AddressDenied",
    "AddressRefused",
    "AuthoritiesInvalid",
    "ClientCertificateInvalid",
    "ConnectFailed",
    "ContentInvalid",
    "HeaderRefused",
    "HttpError",
    "HttpScope",
    "HttpSessionNotFound",
    "HttpTimeout",
    "ProtocolFailed",
    "ProxyFailed",
    "RedirectRefused",
    "RedirectUnencrypted",
    "RedirectWithBody",
    "ResponseTooLarge",
    "SecretReturned",
    "TlsFailed",
    "TransportUnavailable",
    "UrlInvalid",
    "__version__",
]
