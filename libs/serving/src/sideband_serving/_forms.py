"""Requests for approval and questions of tools as forms that a client shows to its user."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from sideband.approvals import Approval, ApprovalRequest, ApprovalScope
from sideband.asking import UserAnswer, UserQuestion
from sideband.rendering import quoted, render

_MAX_VALUE = 4_000
_MAX_TEXT = 16_000
_NO = "no"


class Unanswered(Exception):
    """The user of the client gave no answer. The message says why."""


@frozen
class Form:
    """What a client shows to its user.

    Attributes:
        message: the text above the form.
        schema: its fields, as a flat JSON Schema.
    """

    message: str
    schema: Mapping[str, Any] = field(repr=False)


def approval_form(request: ApprovalRequest) -> Form:
    """Return the form for a request for approval: exactly what would happen, and the choices.

    Raises:
        Unanswered: if the request is too long to be shown in full. A user cannot approve what is not shown.
    """
    scopes = ["once", *(["session"] if "session" in request.grants else []), _NO]
    answer = {
        "type": "string",
        "title": "Grant this?" if request.kind == "grant" else "Allow this?",
        "description": "; ".join(_MEANINGS[one] for one in scopes),
        "enum": scopes,
    }
    message = "\n".join(request_lines(request))
    if len(message) > _MAX_TEXT:
        raise Unanswered(f"the request is too long to be shown to the user: {len(message):,} characters")
    return Form(message, {"type": "object", "properties": {"answer": answer}, "required": ["answer"]})


_MEANINGS = {"once": "once: only this", "session": "session: until the client disconnects", _NO: "no: deny it"}


def approval_of(content: Mapping[str, Any], by: str) -> Approval:
    """Return the answer to a request for approval.

    Raises:
        Unanswered: if the form was sent without one of its choices.
    """
    scopes: dict[Any, ApprovalScope] = {"once": "once", "session": "session"}
    answer = content.get("answer")
    if answer == _NO:
        return Approval("deny", by=by)
    if not isinstance(answer, str) or answer not in scopes:
        raise Unanswered("the client sent an answer that was not offered")
    return Approval("allow", scopes[answer], by=by)


def request_lines(
    request: ApprovalRequest, *, scopes: Sequence[ApprovalScope] = ("session",), omitted: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the lines that say exactly what would happen, and what an approval with each of these scopes grants.

    No text of a model, tool or file can imitate another line: all are rendered, and texts of several lines have a
    margin.

    Args:
        request: the request.
        scopes: the scopes that are offered besides ``once``.
        omitted: the names of the arguments that are shown in another way.
    """
    if request.kind == "grant":
        yield from _grant_lines(request, scopes)
        return
    first, *more = request.question.split("\n")
    yield f"{render(request.subject)}: {render(first)}"
    yield from _margin(more)
    if by := _requester(request):
        yield f"  requested by {by}"
    for name, value in request.effect.items():
        if name not in omitted:
            yield f"  {render(name)} = {render(json.dumps(value, ensure_ascii=False, default=str))}"
    if request.level is not None:
        yield f"  level: {request.level.name.lower()}"
    for label, text in (("noted by guards", request.risk), ("preview", request.preview)):
        if text and label not in omitted:
            yield f"  {label}:"
            yield from _margin(text.split("\n"))
    for scope in scopes:
        if granted := request.grants.get(scope):
            yield f"With `{scope}`, later calls are allowed too, within: {render(' '.join(granted))}"


def _grant_lines(request: ApprovalRequest, scopes: Sequence[ApprovalScope]) -> Iterator[str]:
    holder = request.subject.partition(":")[0]
    tool, source = request.effect.get("tool"), request.effect.get("source")
    called = f"tool {quoted(str(tool))} of the " if tool else ""
    where = f" ({render(str(source))})" if source else ""
    yield f"The {called}{holder} {quoted(str(request.effect['name']))}{where} requests these rights:"
    shown = tuple(request.grants.get("always") or request.effect.get("capabilities", ()))
    remarks = request.effect.get("remarks", {})
    for one in shown:
        yield f"  {render(one)}" + (f" ({render(remarks[one])})" if one in remarks else "")
    if request.level is not None:
        yield f"  highest level: {request.level.name.lower()}"
    # A call can list what its grant accepts, such as the definitions of tools.
    changes = request.effect.get("arguments", {}).get("changes", ())
    if isinstance(changes, list | tuple) and changes:
        yield "  to accept this:"
        yield from _margin([str(one) for one in changes])
    for scope in scopes:
        if (granted := tuple(request.grants.get(scope, ()))) and granted != shown:
            yield f"With `{scope}`, these rights are given instead: {render(' '.join(granted))}"


def _margin(lines: Sequence[str]) -> Iterator[str]:
    return (f"  │ {render(line)}" for line in lines)


def _requester(request: ApprovalRequest) -> str:
    origin = request.origin
    tool = ".".join(filter(None, (origin.skill, origin.tool)))
    return f"the tool {render(tool)}" if tool and request.kind == "effect" else ""


def questions_form(questions: Sequence[UserQuestion], tool: str) -> Form:
    """Return the form for the questions of a tool: a choice where options are offered, and always a text."""
    properties: dict[str, Any] = {}
    for number, one in enumerate(questions, 1):
        text = render(one.text, prose=True)[:_MAX_VALUE]
        if one.options:
            properties[f"choice_{number}"] = _choice(one, text)
            properties[f"other_{number}"] = {"type": "string", "title": "Another answer"}
        else:
            properties[f"other_{number}"] = {"type": "string", "title": text}
    message = f"Questions of the tool {render(tool)}. Your answers are data for the tool; they allow nothing."
    return Form(message, {"type": "object", "properties": properties})


def _choice(one: UserQuestion, text: str) -> dict[str, Any]:
    options = [option.text for option in one.options]
    shown = [f"{option.text}: {option.description}" for option in one.options if option.description]
    described = {"description": render("; ".join(shown))[:_MAX_VALUE]} if shown else {}
    if one.multiple:
        return {"type": "array", "title": text, **described, "items": {"type": "string", "enum": options}}
    return {"type": "string", "title": text, **described, "enum": options}


def answers_of(questions: Sequence[UserQuestion], content: Mapping[str, Any]) -> tuple[UserAnswer, ...]:
    """Return the answers to the questions of a tool. Values that were not offered are texts."""
    return tuple(_answer(one, number, content) for number, one in enumerate(questions, 1))


def _answer(question: UserQuestion, number: int, content: Mapping[str, Any]) -> UserAnswer:
    found = content.get(f"choice_{number}")
    values = [str(one) for one in (found if isinstance(found, list) else [found]) if one is not None]
    offered = [option.text for option in question.options]
    chosen = tuple(dict.fromkeys(one for one in values if one in offered))
    typed = content.get(f"other_{number}")
    text = typed if isinstance(typed, str) else ""
    return UserAnswer(text=text) if text else UserAnswer(chosen if question.multiple else chosen[:1])
