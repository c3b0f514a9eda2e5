"""The failure classes as data: the meaning of each, its signs, and the reaction."""

from __future__ import annotations

from enum import Enum, StrEnum

from attrs import frozen

from ._phrases import (
    AUTH,
    AUTH_PERMANENT,
    BILLING,
    CONTENT_BLOCKED,
    CONTEXT_OVERFLOW,
    FORMAT_ERROR,
    MODEL_NOT_FOUND,
    OVERLOADED,
    RATE_LIMIT,
    SERVER_ERROR,
    TIMEOUT,
    TOOL_USE_FAILED,
)


class ErrorKind(StrEnum):
    """The class of a failure."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    STREAM_BROKEN = "stream_broken"
    UNREACHABLE = "unreachable"
    CONTEXT_OVERFLOW = "context_overflow"
    AUTH = "auth"
    AUTH_PERMANENT = "auth_permanent"
    BILLING = "billing"
    MODEL_NOT_FOUND = "model_not_found"
    CONTENT_BLOCKED = "content_blocked"
    TOOL_USE_FAILED = "tool_use_failed"
    FORMAT_ERROR = "format_error"
    UNCONFIGURED = "unconfigured"
    UNKNOWN = "unknown"


class Follows(Enum):
    """The reaction to a failure of a class."""

    RETRY = "retried"
    ONCE = "retried once"
    COMPACT = "the conversation is compacted, once"
    GIVE_UP = "given up"


@frozen
class ErrorClass:
    """A failure class.

    Attributes:
        meaning: one sentence.
        follows: the reaction.
        statuses: the HTTP statuses of this class, unless the text of the response indicates another one.
        phrases: lower-case texts that indicate it in a response.
        codes: codes of sideband's own errors of this class; one that ends with a dot is a prefix.
        exceptions: names of exception classes of this class.
    """

    meaning: str
    follows: Follows
    statuses: tuple[int, ...] = ()
    phrases: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()


CLASSES: dict[ErrorKind, ErrorClass] = {
    ErrorKind.RATE_LIMIT: ErrorClass(
        "The calls or tokens exceed the provider's rate limit.",
        Follows.RETRY,
        statuses=(429,),
        phrases=RATE_LIMIT,
        exceptions=("RateLimitError", "ThrottlingException"),
    ),
    ErrorKind.OVERLOADED: ErrorClass(
        "The provider is overloaded, or is still loading the model.",
        Follows.RETRY,
        statuses=(503, 529),
        phrases=OVERLOADED,
    ),
    ErrorKind.SERVER_ERROR: ErrorClass(
        "The provider failed.",
        Follows.RETRY,
        statuses=(409, 425, 499, 500, 502, 520, 521, 523, 530),
        phrases=SERVER_ERROR,
        exceptions=("InternalServerError",),
    ),
    ErrorKind.TIMEOUT: ErrorClass(
        "The provider did not respond in time.",
        Follows.RETRY,
        statuses=(408, 504, 522, 524, 598, 599),
        phrases=TIMEOUT,
        codes=("provider.timeout", "op.timeout"),
        exceptions=(
            "APITimeoutError",
            "ConnectTimeout",
            "PoolTimeout",
            "ReadTimeout",
            "TimeoutError",
            "TimeoutException",
            "TooSlowError",
            "WriteTimeout",
        ),
    ),
    ErrorKind.STREAM_BROKEN: ErrorClass(
        "The connection was lost during a response.",
        Follows.RETRY,
        codes=("provider.stream",),
        exceptions=(
            "BrokenPipeError",
            "BrokenResourceError",
            "CloseError",
            "ClosedResourceError",
            "ConnectionAbortedError",
            "ConnectionResetError",
            "DecodingError",
            "EndOfStream",
            "IncompleteRead",
            "JSONDecodeError",
            "LocalProtocolError",
            "ReadError",
            "RemoteProtocolError",
            "WriteError",
        ),
    ),
    ErrorKind.UNREACHABLE: ErrorClass(
        "The provider cannot be reached. If no server listens at the address, the retries are few and quick.",
        Follows.RETRY,
        codes=("provider.unreachable",),
        exceptions=(
            "APIConnectionError",
            "ConnectError",
            "ConnectionError",
            "ConnectionRefusedError",
            "NetworkError",
            "ProxyError",
            "SSLCertVerificationError",
            "SSLError",
            "gaierror",
        ),
    ),
    ErrorKind.CONTEXT_OVERFLOW: ErrorClass(
        "The conversation exceeds the context window of the model, or the provider's limit of tokens per minute.",
        Follows.COMPACT,
        statuses=(413,),
        phrases=CONTEXT_OVERFLOW,
    ),
    ErrorKind.AUTH: ErrorClass(
        "The key is missing or lacks a permission.",
        Follows.GIVE_UP,
        statuses=(401, 403, 407),
        phrases=AUTH,
        exceptions=("AuthenticationError", "PermissionDeniedError"),
    ),
    ErrorKind.AUTH_PERMANENT: ErrorClass(
        "The key is wrong or revoked, or the account is closed.",
        Follows.GIVE_UP,
        phrases=AUTH_PERMANENT,
    ),
    ErrorKind.BILLING: ErrorClass(
        "The account has no credit or quota left, and the response names no time at which it is renewed.",
        Follows.GIVE_UP,
        statuses=(402,),
        phrases=BILLING,
    ),
    ErrorKind.MODEL_NOT_FOUND: ErrorClass(
        "The model does not exist, or is not available to this key or server.",
        Follows.GIVE_UP,
        statuses=(410,),
        phrases=MODEL_NOT_FOUND,
    ),
    ErrorKind.CONTENT_BLOCKED: ErrorClass(
        "The provider blocked the content.",
        Follows.GIVE_UP,
        statuses=(451,),
        phrases=CONTENT_BLOCKED,
    ),
    ErrorKind.TOOL_USE_FAILED: ErrorClass(
        "The model wrote an invalid tool call, which the provider rejects.",
        Follows.ONCE,
        phrases=TOOL_USE_FAILED,
    ),
    ErrorKind.FORMAT_ERROR: ErrorClass(
        "The server does not understand the request, its response cannot be read, or the address is wrong.",
        Follows.GIVE_UP,
        codes=("provider.input",),
        statuses=(301, 302, 303, 307, 308, 400, 404, 405, 406, 415, 422, 501, 505),
        phrases=FORMAT_ERROR,
        exceptions=("InvalidURL", "TooManyRedirects", "UnsupportedProtocol"),
    ),
    ErrorKind.UNCONFIGURED: ErrorClass(
        "A key or an address is not set, or the provider's plugin failed to load.",
        Follows.GIVE_UP,
        codes=("provider.unconfigured", "llm.", "plugin.", "config."),
    ),
    ErrorKind.UNKNOWN: ErrorClass(
        "The error has neither a status nor a known text.",
        Follows.ONCE,
    ),
}

PHRASE_ORDER = (
    ErrorKind.CONTENT_BLOCKED,
    ErrorKind.TOOL_USE_FAILED,
    ErrorKind.BILLING,
    ErrorKind.RATE_LIMIT,
    ErrorKind.OVERLOADED,
    ErrorKind.CONTEXT_OVERFLOW,
    ErrorKind.MODEL_NOT_FOUND,
    ErrorKind.AUTH_PERMANENT,
    ErrorKind.AUTH,
    ErrorKind.TIMEOUT,
    ErrorKind.FORMAT_ERROR,
    ErrorKind.SERVER_ERROR,
)
"""The order in which phrases are matched without a status: specific ones first."""
