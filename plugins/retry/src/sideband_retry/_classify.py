"""Classify a failure by its type, its status and its text, in this order.

1. Is it an unambiguous error of sideband: a timeout, a broken stream, no connection, a missing key?
2. Does the text say that the content is blocked? It may, with any status.
3. Which status is it? If it has several meanings, the text decides.
4. Without a status: the text, then the name of the exception class.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ._classes import CLASSES, PHRASE_ORDER, ErrorKind
from ._failed_call import FailedCall
from ._phrases import NEVER_FITS

# The other meanings that a status may have, in the order in which their phrases are matched.
_MEANINGS: dict[int, tuple[ErrorKind, ...]] = {
    400: (
        ErrorKind.TOOL_USE_FAILED,
        ErrorKind.CONTEXT_OVERFLOW,
        ErrorKind.BILLING,
        ErrorKind.AUTH_PERMANENT,
        ErrorKind.MODEL_NOT_FOUND,
        ErrorKind.RATE_LIMIT,
        ErrorKind.AUTH,
    ),
    401: (ErrorKind.BILLING, ErrorKind.AUTH_PERMANENT),
    403: (ErrorKind.BILLING, ErrorKind.MODEL_NOT_FOUND, ErrorKind.RATE_LIMIT, ErrorKind.AUTH_PERMANENT),
    404: (ErrorKind.MODEL_NOT_FOUND,),
    429: (ErrorKind.BILLING,),
    500: (
        ErrorKind.CONTEXT_OVERFLOW,
        ErrorKind.FORMAT_ERROR,
        ErrorKind.BILLING,
        ErrorKind.AUTH_PERMANENT,
        ErrorKind.MODEL_NOT_FOUND,
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
    ),
    503: (ErrorKind.BILLING, ErrorKind.MODEL_NOT_FOUND),
}
_MEANINGS[422] = _MEANINGS[400]
_MEANINGS[502] = _MEANINGS[500]

_BY_STATUS = {status: kind for kind, one in CLASSES.items() for status in one.statuses}
_BY_EXCEPTION = {name: kind for kind, one in CLASSES.items() for name in one.exceptions}


@frozen
class Classification:
    """The class of a failure.

    Attributes:
        kind: the class.
        why: the sign that decided it.
    """

    kind: ErrorKind
    why: str


def classify(failure: FailedCall) -> Classification:
    """Classify a failure.

    Example:
        >>> classify(FailedCall.read({"code": "provider.refused", "status": 529})).kind.value
        'overloaded'
        >>> classify(FailedCall.read({"status": 429, "body": "insufficient_quota"}))
        Classification(kind=<ErrorKind.BILLING: 'billing'>, why='`insufficient_quota`, with status 429')
    """
    return (
        _by_code(failure)
        or _by_phrase(failure, (ErrorKind.CONTENT_BLOCKED,))
        or _by_status(failure)
        or _by_phrase(failure, PHRASE_ORDER)
        or _by_exception(failure)
        or _unknown(failure)
    )


def _by_code(failure: FailedCall) -> Classification | None:
    if failure.is_final:
        return Classification(ErrorKind.FORMAT_ERROR, f"`{failure.code}`, not retryable")
    for kind, one in CLASSES.items():
        for code in one.codes:
            if failure.code == code or (code.endswith(".") and failure.code.startswith(code)):
                return Classification(kind, f"`{failure.code}`")
    return None


def _by_status(failure: FailedCall) -> Classification | None:
    status = failure.status
    if status is None or status < 300:
        return None
    if status == 429 and failure.has(NEVER_FITS):
        return Classification(ErrorKind.CONTEXT_OVERFLOW, "more tokens than the limit per minute, with status 429")
    return _by_phrase(failure, _MEANINGS.get(status, ())) or Classification(_of_status(status), f"status {status}")


def _of_status(status: int) -> ErrorKind:
    """Return the class of a status; if it is not listed, a server error or a format error."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return ErrorKind.SERVER_ERROR if status >= 500 else ErrorKind.FORMAT_ERROR


def _by_phrase(failure: FailedCall, kinds: Sequence[ErrorKind]) -> Classification | None:
    for kind in kinds:
        for phrase in CLASSES[kind].phrases:
            if phrase in failure.lowered:
                status = "" if failure.status is None else f", with status {failure.status}"
                return Classification(kind, f"`{phrase}`{status}")
    return None


def _by_exception(failure: FailedCall) -> Classification | None:
    kind = _BY_EXCEPTION.get(failure.cause)
    return Classification(kind, f"`{failure.cause}`") if kind else None


def _unknown(failure: FailedCall) -> Classification:
    if failure.status is not None:  # a status of success without a response of the model
        return Classification(ErrorKind.FORMAT_ERROR, f"status {failure.status}, but not a response of the model")
    return Classification(ErrorKind.UNKNOWN, "neither a status nor a known text")
