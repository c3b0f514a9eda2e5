"""The lines of effects before they have a place in the chain.

An effect has two lines, so these are written often. What does not change for an op, its grant and its origin is encoded
once. The result is the same text as that of ``draft`` for all fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

from ..ops import Level, Origin
from ._entries import Intent, Outcome
from ._fields import line_fields, write_origin
from ._lines import Draft, canonical, draft, draft_content

_CACHED = 512
_REFUSED = (
    *("effect", "op", "status", "key", "decisions", "error", "ms", "bytes", "note"),
    *("params", "grant", "origin", "level", "isolation", "within"),
)
_KEYED = ("result", "state", "rights")
_text = json.encoder.encode_basestring_ascii


def intent_draft(intent: Intent) -> Draft:
    """Return the line for an intent."""
    content: dict[str, Any] = {"params": intent.params}
    if intent.decisions:
        content["decisions"] = intent.decisions
    if intent.note:
        content["note"] = intent.note
    granted, kind = _prepared(intent.op, intent.level, intent.grant, intent.granted_by, intent.isolation)
    code = key = rights = ""
    if intent.key is not None:
        key, rights = f'"key":{_text(intent.key)},', _rights(intent.rights)
        if intent.code:
            code = f'"code":{_text(intent.code)},'
        if intent.params_digest:
            content["params_digest"] = intent.params_digest
    text, digest = draft_content(content)
    return Draft(
        f'{code}"content_sha256":"{digest}","effect":{_text(intent.effect)},{granted}{key}{kind}{_origin(intent.origin)}',
        rights,
        "",
        "" if intent.within is None else f',"within":{_text(intent.within)}',
        text,
        () if intent.key is None else (intent.effect, intent.key, intent.origin.principal),
    )


def outcome_draft(outcome: Outcome, *, follows: bool) -> Draft:
    """Return the line for an outcome.

    Args:
        outcome: the outcome to write.
        follows: whether an intent was written, which has the origin, the parameters and the grant.
    """
    keyed = () if outcome.key is None else (outcome.effect,)
    if not follows:
        return draft(line_fields("outcome", outcome, _REFUSED + _KEYED if keyed else _REFUSED))._replace(keyed=keyed)
    content: dict[str, Any] = {}
    if outcome.error is not None:
        content["error"] = outcome.error
    if outcome.decisions:
        content["decisions"] = outcome.decisions
    if outcome.note:
        content["note"] = outcome.note
    key = rights = state = ""
    if outcome.key is not None:
        key = f'"key":{_text(outcome.key)},'
        if outcome.result is not None:
            content["result"] = outcome.result
        if outcome.rights is not None:
            rights = _rights(outcome.rights)
        if outcome.state is not None:
            state = f'"state":{_text(outcome.state)},'
    text, digest = draft_content(content)
    size = "" if outcome.bytes is None else f'"bytes":{outcome.bytes},'
    committed = f'"content_sha256":"{digest}",' if digest else ""
    ms = "" if outcome.ms is None else f'"ms":{_number(outcome.ms)},'
    return Draft(
        f'{size}{committed}"effect":{_text(outcome.effect)},{key}"kind":"outcome",{ms}"op":{_text(outcome.op)},',
        rights,
        f'{state}"status":{_text(outcome.status)},',
        "",
        text,
        keyed,
    )


def note_draft(effect: str, op: str, note: Mapping[str, Any]) -> Draft:
    """Return the line for a note that an op makes before it changes anything."""
    return draft({"kind": "note", "effect": effect, "op": op, "note": note})


@lru_cache(_CACHED)
def _prepared(
    op: str, level: Level | None, grant: tuple[str, ...], granted_by: tuple[str, ...], isolation: str | None
) -> tuple[str, str]:
    """Return the members of an intent between ``effect`` and ``key``, and those between ``key`` and ``origin``."""
    granted = f'"grant":{canonical(grant)},'
    if granted_by:
        granted += f'"granted_by":{canonical(granted_by)},'
    if isolation is not None:
        granted += f'"isolation":{_text(isolation)},'
    kind = '"kind":"intent",' + ("" if level is None else f'"level":{_text(level.name)},') + f'"op":{_text(op)},'
    return granted, kind


@lru_cache(_CACHED)
def _origin(origin: Origin) -> str:
    members = ",".join([f'"{name}":{_text(value)}' for name, value in sorted(write_origin(origin).items())])
    return f'"origin":{{{members}}},'


@lru_cache(_CACHED)
def _rights(rights: tuple[str, ...]) -> str:
    return f'"rights":{canonical(rights)},'


def _number(value: float) -> str:
    number = round(value, 3)
    return repr(number) if isfinite(number) else canonical(number)
