"""The op family `http`: requests, sessions and downloads."""

from ._addresses import AddressClass
from ._errors import (
    AddressDenied,
    AddressRefused,
    ConnectFailed,
    ContentInvalid,
    FileFailed,
    FileRefused,
    HeaderRefused,
    HttpError,
    HttpTimeout,
    ProtocolFailed,
    RedirectRefused,
    ResponseTooLarge,
    SessionNotFound,
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
    "ConnectFailed",
    "ContentInvalid",
    "FileFailed",
    "FileRefused",
    "HeaderRefused",
    "HttpError",
    "HttpScope",
    "HttpTimeout",
    "ProtocolFailed",
    "RedirectRefused",
    "ResponseTooLarge",
    "SessionNotFound",
    "TlsFailed",
    "TransportUnavailable",
    "UrlInvalid",
    "__version__",
]
