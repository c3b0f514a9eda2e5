"""The page on the wire format: the messages between host and worker, each checked against the parser."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sideband.ops import OpFailed
from sideband.workers import LaunchRequest, ProtocolViolation, WorkerCall, _wire
from sideband.workers.runtime import MAX_FRAME, MAX_NESTING, MAX_VALUES, PROTOCOL

from .tables import paragraph, table

__all__ = ["EXAMPLES", "FAILED", "HOST", "is_required", "wire_page"]

EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "ready": {"version": PROTOCOL, "python": "3.11.7", "lockdown": {"tier": "full"}},
    "dispatch": {
        "__id__": "c1",
        "__dispatch_id__": "d-7",
        "__caps__": ["http:host=api.github.com"],
        "__dispatch__": {"op": "http.get", "params": {"url": "https://api.github.com/"}},
    },
    "cancel": {"__dispatch_id__": "d-7"},
    "progress": {"__id__": "c1", "current": 3, "total": 10, "message": "third page"},
    "log": {"__id__": "c1", "stream": "stdout", "text": "hello"},
    "result": {"__id__": "c1", "value": 42},
    "begun": {"__id__": "c1"},
    "late": {"__id__": "c1"},
    "pong": {"number": 3},
}
FAILED = {
    "__id__": "c1",
    "__error__": {
        "code": "skill.raised",
        "message": "FileMissing: `notes.txt` does not exist",
        "traceback": "…",
        "cause": {"code": "file.missing", "message": "`notes.txt` does not exist", "op": "files.read"},
        "topic": "open",
    },
}


class _Limited(OpFailed):
    """An error with a detail."""

    code = "http.too_large"
    details = ("limit",)
    limit = 1_000


def _failure() -> _Limited:
    failure = _Limited("the answer is larger than 1,000 bytes", hint="request a part of it")
    failure.op = "http.get"
    return failure


HOST = {
    "hello": _wire.hello(),
    "call": _wire.call(
        WorkerCall(
            id="c1",
            tool="github.stars",
            domain="github",
            launch=LaunchRequest(snapshot=Path("/home/ann"), sdk=Path("/home/ann/sdk")),
            module="github",
            function="stars",
            arguments={"repo": "pytest-dev/pluggy"},
            capabilities=("http:host=api.github.com",),
            environment={"timezone": "UTC", "locale": "C"},
        ),
        begin_by=5210.25,
    ),
    "ping": _wire.ping(3),
    "cancel": _wire.cancel("c1"),
    "dispatch_result": _wire.dispatch_result("d-7", {"status": 200}),
    "dispatch_result, an error": _wire.dispatch_error("d-7", _failure().as_dict()),
}
_ABOUT = {
    "ready": "The reply to `hello`.",
    "dispatch": "A call requests an op. The rights in the message are informative and do not affect the decision.",
    "progress": "Equivalent to a dispatch of `progress.report`, but without an answer.",
    "log": "A line that the skill printed.",
    "result": "A call has ended.",
    "begun": "A call with `begin_by` begins. Sent before the function runs.",
    "late": "A call with `begin_by` was not begun and never will be, because that time has passed.",
    "pong": "The answer of the worker's event loop to `ping`.",
    "ping": "Sent while the worker has calls, to detect that its event loop is blocked.",
    "hello": "The first message.",
    "call": "Runs a function of the worker's skill.",
    "dispatch_result": "The result of an op: exactly one for each dispatch, except for fire-and-forget ops.",
    "dispatch_result, an error": "The same for an op that failed.",
}
_CANCEL = {
    "worker": "The skill no longer waits for a dispatch.",
    "host": "Cancels the call, because its deadline has passed or the caller no longer waits for it.",
}
_MEANINGS = {
    "version": "the protocol version",
    "python": "the version of the interpreter, up to 64 characters",
    "lockdown": "the result of the lockdown",
    "__id__": "the id of the call, up to 128 characters",
    "__dispatch_id__": "`d-` and a number that increases during the lifetime of the worker",
    "__caps__": "the capabilities of the call as known to the worker; ignored",
    "__dispatch__": "`op` (the name) and `params` (an object)",
    "current": "a number",
    "total": "a number",
    "message": "a text",
    "stream": "`stdout` or `stderr`",
    "text": "the line",
    "value": "the return value, unless it is an object. The keys of an object are part of the message itself and must "
    "not begin with `__`",
    "__error__": "`code`, `message` and further keys: `traceback` and `cause` for an error of a skill, the keys of "
    "[errors](errors.md) for an error of an op, and its `details`. A string is accepted as the message",
    "__call__": "`module`, `function`, `kwargs`, `working_dir`, `capabilities` and `env` (`timezone`, `locale`), and "
    "optionally `begin_by`, the time on the monotonic clock after which the call must not begin",
    "number": "the number of the ping",
    "payload": "the result",
}


def wire_page() -> list[str]:
    """Return the lines of the page."""
    return [
        "# Wire format",
        "",
        *paragraph(
            "The host and a worker communicate over file descriptor 3 or, with `--stdio`, over 0 and 1. A message is "
            f"one JSON object on one line, with at most {MAX_FRAME // 2**20} MiB, {MAX_NESTING} levels and "
            f'{MAX_VALUES:,} values. Its type is in `__type__`. Bytes are encoded as {{"__bytes__": base64}}. This '
            f"page describes version {PROTOCOL} of the protocol."
        ),
        "",
        *paragraph(
            "The host trusts a worker's messages no more than the skill. A message that deviates from this page ends "
            "the worker with `worker.protocol`, fails its calls, and is recorded. Violations are missing or additional "
            "fields, wrong types, duplicate keys, NaN, invalid UTF-8, an unknown call or dispatch, and a duplicate "
            "dispatch id."
        ),
        "",
        "## From the worker",
        *_from_worker(),
        "",
        "## From the host",
        *_from_host(),
    ]


def _from_worker() -> Iterator[str]:
    for kind in _wire._PARSERS:  # noqa: SLF001  the page documents the actual parser
        message = valid = {"__type__": kind, **EXAMPLES[kind]}
        yield from ["", f"### {kind}", "", _CANCEL["worker"] if kind == "cancel" else _ABOUT[kind], ""]
        yield from _shown(message)
        if kind == "result":
            failed = {"__type__": kind, **FAILED}
            _wire.parse(_line(failed))
            yield from ["", "Or, for a call that failed:", "", *_shown(failed)]
            message = {**message, **failed}
        yield ""
        yield from table(
            ["field", "required", "meaning"],
            [
                [f"`{name}`", "yes" if is_required(valid, name) else "", _MEANINGS[name]]
                for name in message
                if name != "__type__"
            ],
        )


def is_required(message: Mapping[str, Any], name: str) -> bool:
    """Return whether the host rejects a message of a worker without this field."""
    _wire.parse(_line(message))
    try:
        _wire.parse(_line({key: value for key, value in message.items() if key != name}))
    except ProtocolViolation:
        return True
    return False


def _from_host() -> Iterator[str]:
    for kind, line in HOST.items():
        message = json.loads(line)
        yield from ["", f"### {kind}", "", _CANCEL["host"] if kind == "cancel" else _ABOUT[kind], ""]
        yield from _shown(message)
        yield ""
        rows = [[f"`{name}`", _MEANINGS[name]] for name in message if name != "__type__"]
        yield from table(["field", "meaning"], rows)


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode()


def _shown(message: Mapping[str, Any]) -> list[str]:
    return ["```json", json.dumps(message, ensure_ascii=False), "```"]
