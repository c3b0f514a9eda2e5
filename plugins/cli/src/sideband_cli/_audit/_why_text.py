"""Why an effect happened, as text and as data: from who asked, over the model and its guards, to how it ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._terminal._clean import clean
from .._terminal._tables import format_table, paragraph
from .._terminal._words import describe_duration, describe_usage, one_line
from .._undo._taken_back import takes_back
from ._record_text import describe_decision, describe_effect, effect_label, labelled, local_time, record_data

if TYPE_CHECKING:
    from sideband.ledger import EffectRecord
    from sideband_agent.sessions import MessageEntry

    from ._why import Why

_MOST_LINES = 12
_LONGEST_TEXT = 1_200
_MOST_ROWS = 50
_ENDINGS = {
    "denied": "denied: it was not run",
    "unknown": "unknown: its host ended while it was under way, and it was not repeated",
    "open": "open: the ledger does not say how it ended",
}


def describe_why(why: Why) -> str:
    """The whole story in lines that fit the terminal: a parent agent's part of it first."""
    sections = list(_sections(why))
    if why.effect is not None:
        sections.append("\n".join([describe_effect(why.effect), *_asked_for(why), *_taken_back(why)]))
    else:
        sections.append("the ledger has no record of it")
    return "\n\n".join(sections)


def _asked_for(why: Why) -> Iterator[str]:
    """The effects that the op asked for."""
    for one in why.parts:
        yield from labelled("asked for", f"{one.effect}: {one.op}, {one.status or 'open'}")


def _taken_back(why: Why) -> Iterator[str]:
    """What the effect takes back, and what took it back."""
    if why.effect is not None and (taken := takes_back(why.effect)):
        yield from labelled("takes back", taken)
    for one in why.taken_back:
        yield from labelled("taken back", f"by {one.effect}: {one.op}, {one.status or 'open'}")


def _sections(why: Why) -> Iterator[str]:
    if why.parent is not None:
        yield from _sections(why.parent)
    if why.where is not None:
        yield _asked(why)
        if why.where.model_step:
            yield _model(why)
        if why.where.call:
            yield _tool(why)
    if why.below and (why.where is not None or len(why.below) > 1):
        yield _below(why)


def _asked(why: Why) -> str:
    """Who asked, and for what."""
    where = why.where
    assert where is not None  # noqa: S101  asked about before
    lines = ["asked by" if why.parent is None else "a child agent, for this call"]
    if why.session is not None:
        name = f" `{one_line(why.session.name)}`" if why.session.name else ""
        lines += labelled("session", f"{where.session}{name}")
    elif not why.sessions_read:
        lines += labelled("session", where.session)
    elif why.parent is not None:
        lines += labelled("session", f"{where.session}, which ended with the agent")
    else:
        lines += labelled("session", f"{where.session}, which is not there any more: what was said is not known")
    lines += labelled("run", where.run + _run(why))
    for time in why.resumed:
        lines += labelled("gone on", local_time(time))
    for entry in why.asked:
        lines += labelled("said by", f"{one_line(getattr(entry.message, 'source', ''))}, {local_time(entry.time)}")
        lines += _quoted(entry)
    lines += [line for notice in why.notices for line in labelled("note", notice)]
    return "\n".join(lines)


def _run(why: Why) -> str:
    source = f", {one_line(why.began.source)}" if why.began and why.began.source else ""
    if why.ended is None:
        return source + (", not ended" if why.began else "")
    error = one_line(str((why.ended.error or {}).get("message", "")))
    return f"{source}, {why.ended.status}" + (f": {error}" if error else "")


def _model(why: Why) -> str:
    """What the model said, and how often it was asked."""
    where, message = why.where, why.model_message
    assert where is not None  # noqa: S101  asked about before
    lines = [f"model step {where.model_step}"]
    model = message.model if message else next((str(one.params.get("model")) for one in why.tries), "not known")
    took = f", {describe_duration(why.tries[-1].ms / 1_000)}" if why.tries and why.tries[-1].ms is not None else ""
    lines += labelled("model", one_line(model) + took)
    if message is not None:
        lines += labelled("used", describe_usage(message.usage))
    if len(why.tries) > 1 or any(one.status != "done" for one in why.tries):
        lines += labelled("tries", "; ".join(map(_try, why.tries)))
    if why.model_replayed:
        lines += labelled("replayed", "it was not asked again when the run went on: the record has its answer")
    if why.answer is not None:
        lines += _quoted(why.answer)
    calls = [one_line(call.name) + (" (this one)" if call == why.part else "") for call in _parts(why)]
    if len(calls) > 1 or (calls and not where.call):
        lines += labelled("asked for", ", ".join(calls))
    if not where.call:
        lines += [line for one in why.calls for line in labelled("call", f"{effect_label(one)} ({one.effect})")]
    return "\n".join(lines)


def _parts(why: Why) -> Sequence[Any]:
    return why.model_message.tool_calls if why.model_message else ()


def _try(record: EffectRecord) -> str:
    code = record.error.get("code") if record.error else None
    return f"{record.status or 'open'}{f' ({code})' if code else ''}"


def _tool(why: Why) -> str:
    """The tool call, what guards said of it, and what came of it."""
    where = why.where
    assert where is not None  # noqa: S101  asked about before
    lines = [f"tool call {where.call}"]
    name, call, arguments = _called(why)
    lines += labelled("tool", one_line(name))
    lines += labelled("id", one_line(call))
    lines += labelled("arguments", json.dumps(arguments, ensure_ascii=False))
    for number, record in enumerate(why.calls, start=1):
        if len(why.calls) > 1:
            lines += labelled("try", f"{number} ({record.effect})")
        lines += [line for one in record.decisions for line in labelled("decision", describe_decision(one))]
        took = f", {record.ms} ms" if record.ms is not None else ""
        lines += labelled("ended", _ending(record) + took)
    if why.tool_replayed:
        lines += labelled("replayed", "it was not run again when the run went on: the record has its result")
    if why.told is not None and why.result is not None:
        lines += labelled("answered", "as an error" if why.told.is_error else "with this")
        lines += _quoted(why.result)
    elif why.session is not None:
        lines += labelled("answered", "not yet: the model was not told of it")
    return "\n".join(lines)


def _ending(record: EffectRecord) -> str:
    status = record.status or "open"
    return _ENDINGS.get(status, status)


def _called(why: Why) -> tuple[str, str, Any]:
    """The tool call as it was recorded; as the model wrote it, if it was not."""
    if why.calls:
        params = why.calls[-1].params
        return str(params.get("tool", "")), str(params.get("call", "")), params.get("arguments", {})
    if why.part is not None:
        return why.part.name, why.part.id, why.part.arguments
    return "not known", "not known", {}


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
        for record in why.below[:_MOST_ROWS]
    ]
    more = len(why.below) - len(rows)
    table = format_table(["", "effect", "op", "status", "ms", "parameters"], rows)
    return f"effects of the call\n{table}" + (f"\n… and {more} more, which --json shows" if more > 0 else "")


def _quoted(entry: MessageEntry) -> list[str]:
    """What was said, cut where it gets long; each line is marked, so that none can pass for one of ours."""
    text = clean(entry.message.text).expandtabs(4)
    cut = text[:_LONGEST_TEXT]
    lines = [line for raw in cut.splitlines() for line in paragraph(raw, "  | ", "  | ").splitlines() or ["  |"]]
    if len(lines) > _MOST_LINES or len(cut) < len(text):
        lines = [*lines[:_MOST_LINES], f"  … ({len(text):,} characters in all)"]
    return lines


def why_data(why: Why) -> dict[str, Any]:
    """The same as data; the records of the ledger and the messages as they are."""
    effect = record_data(why.effect) if why.effect else {"effect": None, "op": None, "status": None, "entries": []}
    undoing = {
        "takes_back": takes_back(why.effect) if why.effect else None,
        "parts": [{"effect": one.effect, "op": one.op, "status": one.status} for one in why.parts],
        "taken_back": [{"effect": one.effect, "op": one.op, "status": one.status} for one in why.taken_back],
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
        "tries": _records(why.tries),
        "replayed": why.model_replayed,
        "calls": [] if why.where and why.where.call else _records(why.calls),
    }


def _tool_data(why: Why) -> dict[str, Any]:
    name, call, arguments = _called(why)
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
