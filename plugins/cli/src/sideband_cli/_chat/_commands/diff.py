"""``/diff``: show what has changed in the files of the folder since the last commit."""

from __future__ import annotations

from sideband import UsageError

from ..._terminal._highlighting import diff_style
from .._chat_command import ChatControl, RegisteredChatCommand
from .._user_program import split_command

__all__ = ["DIFF"]

# Neither settings of the repository nor of the user may run other programs.
_DIFF = ("git", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD", "--")
_NEW = ("git", "ls-files", "--others", "--exclude-standard", "--")
_MAX_LINES = 2_000


async def _run(chat: ChatControl, paths: str) -> str | None:
    words = split_command(paths)
    found = await chat.agent.run_program([*_DIFF, *words], exclude_from_context=True)
    chat.frontend.progress("")
    if found.exit_code:
        raise UsageError("`git diff` failed, which needs a repository with a commit", hint=found.text.strip()[:400])
    new = await chat.agent.run_program([*_NEW, *words], exclude_from_context=True)
    chat.frontend.progress("")
    lines = found.text.splitlines()
    chat.frontend.show([(diff_style(line), line)] for line in lines[:_MAX_LINES])
    if len(lines) > _MAX_LINES:
        chat.frontend.line(f"(… {len(lines) - _MAX_LINES:,} lines omitted …)")
    for path in new.text.splitlines():
        chat.frontend.line(f"new file: {path}")
    return None if lines or new.text.strip() else "no changes"


DIFF = RegisteredChatCommand("diff", "show what has changed since the last commit", _run, "[PATH …]")
