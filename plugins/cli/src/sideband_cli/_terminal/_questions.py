"""Questions to the user: approvals of grants, effects and tool calls."""

from __future__ import annotations

import json
import sys
import termios
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from sideband.rendering import MARK, quoted, render

from ._columns import broken, terminal_width
from ._held_output import held_output
from ._printing import marked, notice
from ._progressbar import Progressbar

if TYPE_CHECKING:
    from sideband.approvals import Approval, ApprovalRequest, ApprovalScope, Approver
    from sideband.ops import Origin

Ask = Callable[[Sequence[str], str], Awaitable[bool]]
"""Shows the lines of a reason, asks a question below them, and returns whether the user answered yes."""

_MAX_LENGTH = 4_000  # of all arguments, and of the preview
_MAX_LINES = 40


class Questions:
    """Asks the user for approvals.

    Args:
        ask: asks a question; ``None`` without a terminal.
        yes: whether to answer and print every question with yes instead.
    """

    def __init__(self, ask: Ask | None, *, yes: bool = False) -> None:
        self._ask = ask
        self._yes = yes

    def approver(self) -> Approver | None:
        """Return a function that answers requests for approval; ``None`` without ``--yes`` and a terminal."""
        return self._answered if self._yes or self._ask else None

    async def _answered(self, request: ApprovalRequest) -> Approval:
        from sideband.approvals import Approval

        is_grant = request.kind == "grant"
        yes = await (self._grant(request) if is_grant else self._approve(request))
        by = f"{user_name()} ({'--yes' if self._yes else 'terminal'})"
        scope: ApprovalScope = "always" if yes and is_grant and "always" in request.grants else "once"
        return Approval("allow" if yes else "deny", scope, by=by)

    async def _grant(self, request: ApprovalRequest) -> bool:
        if self._yes:
            notice(f"granted to `{request.effect['name']}`: {' '.join(map(str.strip, _capabilities(request)))}")
            return True
        of_plugin = request.subject.startswith("plugin:")
        whom = "the plugin and all its callers" if of_plugin else "this version of the skill"
        return await self._answer(request_lines(request), f"Grant this and remember it for {whom}? [y/N] ")

    async def _approve(self, request: ApprovalRequest) -> bool:
        reason = request_lines(request)
        if self._yes:
            notice("\n".join(map(render, [f"allowed by --yes: {reason[0]}", *reason[1:]])))
            return True
        return await self._answer(reason, "Allow this? [y/N] ")

    async def _answer(self, reason: Sequence[str], question: str) -> bool:
        return self._ask is not None and await self._ask(reason, question)


def question_rows(reason: Sequence[str], width: int) -> list[str]:
    """Return the rows that show a reason. A line feed in a line is escaped, and all rows but its first are indented."""
    rows = []
    for line in reason:
        text = render(line)
        indent = text[: len(text) - len(text.lstrip())]
        first, *_ = broken(text, width)
        rest = text[len(first) :].removeprefix(" ")
        rows += [first, *(f"{indent}  {row}" for row in broken(rest, width - len(indent) - 2) if rest)]
    return rows


def request_lines(request: ApprovalRequest) -> list[str]:
    """Return the lines that say exactly what is to be approved."""
    if request.kind == "grant":
        return _grant_lines(request)
    requester = _requester(request.origin) if request.kind == "effect" else ""
    requested_by = [f"  requested by {requester}"] if requester else []
    preview = _block("preview", request.preview) if request.preview else []
    return [*_block(request.subject, request.question), *requested_by, *_argument_lines(request.effect), *preview]


def _grant_lines(request: ApprovalRequest) -> list[str]:
    name, lines = str(request.effect["name"]), _capabilities(request)
    if len(lines) > _MAX_LINES:  # the first ones may be above the screen
        lines.append(f"  ({len(lines):,} capabilities in total, requested by {quoted(name)})")
    tool, source = request.effect.get("tool"), request.effect.get("source")  # only the tool that is called
    called = f"tool {quoted(str(tool))} of the " if tool else ""
    where = f" ({source})" if source else ""
    level = [] if request.level is None else [f"  highest level: {request.level.name.lower()}"]
    return [f"The {called}{request.subject.partition(':')[0]} {quoted(name)}{where} requests:", *lines, *level]


def _capabilities(request: ApprovalRequest) -> list[str]:
    """Return the capabilities that a grant consists of, with the remarks of their families."""
    remarks = request.effect.get("remarks", {})
    texts = request.grants.get("always") or request.effect.get("capabilities", ())
    return [f"  {one} ({remarks[one]})" if one in remarks else f"  {one}" for one in texts]


def user_name() -> str:
    """Return the name of the user who runs this program, for records."""
    import os
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _requester(origin: Origin) -> str:
    """Return the tool or the plugin that requests an effect; empty for an effect of the user."""
    tool = ".".join(filter(None, (origin.skill, origin.tool)))
    if tool:
        return f"the tool {quoted(tool)}"
    return f"the plugin {quoted(origin.plugin)}" if origin.plugin else ""


def _block(label: str, text: str) -> list[str]:
    """Return a labeled text. Several lines get a margin, so that none looks like another part of the question."""
    lines = _cut(text, _MAX_LENGTH).split("\n")
    if len(lines) == 1:
        return [f"{label}: {lines[0]}"]
    hidden = len(lines) - _MAX_LINES
    more = [f"  (… {hidden:,} lines omitted …)"] if hidden > 0 else []
    return [f"{label}:", *(f"  │ {line}" for line in lines[:_MAX_LINES]), *more]


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


def ask_at_terminal(bar: Progressbar) -> Ask | None:
    """Return a function that asks one question at a time at the terminal; ``None`` without a terminal.

    Args:
        bar: the progress bar, whose line is ended before a question.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    from anyio import Lock

    turn = Lock()

    async def ask(reason: Sequence[str], question: str) -> bool:
        from anyio import wait_readable

        async with turn:
            bar.close()
            with held_output() as terminal:
                width = terminal_width(terminal) - len(MARK) - 2
                lines = marked([*question_rows(reason, width), question], terminal)
                with suppress(termios.error):  # text typed before the question appeared must not answer it
                    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
                # Not input(), which writes the question to standard output, and so into a redirected result.
                terminal.write("\n".join(lines))
                terminal.flush()
                answer = ""
                try:
                    await wait_readable(sys.stdin)  # a thread could not be cancelled
                    answer = sys.stdin.readline()
                finally:
                    if not answer.endswith("\n"):  # end of input or cancelled: the cursor is still after the question
                        terminal.write("\n")
                return answer.strip().lower() in ("y", "yes")

    return ask
