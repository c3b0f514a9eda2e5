"""Requests for approval as the client shows them, and the answers of its user."""

from __future__ import annotations

from acp.schema import (
    AllowedOutcome,
    ContentToolCallContent,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
    ToolKind,
)
from attrs import frozen
from sideband.approvals import Approval, ApprovalRequest, ApprovalScope
from sideband.rendering import render
from sideband_serving import Unanswered, request_lines

from ._changes import Changes
from ._text import block, fenced, span
from ._tool_calls import Content

_LONGEST = 200_000
_NO = "no"
_OPTIONS: dict[ApprovalScope, PermissionOption] = {
    "once": PermissionOption(option_id="once", name="Allow once", kind="allow_once"),
    "session": PermissionOption(option_id="session", name="Allow for this session", kind="allow_always"),
    "always": PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
}
_KINDS: dict[str, ToolKind] = {"files.write": "edit", "shell.run": "execute"}
_REJECT = PermissionOption(option_id=_NO, name="Reject", kind="reject_once")


@frozen
class Permission:
    """A question of the host, as the client shows it.

    Attributes:
        call: the tool call that it belongs to, with exactly what would happen.
        options: the answers.
    """

    call: ToolCallUpdate
    options: list[PermissionOption]


def permission_of(request: ApprovalRequest, call: str, changes: Changes) -> Permission:
    """Return the question for a request for approval.

    Args:
        request: the request.
        call: the id of the tool call that causes it.
        changes: finds out what changes in a file.

    Raises:
        Unanswered: if the request is too long to be shown in full. A user cannot approve what is not shown.
    """
    scopes: list[ApprovalScope] = [one for one in ("session", "always") if one in request.grants]
    difference = changes.of_effect(request.subject, request.effect) if request.kind == "effect" else []
    # The difference shows both exactly, and the file as it is now. Clients show it with characters that hide text.
    is_shown = bool(difference) and all(_is_plain(one.new_text) for one in difference)
    lines = request_lines(request, scopes=scopes, omitted=("content", "preview") if is_shown else ())
    text = "\n".join(lines)
    if len(text) > _LONGEST:
        raise Unanswered(f"the request is too long to be shown to the user: {len(text):,} characters")
    content: Content = [ContentToolCallContent(type="content", content=block(fenced(text))), *difference]
    title = "Grant these rights?" if request.kind == "grant" else f"Allow {span(request.subject)}?"
    options = [_OPTIONS[one] for one in ("once", *scopes)]
    # Some clients accept what reads without asking, and guess from the title without a kind. No request only reads.
    kind = _KINDS.get(request.subject, "other") if request.kind == "effect" else "other"
    return Permission(
        ToolCallUpdate(tool_call_id=call, title=title, kind=kind, status="pending", content=content),
        [*options, _REJECT],
    )


def _is_plain(text: str) -> bool:
    lines = text.replace("\r\n", "\n")
    return render(lines, prose=True) == lines


def approval_of(response: RequestPermissionResponse, permission: Permission, by: str) -> Approval:
    """Return the answer of the user. What was not offered allows nothing."""
    outcome = response.outcome
    if not isinstance(outcome, AllowedOutcome):
        return Approval("deny", reason="the question was cancelled", by=by)
    offered = {one.option_id for one in permission.options}
    scope = next((one for one in _OPTIONS if one == outcome.option_id), None)
    if scope is None or scope not in offered:
        reason = "" if outcome.option_id == _NO else "the client sent an answer that was not offered"
        return Approval("deny", reason=reason, by=by)
    return Approval("allow", scope, by=by)
