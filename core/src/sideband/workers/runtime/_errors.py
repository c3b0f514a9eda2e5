"""The errors inside a worker, and their conversion to messages for the host.

    OpError(Exception)          an op was denied or failed: see `_op_errors.py`
    SkillRefusal(Exception)     the function cannot be called, or its result cannot be sent
    NoWorker(RuntimeError)      an op was called outside a worker

Exceptions of skills are untrusted: they may be misleading, huge, or raise when they are printed. The data taken from
them is limited.
"""

from __future__ import annotations

import reprlib
from contextlib import suppress
from types import TracebackType
from typing import Any

from ._context import CALL_FILE
from ._op_errors import OpError
from ._remedies import topic

_MAX_MESSAGE = 4_000
_FIRST_FRAMES = 5
_LAST_FRAMES = 25
_MAX_CHAIN = 5


class SkillRefusal(Exception):
    """The function cannot be called, or its result cannot be sent. The message names the function.

    Args:
        message: what is wrong.
        topic: the topic of the remedy, which the host describes, or an empty string.
    """

    def __init__(self, message: str, *, topic: str = "") -> None:
        super().__init__(_short(message))
        self.topic = topic

    def as_error(self) -> dict[str, Any]:
        """Return the ``__error__`` for the host."""
        found = {"code": "skill.refused", "message": str(self)}
        return {**found, "topic": self.topic} if self.topic else found


class NoWorker(RuntimeError):
    """An op was called in a plain Python process."""

    def __init__(self, op: str) -> None:
        super().__init__(f"`{op}` requires a host: call the skill with `sideband call --skill-dir DIR SKILL.TOOL`")


def failure(error: BaseException, *, code: str = "skill.raised") -> dict[str, Any]:
    """Return the ``__error__`` for an exception of skill code, with limited size, even if printing it fails."""
    try:
        found: dict[str, Any] = {"code": code, "message": describe(error)}
        if about := topic(error):
            found["topic"] = _short(about)
        # A library's errors below this one do not help: the skill must use something else.
        found["traceback"] = _traceback(error, 1 if about else _MAX_CHAIN)
    except BaseException:  # noqa: BLE001  even the type or the frames of an exception can raise
        return {"code": code, "message": "an exception that cannot be described"}
    if isinstance(error, OpError):
        with suppress(BaseException):  # a subclass of the skill may lack an attribute
            found["cause"] = {"code": _short(error.code), "message": _short(error.message), "op": _short(error.op)}
    return found


def describe(error: BaseException) -> str:
    """Return ``TypeName: message``, with at most some thousand characters."""
    kind = _name(type(error))
    text = _text(error)
    return f"{kind}: {text}" if text else kind


def _text(error: BaseException) -> str:
    try:
        default = type(error).__str__ in (BaseException.__str__, KeyError.__str__)
        if default and (len(error.args) != 1 or type(error.args[0]) is not str):
            # The default `__str__` would print all arguments, regardless of their size.
            return _short(", ".join(_limited.repr(argument) for argument in error.args[:10]))
        return _short(str(error))
    except BaseException as problem:  # noqa: BLE001  `__str__` of a skill's exception may raise anything
        return f"(no message: `__str__` raised {_name(type(problem))})"


def _name(kind: type) -> str:
    # Bypass metaclasses that define `__name__`.
    return _short(_NAME.__get__(kind), 200)


def _short(text: object, limit: int = _MAX_MESSAGE) -> str:
    if not isinstance(text, str):
        return f"(a {type(text).__name__})"
    plain = str.__str__(text)
    if len(plain) > limit:
        # Truncate between words: the host would not redact a truncated secret.
        kept = max(plain.rfind(" ", 0, limit), plain.rfind("\n", 0, limit)) + 1
        plain = f"{plain[:kept]}… [{len(plain) - kept:,} characters omitted]"
    return plain.encode("utf-8", "backslashreplace").decode()


def cancelled_at(error: BaseException) -> dict[str, Any]:
    """Return the part of an ``__error__`` that says where a call was cancelled."""
    return {"traceback": _traceback(error, 1)}


def _traceback(error: BaseException, chain: int) -> str:
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(parts) < chain:
        seen.add(id(current))
        parts.append(f"{_frames(current.__traceback__)}{describe(current)}")
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return _short("\n\nduring handling of the above, or caused by it:\n".join(reversed(parts)), 4 * _MAX_MESSAGE)


def _frames(trace: TracebackType | None) -> str:
    found: list[str] = []
    cut = 0
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith((_OWN_FOLDER, CALL_FILE)):
            found.append(f"  {code.co_filename}:{trace.tb_lineno} in {code.co_name}\n")
        if len(found) > 2 * (_FIRST_FRAMES + _LAST_FRAMES):
            del found[_FIRST_FRAMES:-_LAST_FRAMES]
            cut += _FIRST_FRAMES + _LAST_FRAMES + 1
        trace = trace.tb_next
    if cut:
        found.insert(_FIRST_FRAMES, f"  … at least {cut} more calls …\n")
    return "".join(found)


_NAME = type.__dict__["__name__"]
_limited = reprlib.Repr()
_limited.maxstring = _limited.maxother = 500
_OWN_FOLDER = __file__.rpartition("/")[0] + "/"
