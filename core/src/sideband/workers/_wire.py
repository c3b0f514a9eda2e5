"""The messages between host and worker: validate each field of the worker's messages, and encode those of the host.

The runtime provides framing and JSON (`runtime/_codec.py`), so that both ends agree. All messages of a worker are
untrusted: any deviation from this format is a ``ProtocolViolation``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from attrs import field, frozen

from ._calls import WorkerCall
from ._errors import ProtocolViolation
from .runtime import PROTOCOL, BadFrame, decode, encode

_MAX_ID = 128
_MAX_OP = 128
_MAX_CAPABILITIES = 1_024
_LARGE = 65_536
_NODE = 16
_DISPATCH = frozenset({"__type__", "__id__", "__dispatch_id__", "__caps__", "__dispatch__"})
_REQUEST = frozenset({"op", "params"})
_DISPATCH_ID = re.compile("d-[0-9]{1,18}")
_TEXTS = frozenset({str})


@frozen
class DispatchMessage:
    """``dispatch``: a call requests an op. The capabilities in the message are ignored."""

    call: str
    id: str
    number: int
    op: str
    params: Mapping[str, Any] = field(repr=False)


@frozen
class ResultMessage:
    """``result``: a call has ended."""

    call: str
    value: Any = field(default=None, repr=False)
    error: Mapping[str, Any] | None = None


@frozen
class CancelMessage:
    """``cancel``: a skill no longer waits for a dispatch."""

    dispatch: str
    number: int


@frozen
class LogMessage:
    """``log``: a line that a call printed. ``call`` is ``None`` for output outside a call."""

    call: str | None
    stream: str
    text: str


@frozen
class ProgressMessage:
    """``progress``: equivalent to a dispatch of ``progress.report``."""

    call: str
    params: Mapping[str, Any]


@frozen
class ReadyMessage:
    """``ready``: the reply to ``hello``."""

    version: int
    python: str
    lockdown: Mapping[str, Any] | None


@frozen
class BegunMessage:
    """``begun`` or ``late``: a call with ``begin_by`` begins now, or was not begun because that time has passed."""

    call: str
    is_late: bool


@frozen
class PongMessage:
    """``pong``: the answer of the worker's event loop to a ``ping``."""

    number: int


Message = (
    DispatchMessage
    | ResultMessage
    | CancelMessage
    | LogMessage
    | ProgressMessage
    | ReadyMessage
    | BegunMessage
    | PongMessage
)


def parse(line: bytes) -> Message:
    """Parse the message in a line.

    Raises:
        ProtocolViolation: if the line is not a valid message of a worker.
    """
    try:
        raw = decode(line)
    except BadFrame as problem:
        raise ProtocolViolation(str(problem)) from None
    kind = raw.get("__type__")
    parser = _PARSERS.get(kind) if type(kind) is str else None
    if parser is None:
        raise ProtocolViolation(f"unknown message type {_brief(kind)}")
    return parser(raw)


def _dispatch(raw: dict[str, Any]) -> DispatchMessage:
    if raw.keys() != _DISPATCH:
        _exact(raw, "dispatch", _DISPATCH)
    request = raw["__dispatch__"]
    if type(request) is not dict or request.keys() != _REQUEST:
        raise ProtocolViolation("`__dispatch__` must be an object with `op` and `params`")
    capabilities = raw["__caps__"]
    if (
        type(capabilities) is not list
        or len(capabilities) > _MAX_CAPABILITIES
        or not _TEXTS.issuperset(map(type, capabilities))
    ):
        raise ProtocolViolation("`__caps__` must be a list of strings")
    params = request["params"]
    if type(params) is not dict:
        raise ProtocolViolation("`params` must be an object")
    identifier, number = _dispatch_id(raw)
    return DispatchMessage(_text(raw, "__id__", _MAX_ID), identifier, number, _text(request, "op", _MAX_OP), params)


def _dispatch_id(raw: Mapping[str, Any]) -> tuple[str, int]:
    identifier = raw["__dispatch_id__"]
    if type(identifier) is not str or not _DISPATCH_ID.fullmatch(identifier):
        raise ProtocolViolation(f"invalid dispatch id {_brief(identifier)}")
    return identifier, int(identifier[2:])


def _result(raw: dict[str, Any]) -> ResultMessage:
    call_id = _text(raw, "__id__", _MAX_ID)
    if "__error__" in raw:
        _exact(raw, "result", {"__type__", "__id__", "__error__"})
        return ResultMessage(call_id, error=_error(raw["__error__"]))
    del raw["__type__"], raw["__id__"]
    for key in raw:
        if key.startswith("__"):
            raise ProtocolViolation(f"a result has the reserved key {_brief(key)}")
    return ResultMessage(call_id, raw["value"] if raw.keys() == {"value"} else raw)


def _error(error: Any) -> Mapping[str, Any]:
    if type(error) is str:
        return {"code": "skill.raised", "message": error}
    if type(error) is not dict or not error.keys() <= {"code", "message", "traceback", "cause", "topic"}:
        raise ProtocolViolation(
            "`__error__` must be an object with `code`, `message`, `traceback`, `cause` and `topic`"
        )
    _text(error, "code", _MAX_OP)
    if "topic" in error:
        _text(error, "topic", _MAX_OP)
    for key in ("message", "traceback"):
        if key in error and type(error[key]) is not str:
            raise ProtocolViolation(f"`{key}` of an error must be a string")
    cause = error.get("cause", {})
    if (
        type(cause) is not dict
        or not cause.keys() <= {"code", "message", "op"}
        or not _TEXTS.issuperset(map(type, cause.values()))
    ):
        raise ProtocolViolation("`cause` of an error must be an object with `code`, `message` and `op`")
    return error


def _cancel(raw: dict[str, Any]) -> CancelMessage:
    _exact(raw, "cancel", {"__type__", "__dispatch_id__"})
    return CancelMessage(*_dispatch_id(raw))


def _log(raw: dict[str, Any]) -> LogMessage:
    _exact(raw, "log", {"__type__", "stream", "text"}, {"__id__"})
    stream = raw["stream"]
    if stream not in ("stdout", "stderr"):
        raise ProtocolViolation(f"unknown stream {_brief(stream)}")
    if type(raw["text"]) is not str:
        raise ProtocolViolation("`text` of a log message must be a string")
    return LogMessage(_text(raw, "__id__", _MAX_ID) if "__id__" in raw else None, stream, raw["text"])


def _progress(raw: dict[str, Any]) -> ProgressMessage:
    _exact(raw, "progress", {"__type__", "__id__"}, {"current", "total", "message"})
    for key in ("current", "total"):
        if key in raw and type(raw[key]) not in (int, float, type(None)):
            raise ProtocolViolation(f"`{key}` of a progress message must be a number")
    if "message" in raw and type(raw["message"]) not in (str, type(None)):
        raise ProtocolViolation("`message` of a progress message must be a string")
    params = {key: raw[key] for key in ("current", "total", "message") if raw.get(key) is not None}
    return ProgressMessage(_text(raw, "__id__", _MAX_ID), params)


def _ready(raw: dict[str, Any]) -> ReadyMessage:
    _exact(raw, "ready", {"__type__", "version", "python"}, {"lockdown"})
    lockdown = raw.get("lockdown")
    if type(raw["version"]) is not int or not (lockdown is None or type(lockdown) is dict):
        raise ProtocolViolation("a `ready` message has fields of the wrong type")
    return ReadyMessage(raw["version"], _text(raw, "python", 64), lockdown)


def _begun(raw: dict[str, Any]) -> BegunMessage:
    _exact(raw, raw["__type__"], {"__type__", "__id__"})
    return BegunMessage(_text(raw, "__id__", _MAX_ID), raw["__type__"] == "late")


def _pong(raw: dict[str, Any]) -> PongMessage:
    _exact(raw, "pong", {"__type__", "number"})
    if type(raw["number"]) is not int:
        raise ProtocolViolation("`number` of a `pong` message must be an integer")
    return PongMessage(raw["number"])


_PARSERS: Mapping[str, Callable[[dict[str, Any]], Message]] = {
    "dispatch": _dispatch,
    "result": _result,
    "cancel": _cancel,
    "log": _log,
    "progress": _progress,
    "ready": _ready,
    "begun": _begun,
    "late": _begun,
    "pong": _pong,
}


def _exact(
    raw: Mapping[str, Any], kind: str, required: AbstractSet[str], optional: AbstractSet[str] = frozenset()
) -> None:
    if raw.keys() == required:
        return
    missing = sorted(required - raw.keys())
    extra = sorted(raw.keys() - required - optional)
    if missing or extra:
        what = f"`{missing[0]}` is missing" if missing else f"unknown field {_brief(extra[0])}"
        raise ProtocolViolation(f"invalid `{kind}` message: {what}")


def _text(raw: Mapping[str, Any], key: str, limit: int) -> str:
    value = raw.get(key)
    if type(value) is not str or not 0 < len(value) <= limit:
        raise ProtocolViolation(f"`{key}` must be a non-empty string of at most {limit} characters")
    return value


def _brief(value: object) -> str:
    if type(value) is not str:
        return f"(a {type(value).__name__})"
    return repr(value if len(value) <= 40 else value[:40] + "…")


def hello() -> bytes:
    """Encode the host's first message."""
    return encode({"__type__": "hello", "version": PROTOCOL})


def ping(number: int) -> bytes:
    """Encode the message that the worker's event loop answers with ``pong``."""
    return encode({"__type__": "ping", "number": number})


def call(spec: WorkerCall, begin_by: float | None) -> bytes:
    """Encode the message that starts a call.

    Args:
        spec: the call.
        begin_by: the time by ``time.monotonic`` after which the worker must not begin it, or ``None``.

    Raises:
        Unsendable: if the arguments cannot be sent.
    """
    request: dict[str, Any] = {
        "module": spec.module,
        "function": spec.function,
        "kwargs": dict(spec.arguments),
        "working_dir": str(spec.launch.snapshot),
        "capabilities": spec.capabilities,
        "env": dict(spec.environment),
    }
    if begin_by is not None:
        request["begin_by"] = begin_by
    return encode({"__type__": "call", "__id__": spec.id, "__call__": request})


def cancel(call_id: str) -> bytes:
    """Encode the message that cancels a call."""
    return encode({"__type__": "cancel", "__id__": call_id})


def dispatch_result(dispatch: str, payload: Any) -> bytes:
    """Encode the answer to a dispatch.

    Raises:
        Unsendable: if the result cannot be sent.
    """
    return encode({"__type__": "dispatch_result", "__dispatch_id__": dispatch, "payload": payload})


def dispatch_error(dispatch: str, error: Mapping[str, Any]) -> bytes:
    """Encode the answer to a dispatch that ended without a result."""
    return encode({"__type__": "dispatch_result", "__dispatch_id__": dispatch, "__error__": dict(error)})


def is_large(value: Any) -> bool:
    """Return whether a value is slow to encode, because it has long strings or many values."""
    room = _LARGE
    waiting = [value]
    while waiting and room >= 0:
        item = waiting.pop()
        room -= _NODE
        if isinstance(item, (str, bytes, bytearray, memoryview)):
            room -= len(item)
        elif isinstance(item, (dict, list, tuple)):
            room -= _NODE * len(item)
            if room >= 0:
                waiting += item.values() if isinstance(item, dict) else item
    return room < 0
