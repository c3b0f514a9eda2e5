"""Questions to the user: approvals of grants, effects and tool calls."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sideband.command_line import marked, notice
from sideband.rendering import MARK, render

from ._columns import terminal_width
from ._held_output import held_output
from ._progressbar import Progressbar
from ._request_text import capability_lines, is_offered, offer_lines, question_rows, request_lines
from ._style import with_diff_colors

if TYPE_CHECKING:
    from sideband.approvals import Approval, ApprovalRequest, ApprovalScope, Approver

_SCOPES: dict[str, ApprovalScope] = {"y": "once", "s": "session", "a": "always"}
_LEGEND = {"y": "y = once", "s": "s = for this session", "a": "a = always"}
_WORDS = {"y": "y", "yes": "y", "once": "y", "s": "s", "session": "s", "a": "a", "always": "a"}


class TypedAnswer(NamedTuple):
    """The answer to a question.

    Attributes:
        key: one of the keys that the question offers, or ``n``.
        reason: why not, may be empty; or the text, if any text is an answer.
    """

    key: str = "n"
    reason: str = ""

    @property
    def is_yes(self) -> bool:
        """Whether the answer allows something."""
        return self.key not in ("n", "")

    @property
    def shown(self) -> str:
        """The answer as it is shown after the question."""
        return render(" ".join(filter(None, self if self.key else self[1:])))


ANY_TEXT = ""
"""The keys of a question to which any text is an answer, which allows nothing."""

Ask = Callable[[Sequence[str], str, str], Awaitable[TypedAnswer]]
"""Shows the lines of a reason, asks a question below them that offers these keys, and returns the user's answer."""


def prompt(question: str, keys: str) -> str:
    """Return a question with the keys that answer it. None of them is the default, which is no, if there are keys.

    Example:
        >>> prompt("Allow this?", "ya")
        'Allow this? [y/a/N] '
    """
    return f"{question} [{'/'.join([*keys, 'N'])}] " if keys else f"{question} "


def parse_answer(text: str, keys: str) -> TypedAnswer:
    """Return the answer that a text is. Whatever is not a word for one of the keys is a no.

    Example:
        >>> parse_answer("always", "ysa").key, parse_answer("always", "y").key, parse_answer("no, not today", "y")
        ('a', 'n', TypedAnswer(key='n', reason='not today'))
    """
    if keys == ANY_TEXT:
        return TypedAnswer("", text.strip())
    word, _, rest = text.strip().partition(" ")
    key = _WORDS.get(text.strip().lower(), "n")
    if key in keys:
        return TypedAnswer(key)
    return TypedAnswer(reason=render(rest.strip()) if word.rstrip(",:").lower() in ("n", "no") else "")


class Questions:
    """Asks the user for approvals.

    Args:
        ask: asks a question; ``None`` without a terminal.
        yes: whether to answer and print every question with yes instead.
    """

    def __init__(self, ask: Ask | None, *, yes: bool = False) -> None:
        self._ask = ask
        self._yes = yes

    @property
    def has_person(self) -> bool:
        """Whether a person answers the questions."""
        return self._ask is not None and not self._yes

    def approver(self) -> Approver | None:
        """Return a function that answers requests for approval; ``None`` without ``--yes`` and a terminal."""
        if self._yes:
            return self._allowed
        return self._asked if self._ask else None

    @property
    def ask(self) -> Ask | None:
        """The function that asks a question; ``None`` without a terminal."""
        return self._ask

    async def _allowed(self, request: ApprovalRequest) -> Approval:
        from sideband.approvals import Approval

        is_grant, of_plugin = request.kind == "grant", request.subject.startswith("plugin:")
        if is_grant:
            kind = "the plugin " if of_plugin else ""
            capabilities = " ".join(map(str.strip, capability_lines(request)))
            notice(f"granted to {kind}`{request.effect['name']}`: {capabilities}")
        else:
            first, *rest = request_lines(request)
            notice("\n".join(map(render, [f"allowed by --yes: {first}", *rest])))
        # The grant of a skill ends with its version. That of a plugin would hold for everything it does from now on.
        wanted: ApprovalScope = "session" if of_plugin and "session" in request.grants else "always"
        scope = wanted if is_grant and wanted in request.grants else "once"
        return Approval("allow", scope, by=f"{user_name()} (--yes)")

    async def _asked(self, request: ApprovalRequest) -> Approval:
        from sideband.approvals import Approval

        by = f"{user_name()} (terminal)"
        offered = [scope for scope in request.grants if is_offered(request, scope)]
        keys = "".join(key for key, scope in _SCOPES.items() if scope == "once" or scope in offered)
        legend = [f"{', '.join(_LEGEND[key] for key in keys)}, n or n REASON = no"] if offered else []
        reason = [*request_lines(request), *offer_lines(request, offered), *legend]
        question = "Grant this?" if request.kind == "grant" else "Allow this?"
        answer = TypedAnswer() if self._ask is None else await self._ask(reason, question, keys)
        if answer.is_yes:
            return Approval("allow", _SCOPES[answer.key], by=by)
        return Approval("deny", reason=answer.reason, by=by)


def user_name() -> str:
    """Return the name of the user who runs this program, for records."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def ask_at_terminal(bar: Progressbar) -> Ask | None:
    """Return a function that asks one question at a time at the terminal; ``None`` without a terminal.

    Args:
        bar: the progress bar, whose line is ended before a question.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty() and _in_foreground()):
        return None
    from anyio import Lock

    turn = Lock()

    async def ask(reason: Sequence[str], question: str, keys: str) -> TypedAnswer:
        from anyio import wait_readable
        from anyio.lowlevel import checkpoint

        async with turn:
            await checkpoint()  # an answer just now may have ended this question
            bar.close()
            with held_output() as terminal:
                width = terminal_width(terminal) - len(MARK) - 2
                rows = [with_diff_colors(row, terminal) for row in question_rows(reason, width)]
                lines = marked([*rows, prompt(question, keys)], terminal)
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
                return parse_answer(answer, keys)

    return ask


def _in_foreground() -> bool:
    """Return whether the process may read from its terminal. Otherwise, a shell stops it when it tries to."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return True  # a terminal without job control
