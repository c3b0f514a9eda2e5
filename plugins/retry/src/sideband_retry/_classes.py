"""The classes of failures as data: what each means, what shows it, and what follows."""

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
)


class ErrorKind(StrEnum):
    """What a failure is."""

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
    FORMAT_ERROR = "format_error"
    UNCONFIGURED = "unconfigured"
    UNKNOWN = "unknown"


class Follows(Enum):
    """What follows on a failure of a class."""

    RETRY = "tried again"
    ONCE = "tried again once"
    COMPACT = "the conversation is made shorter, once"
    GIVE_UP = "given up"


@frozen
class ErrorClass:
    """One class.

    Attributes:
        meaning: one sentence.
        follows: what is done.
        statuses: the HTTP statuses that mean it, unless the answer says something else.
        phrases: texts, in lower case, that show it in an answer.
        codes: codes of sideband's own errors that mean it; one that ends with a dot stands for all that begin so.
        exceptions: names of exception classes that mean it.
    """

    meaning: str
    follows: Follows
    statuses: tuple[int, ...] = ()
    phrases: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()


CLASSES: dict[ErrorKind, ErrorClass] = {
    ErrorKind.RATE_LIMIT: ErrorClass(
        "More calls or tokens than the provider allows in a time.",
        Follows.RETRY,
        statuses=(429,),
        phrases=RATE_LIMIT,
        exceptions=("RateLimitError", "ThrottlingException"),
    ),
    ErrorKind.OVERLOADED: ErrorClass(
        "The provider has too much to do, or loads the model.",
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
        "No answer came in time.",
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
        "An answer began and did not come to its end.",
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
        "No connection. Where nobody listens, the tries are few and quick.",
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
        "The conversation is longer than the model, or the limit of tokens in a minute, can ever take.",
        Follows.COMPACT,
        statuses=(413,),
        phrases=CONTEXT_OVERFLOW,
    ),
    ErrorKind.AUTH: ErrorClass(
        "The key is missing, or lacks a right.",
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
        "The account has no money or quota left, and nobody says when it has.",
        Follows.GIVE_UP,
        statuses=(402,),
        phrases=BILLING,
    ),
    ErrorKind.MODEL_NOT_FOUND: ErrorClass(
        "There is no such model, or this key or server can't use it.",
        Follows.GIVE_UP,
        statuses=(410,),
        phrases=MODEL_NOT_FOUND,
    ),
    ErrorKind.CONTENT_BLOCKED: ErrorClass(
        "The provider refuses the content.",
        Follows.GIVE_UP,
        statuses=(451,),
        phrases=CONTENT_BLOCKED,
    ),
    ErrorKind.FORMAT_ERROR: ErrorClass(
        "The server does not understand the request, or has no such address.",
        Follows.GIVE_UP,
        statuses=(301, 302, 303, 307, 308, 400, 404, 405, 406, 415, 422, 501, 505),
        phrases=FORMAT_ERROR,
        exceptions=("InvalidURL", "TooManyRedirects", "UnsupportedProtocol"),
    ),
    ErrorKind.UNCONFIGURED: ErrorClass(
        "A key or an address is not set, or the provider's plugin can't be used.",
        Follows.GIVE_UP,
        codes=("provider.unconfigured", "llm.", "plugin.", "config."),
    ),
    ErrorKind.UNKNOWN: ErrorClass(
        "No status, and nothing that is known in what was said.",
        Follows.ONCE,
    ),
}

PHRASE_ORDER = (
    ErrorKind.CONTENT_BLOCKED,
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
"""The order in which phrases are looked for where there is no status: what is said more specifically comes first."""
