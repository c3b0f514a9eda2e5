"""Requests for approval as lines: exactly what is requested, and the grants that an answer can give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from sideband.rendering import quoted, render

from ._columns import broken

if TYPE_CHECKING:
    from sideband.approvals import ApprovalRequest, ApprovalScope
    from sideband.ops import Origin

_MAX_LENGTH = 4_000  # of all arguments, and of the preview
_MAX_LINES = 40
_MAX_CHANGES = 2_000
_MAX_INDENT = 8
_MARGIN = "  │ "


def question_rows(reason: Sequence[str], width: int) -> list[str]:
    """Return the rows that show a reason. A line feed in a line is escaped, and all rows but its first are indented.

    Each row of a line with a margin has the margin.
    """
    rows = []
    for line in reason:
        text = render(line)
        indent = _MARGIN if text.startswith(_MARGIN) else text[: min(len(text) - len(text.lstrip()), _MAX_INDENT)]
        first, *_ = broken(text, width)
        rest = text[len(first) :].removeprefix(" ")
        rows += [first, *(f"{indent}  {row}" for row in broken(rest, width - len(indent) - 2) if rest)]
    return rows


def request_lines(request: ApprovalRequest) -> list[str]:
    """Return the lines that say exactly what is to be approved."""
    if request.kind == "grant":
        return _grant_lines(request)
    requester = requester_of(request.origin) if request.kind == "effect" else ""
    return [
        *_block(request.subject, request.question),
        *([f"  requested by {requester}"] if requester else []),
        *_argument_lines(request.effect),
        *([] if request.level is None else [f"  level: {request.level.name.lower()}"]),
        *(_block("noted by guards", request.risk) if request.risk else []),
        *(_block("preview", request.preview) if request.preview else []),
    ]


def offer_lines(request: ApprovalRequest, offered: Iterable[ApprovalScope]) -> list[str]:
    """Return the lines that say, in full, which grants approvals with these scopes give."""
    scopes: dict[Sequence[str], list[str]] = {}
    for scope in offered:
        scopes.setdefault(request.grants[scope], []).append(scope)
    lines = []
    for texts, names in scopes.items():
        lines.append(f"{' or '.join(names)}: {_extent(request)}")
        lines += [f"  {one}" for one in _added(request, texts)]
    return lines


def is_offered(request: ApprovalRequest, scope: ApprovalScope) -> bool:
    """Return whether a question may offer a scope: not if its grant would move the request off the screen."""
    added = _added(request, request.grants.get(scope, ()))
    return scope in request.grants and len(added) <= _MAX_LINES and sum(map(len, added)) <= _MAX_LENGTH


def _added(request: ApprovalRequest, capabilities: Sequence[str]) -> Sequence[str]:
    """Return the capabilities of a grant that `request_lines` does not show."""
    return () if request.kind == "grant" and capabilities == request.grants.get("always") else capabilities


def _extent(request: ApprovalRequest) -> str:
    """Return what a grant allows besides this request."""
    if request.kind == "grant":
        plugin = request.subject.startswith("plugin:")
        return "for the plugin and all its callers" if plugin else "for all tools of this version of the skill"
    subject, requester = quoted(request.subject), requester_of(request.origin)
    if request.kind == "tool":
        return f"later calls of {subject} too, whatever their arguments"
    by = f" by {requester}" if requester else ""
    return f"later calls of {subject}{by} too, whatever their other parameters, within"


def capability_lines(request: ApprovalRequest) -> list[str]:
    """Return the capabilities that a grant consists of, with the remarks of their families."""
    remarks = request.effect.get("remarks", {})
    texts = request.grants.get("always") or request.effect.get("capabilities", ())
    return [f"  {one} ({remarks[one]})" if one in remarks else f"  {one}" for one in texts]


def _grant_lines(request: ApprovalRequest) -> list[str]:
    name, lines = str(request.effect["name"]), capability_lines(request)
    if len(lines) > _MAX_LINES:  # the first ones may be above the screen
        lines.append(f"  ({len(lines):,} capabilities in total, requested by {quoted(name)})")
    tool, source = request.effect.get("tool"), request.effect.get("source")  # only the tool that is called
    called = f"tool {quoted(str(tool))} of the " if tool else ""
    where = f" ({source})" if source else ""
    level = [] if request.level is None else [f"  highest level: {request.level.name.lower()}"]
    first = f"The {called}{request.subject.partition(':')[0]} {quoted(name)}{where} requests:"
    return [first, *lines, *level, *_change_lines(request.effect)]


def _change_lines(effect: Mapping[str, Any]) -> list[str]:
    """Return what a grant accepts, if its call lists that as `changes`. Users cannot accept what they do not see."""
    changes = effect.get("arguments", {}).get("changes", ())
    if not isinstance(changes, list | tuple) or not changes:
        return []
    hidden = len(changes) - _MAX_CHANGES
    more = [f"  (… {hidden:,} lines omitted …)"] if hidden > 0 else []
    return ["  to accept this:", *(f"{_MARGIN}{one}" for one in changes[:_MAX_CHANGES]), *more]


def requester_of(origin: Origin) -> str:
    """Return the tool or the plugin that requests an effect; empty for an effect of the user."""
    tool = ".".join(filter(None, (origin.skill, origin.tool)))
    if tool:
        return f"the tool {quoted(tool)}"
    return f"the plugin {quoted(origin.plugin)}" if origin.plugin else ""


def _block(label: str, text: str) -> list[str]:
    """Return a labeled text. Several lines get a margin, so that none looks like another part of the question."""
    lines = _cut(text, _MAX_LENGTH).split("\n")
    return [f"{label}: {lines[0]}"] if len(lines) == 1 else [f"{label}:", *block(text)]


def block(text: str) -> list[str]:
    """Return the lines of a text with a margin."""
    lines = _cut(text, _MAX_LENGTH).split("\n")
    hidden = len(lines) - _MAX_LINES
    more = [f"  (… {hidden:,} lines omitted …)"] if hidden > 0 else []
    return [*(f"{_MARGIN}{line}" for line in lines[:_MAX_LINES]), *more]


def _argument_lines(arguments: Mapping[str, Any]) -> list[str]:
    """Return all arguments, as JSON so that none can imitate another. Users cannot approve what they do not see."""
    values = {
        name: json.dumps(value, ensure_ascii=False, default=str)
        for name, value in islice(arguments.items(), _MAX_LINES)
    }
    fits = sum(map(len, values.values())) <= _MAX_LENGTH
    longest = _MAX_LENGTH if fits else _MAX_LENGTH // len(values)
    lines = [
        f"  {name if name.isidentifier() else quoted(name)} = {_cut(value, longest)}" for name, value in values.items()
    ]
    hidden = len(arguments) - len(values)
    return [*lines, f"  (… {hidden:,} arguments omitted …)"] if hidden else lines


def _cut(text: str, length: int) -> str:
    hidden = len(text) - length
    half = length // 2
    return f"{text[:half]} (… {hidden:,} characters omitted …) {text[-half:]}" if hidden > 0 else text
