"""The explanation of an effect as text and as data: request, model step, guard decisions and outcome."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sideband.rendering import render

from .._terminal._tables import format_table, paragraph
from .._terminal._words import describe_duration, describe_usage, one_line
from .._undo._undo_effects import undone_effect
from ._load_text import load_text
from ._record_text import describe_decision, describe_effect, effect_label, labeled, local_time, record_data

if TYPE_CHECKING:
    from sideband.ledger import EffectRecord
    from sideband_agent.sessions import MessageEntry

    from ._why import Why

_MAX_LINES = 12
_MAX_TEXT_LENGTH = 1_200
_MAX_ROWS = 50
_OUTCOMES = {
    "denied": "denied: it was not run",
    "unknown": "unknown: the host ended while it was running, and it was not repeated",
    "open": "open: no outcome is recorded",
}
_REPEATED = "interrupted: the host ended while it was running; it was run again"


def describe_why(why: Why) -> str:
    """Describe an explanation in lines that fit the terminal, beginning with the parent agent's part."""
    sections = list(_sections(why))
    if why.effect is not None:
        sections.append(
            "\n".join([describe_effect(why.effect), *_loads_lines(why), *_parts_lines(why), *_undo_lines(why)])
        )
    else:
        sections.append("the ledger has no record of it")
    return "\n\n".join(sections)


def _loads_lines(why: Why) -> Iterator[str]:
    """Yield lines about the plugins that took part."""
    for one in why.loads:
        yield from labeled("plugin", load_text(one))


def _parts_lines(why: Why) -> Iterator[str]:
    """Yield lines about the effects that the op dispatched."""
    for one in why.parts:
        yield from labeled("dispatched", f"{one.effect}: {one.op}, {one.status or 'open'}")


def _undo_lines(why: Why) -> Iterator[str]:
    """Yield lines about the effect that this one undoes and those that undid it."""
    if why.effect is not None and (undone := undone_effect(why.effect)):
        yield from labeled("undoes", undone)
    for one in why.undone_by:
        yield from labeled("undone by", f"{one.effect}: {one.op}, {one.status or 'open'}")


def _sections(why: Why) -> Iterator[str]:
    if why.parent is not None:
        yield from _sections(why.parent)
    if why.where is not None:
        yield _request(why)
        if why.where.model_step:
            yield _model(why)
        if why.where.call:
            yield _tool(why)
    if why.below and (why.where is not None or len(why.below) > 1):
        yield _below(why)


def _request(why: Why) -> str:
    """Describe the session, the run and the user's messages."""
    where = why.where
    assert where is not None  # noqa: S101  checked by the caller
    lines = ["request" if why.parent is None else "child agent for this call"]
    if why.session is not None:
        name = f" `{one_line(why.session.name)}`" if why.session.name else ""
        lines += labeled("session", f"{where.session}{name}")
    elif not why.sessions_read:
        lines += labeled("session", where.session)
    elif why.parent is not None:
        lines += labeled("session", f"{where.session}, which ended with the agent")
    else:
        lines += labeled("session", f"{where.session}, which no longer exists: its messages are not available")
    lines += labeled("run", where.run + _run(why))
    for time in why.resumed:
        lines += labeled("resumed", local_time(time))
    for entry in why.asked:
        lines += labeled("message", f"{one_line(getattr(entry.message, 'source', ''))}, {local_time(entry.time)}")
        lines += _quoted(entry)
    lines += [line for notice in why.notices for line in labeled("note", notice)]
    return "\n".join(lines)


def _run(why: Why) -> str:
    source = f", {one_line(why.began.source)}" if why.began and why.began.source else ""
    if why.ended is None:
        return source + (", not ended" if why.began else "")
    error = one_line(str((why.ended.error or {}).get("message", "")))
    return f"{source}, {why.ended.status}" + (f": {error}" if error else "")


def _model(why: Why) -> str:
    """Describe the model step: its attempts and its answer."""
    where, message = why.where, why.model_message
    assert where is not None  # noqa: S101  checked by the caller
    lines = [f"model step {where.model_step}"]
    model = message.model if message else next((str(one.params.get("model")) for one in why.attempts), "unknown")
    last = why.attempts[-1] if why.attempts else None
    duration = f", {describe_duration(last.ms / 1_000)}" if last is not None and last.ms is not None else ""
    lines += labeled("model", one_line(model) + duration)
    if message is not None:
        lines += labeled("usage", describe_usage(message.usage))
    if len(why.attempts) > 1 or any(one.status != "done" for one in why.attempts):
        lines += labeled("attempts", "; ".join(map(_attempt, why.attempts)))
    if why.model_replayed:
        lines += labeled("replayed", "the model was not called again when the run was resumed")
    if why.answer is not None:
        lines += _quoted(why.answer)
    calls = [one_line(call.name) + (" (this one)" if call == why.part else "") for call in _parts(why)]
    if len(calls) > 1 or (calls and not where.call):
        lines += labeled("tool calls", ", ".join(calls))
    if not where.call:
        lines += [line for one in why.calls for line in labeled("call", f"{effect_label(one)} ({one.effect})")]
    return "\n".join(lines)


def _parts(why: Why) -> Sequence[Any]:
    return why.model_message.tool_calls if why.model_message else ()


def _attempt(record: EffectRecord) -> str:
    code = record.error.get("code") if record.error else None
    return f"{record.status or 'open'}{f' ({code})' if code else ''}"


def _tool(why: Why) -> str:
    """Describe the tool call: its arguments, the guards' decisions and its result."""
    where = why.where
    assert where is not None  # noqa: S101  checked by the caller
    lines = [f"tool call {where.call}"]
    name, call, arguments = _tool_call(why)
    lines += labeled("tool", one_line(name))
    lines += labeled("id", one_line(call))
    lines += labeled("arguments", json.dumps(arguments, ensure_ascii=False))
    repeated = {record.note.get("interrupted") for record in why.calls}
    for number, record in enumerate(why.calls, start=1):
        if len(why.calls) > 1:
            lines += labeled("attempt", f"{number} ({record.effect})")
        lines += [line for one in record.decisions for line in labeled("decision", describe_decision(one))]
        duration = f", {record.ms} ms" if record.ms is not None else ""
        outcome = _REPEATED if record.effect in repeated and record.status == "unknown" else _outcome(record)
        lines += labeled("outcome", outcome + duration)
    lines += _replay(why)
    if why.tool_replayed:
        lines += labeled("replayed", "the tool was not run again when the run was resumed")
    if why.tool_result is not None and why.result is not None:
        lines += labeled("result", "error" if why.tool_result.is_error else "success")
        lines += _quoted(why.result)
    elif why.session is not None:
        lines += labeled("result", "not sent to the model yet")
    return "\n".join(lines)


def _replay(why: Why) -> Iterator[str]:
    """Yield lines about the recorded effects that the last attempt of an interrupted call was answered from."""
    replay = why.tool_result.metadata.get("replay") if why.tool_result else None
    if not isinstance(replay, Mapping):
        return
    yield from labeled("replayed", f"answered from the record: {_ids(replay, 'answered') or 'nothing was recorded'}")
    if skipped := _ids(replay, "skipped"):
        yield from labeled("skipped", f"recorded, but not requested again: {skipped}")


def _ids(replay: Mapping[str, Any], name: str) -> str:
    ids = replay.get(name)
    return ", ".join(map(str, ids)) if isinstance(ids, Sequence) else ""


def _outcome(record: EffectRecord) -> str:
    status = record.status or "open"
    return _OUTCOMES.get(status, status)


def _tool_call(why: Why) -> tuple[str, str, Any]:
    """Return tool, id and arguments of the tool call as recorded, or else as written by the model."""
    if why.calls:
        params = why.calls[-1].params
        return str(params.get("tool", "")), str(params.get("call", "")), params.get("arguments", {})
    if why.part is not None:
        return why.part.name, why.part.id, why.part.arguments
    return "unknown", "unknown", {}


def _below(why: Why) -> str:
    rows = [
        [
            ">" if why.effect and record.effect == why.effect.effect else "",
            record.effect,
            record.op,
            record.status or "open",
            "" if record.ms is None else f"{record.ms:.0f}",
            json.dumps(dict(record.params), ensure_ascii=False) if record.params else "",
        ]
        for record in why.below[:_MAX_ROWS]
    ]
    more = len(why.below) - len(rows)
    table = format_table(["", "effect", "op", "status", "ms", "parameters"], rows)
    return f"effects of the call\n{table}" + (f"\n… and {more} more; --json shows all" if more > 0 else "")


def _quoted(entry: MessageEntry) -> list[str]:
    """Quote a message, cut if it is long. Each line is marked, so that no text can pass for our own output."""
    text = render(entry.message.text, prose=True).expandtabs(4)
    cut = text[:_MAX_TEXT_LENGTH]
    lines = [line for raw in cut.splitlines() for line in paragraph(raw, "  | ", "  | ").splitlines() or ["  |"]]
    if len(lines) > _MAX_LINES or len(cut) < len(text):
        lines = [*lines[:_MAX_LINES], f"  … ({len(text):,} characters in total)"]
    return lines


def why_data(why: Why) -> dict[str, Any]:
    """Return an explanation as data, with unchanged ledger records and messages."""
    effect = record_data(why.effect) if why.effect else {"effect": None, "op": None, "status": None, "entries": []}
    undoing = {
        "takes_back": undone_effect(why.effect) if why.effect else None,
        "parts": [{"effect": one.effect, "op": one.op, "status": one.status} for one in why.parts],
        "plugins": [dict(one.fields) for one in why.loads],
        "taken_back": [{"effect": one.effect, "op": one.op, "status": one.status} for one in why.undone_by],
    }
    if why.where is None:
        return {**effect, **undoing, "effects": _records(why.below)}
    where = why.where
    return {
        **effect,
        **undoing,
        "session": {
            "id": where.session,
            "name": why.session.name if why.session else None,
            "found": why.session is not None,
        },
        "run": {
            "id": where.run,
            "source": why.began.source if why.began else None,
            "status": why.ended.status if why.ended else None,
            "error": why.ended.error if why.ended else None,
            "began": why.began.time if why.began else None,
            "resumed": list(why.resumed),
        },
        "asked": [_entry_data(entry) for entry in why.asked],
        "model_step": _model_data(why) if where.model_step else None,
        "tool_call": _tool_data(why) if where.call else None,
        "effects": _records(why.below),
        "parent": why_data(why.parent) if why.parent else None,
        "notices": list(why.notices),
    }


def _model_data(why: Why) -> dict[str, Any]:
    return {
        "step": why.where.model_step if why.where else "",
        "answer": _entry_data(why.answer) if why.answer else None,
        "tries": _records(why.attempts),
        "replayed": why.model_replayed,
        "calls": [] if why.where and why.where.call else _records(why.calls),
    }


def _tool_data(why: Why) -> dict[str, Any]:
    name, call, arguments = _tool_call(why)
    return {
        "step": why.where.call if why.where else "",
        "tool": name,
        "id": call,
        "arguments": arguments,
        "decisions": [dict(one) for record in why.calls for one in record.decisions],
        "tries": _records(why.calls),
        "replayed": why.tool_replayed,
        "result": _entry_data(why.result) if why.result else None,
    }


def _records(records: Iterable[EffectRecord]) -> list[dict[str, Any]]:
    return [record_data(record) for record in records]


def _entry_data(entry: MessageEntry) -> Mapping[str, Any]:
    return entry.model_dump(mode="json", exclude_none=True)
