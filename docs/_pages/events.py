"""The page on events: the JSON lines that ``sideband run --json`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs
from pydantic import BaseModel
from sideband.hooks import HOOK_SPECS, Kind
from sideband.messages import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    ImageUrlPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from sideband.providers import TextDelta, ThinkingDelta, ToolCallDelta
from sideband_agent import RunResult

from .docstrings import attributes, first_paragraph
from .tables import paragraph, table

__all__ = ["DELTAS", "EVENTS", "MESSAGES", "NOT_PRINTED", "PARTS", "events_page"]

EVENTS = {name: spec.event for name, spec in HOOK_SPECS.items() if spec.kind is Kind.OBSERVE}
NOT_PRINTED = ("messages", "exit_code")
DELTAS = (TextDelta, ThinkingDelta, ToolCallDelta)
MESSAGES = (UserMessage, AssistantMessage, ToolResultMessage)
PARTS = (TextPart, ImagePart, ImageUrlPart, FilePart, AudioPart, ThinkingPart, ToolCallPart)


def events_page() -> list[str]:
    """Return the lines of the page."""
    lines = [
        "# Events",
        "",
        *paragraph(
            "`sideband run --json` prints one JSON object per line, as soon as the event happens. The key `event` is "
            "the name of the event; the other keys depend on it. An `Agent` calls `on_event` with the same events as "
            "objects, whose attributes have the same names. Side effects are reported as `effect`, with the contents "
            "of their ledger entry (see `sideband audit`)."
        ),
        "",
        *paragraph(
            "[Runs](../agents.md#runs) describes the order of events. The last line is the [result](#result). If the "
            "run could not start, the only line is an object with the single key `error`."
        ),
    ]
    for name, event in EVENTS.items():
        meanings = attributes(event)
        rows = [[f"`{field.name}`", meanings[field.name]] for field in attrs.fields(event)]
        lines += ["", f"## {name}", "", first_paragraph(event.__doc__), "", *table(["key", "meaning"], rows)]
    lines += ["", "## result", "", "The result of the run.", "", *table(["key", "meaning"], _result())]
    for title, models in (("Messages", MESSAGES), ("Parts", PARTS), ("Deltas", DELTAS), ("Usage", (Usage,))):
        lines += ["", f"## {title}", "", "Keys without a value are left out."]
        for model in models:
            lines += ["", *_model(model)]
    return lines


def _result() -> Iterator[tuple[str, str]]:
    meanings = {
        **attributes(RunResult),
        "model": "the model, as provider:model",
        "over_budget": "the limits of the session that are exceeded, each with `limit` and `used`",
    }
    for name, meaning in meanings.items():
        if name not in NOT_PRINTED:
            yield f"`{name}`", meaning


def _model(model: type[BaseModel]) -> Iterator[str]:
    kind = next((name for name in ("role", "type") if name in model.model_fields), None)
    if kind is not None:
        yield f"`{kind}` `{model.model_fields[kind].default}`: {first_paragraph(model.__doc__)}"
    else:
        yield first_paragraph(model.__doc__)
    yield ""
    meanings = attributes(model)
    yield from table(
        ["key", "default", "meaning"],
        [
            [
                f"`{name}`",
                "required" if field.is_required() else f"`{_shown(field.get_default(call_default_factory=True))}`",
                meanings.get(name, ""),
            ]
            for name, field in model.model_fields.items()
            if name != kind
        ],
    )


def _shown(value: object) -> str:
    return "{…}" if isinstance(value, BaseModel) else json.dumps(value)
