"""The messages between host and worker, each tried on the code that reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sideband.workers import LaunchRequest, ProtocolViolation, WorkerCall, _wire
from sideband.workers.runtime import MAX_FRAME, MAX_NESTING, MAX_VALUES, PROTOCOL

from .tables import paragraph, table

__all__ = ["EXAMPLES", "HOST", "wire_page"]

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
}
_FAILED = {"__id__": "c1", "__error__": {"code": "skill.raised", "message": "ValueError: no", "traceback": "…"}}
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
        )
    ),
    "cancel": _wire.cancel("c1"),
    "dispatch_result": _wire.dispatch_result("d-7", {"status": 200}),
    "dispatch_result, an error": _wire.dispatch_error(
        "d-7", {"code": "op.denied", "message": "http.get was refused", "hint": "", "retryable": False}
    ),
}
_ABOUT = {
    "ready": "The answer to `hello`.",
    "dispatch": "A call wants an op. What it says about its rights informs, and decides nothing.",
    "progress": "The same as a dispatch of `progress.report`, without an answer.",
    "log": "A line that a skill printed.",
    "result": "A call has ended.",
    "hello": "The first message.",
    "call": "Run a function of the skill that the worker serves.",
    "dispatch_result": "How an op ended: exactly one for each dispatch that somebody waits for.",
    "dispatch_result, an error": "The same, of one that ended without a result.",
}
_CANCEL = {
    "worker": "The skill does not wait for a dispatch any more.",
    "host": "The call is to end: it is late, or nobody waits for it.",
}
_MEANINGS = {
    "version": "of the protocol",
    "python": "the version of the interpreter, up to 64 characters",
    "lockdown": "what the lock-down answered",
    "__id__": "of the call, up to 128 characters",
    "__dispatch_id__": "`d-` and a number that grows within the worker's life",
    "__caps__": "what the worker believes that its call may do; not read",
    "__dispatch__": "`op`, its name, and `params`, an object",
    "current": "a number",
    "total": "a number",
    "message": "a text",
    "stream": "`stdout` or `stderr`",
    "text": "the line",
    "value": "what the function returned, if it is no object; the keys of an object stand in the message itself, and "
    "none of them begins with `__`",
    "__error__": "`code`, `message`, and what else is known: `traceback` and `cause` of a skill's, the keys of "
    "[errors](errors.md) of an op's; a text alone is taken as its message",
    "__call__": "`module`, `function`, `kwargs`, `working_dir`, `capabilities` and `env` (`timezone`, `locale`)",
    "payload": "the result",
}


def wire_page() -> list[str]:
    """The lines of the page."""
    return [
        "# Wire format",
        "",
        *paragraph(
            "Host and worker speak over a descriptor of their own, 3, or with `--stdio` over 0 and 1. A message is one "
            f"JSON object on one line, at most {MAX_FRAME // 2**20} MiB long, {MAX_NESTING} levels deep and with "
            f'{MAX_VALUES:,} values; `__type__` says what it is. Bytes are {{"__bytes__": base64}}. This is version '
            f"{PROTOCOL}."
        ),
        "",
        *paragraph(
            "Everything that a worker says is the skill's word. A message that is not exactly as below (a field more "
            "or less, another type, a key twice, NaN, bytes that are not UTF-8, a call or dispatch that is not open, a "
            "dispatch id a second time) ends the worker with `worker.protocol`, fails its calls, and is recorded."
        ),
        "",
        "## From the worker",
        *_from_worker(),
        "",
        "## From the host",
        *_from_host(),
    ]


def _from_worker() -> Iterator[str]:
    for kind in _wire._PARSERS:  # noqa: SLF001  the page says what is read, so it asks what is
        message = {"__type__": kind, **EXAMPLES[kind]}
        yield from ["", f"### {kind}", "", _CANCEL["worker"] if kind == "cancel" else _ABOUT[kind], ""]
        yield from _shown(message)
        if kind == "result":
            failed = {"__type__": kind, **_FAILED}
            _wire.parse(_line(failed))
            yield from ["", "Or, of one that raised:", "", *_shown(failed)]
            message = {**message, **failed}
        yield ""
        yield from table(
            ["field", "must be there", "meaning"],
            [
                [f"`{name}`", "yes" if _is_required(kind, name) else "", _MEANINGS[name]]
                for name in message
                if name != "__type__"
            ],
        )


def _is_required(kind: str, name: str) -> bool:
    """Whether the host refuses the message without this field."""
    message = {"__type__": kind, **EXAMPLES[kind]}
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
