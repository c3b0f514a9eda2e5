"""Lines of a chat that run a program: ``!git status``, and ``!!git status`` to hide it from the model."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sideband import UsageError

if TYPE_CHECKING:
    from sideband_agent import Agent, ProgramOutput

_NEED_A_SHELL = frozenset("|&;<>()$`*?[]{}~\n")
_NEED_A_SHELL_IN_QUOTES = frozenset("$`")


async def run_line(agent: Agent, line: str) -> ProgramOutput:
    """Run the program of a line that begins with ``!`` or ``!!``.

    Raises:
        UsageError: if the line needs a shell, or there is no program.
    """
    excluded = line.startswith("!!")
    arguments = split_command(line.removeprefix("!!" if excluded else "!"))
    if not arguments:
        raise UsageError("the command is empty", hint="write !PROGRAM ARGUMENTS, such as !git status")
    return await agent.run_program(arguments, exclude_from_context=excluded)


def split_command(text: str) -> list[str]:
    """Split a command into arguments as a shell does, with quotes and backslashes.

    Raises:
        UsageError: if a quote is not closed, or a character has a meaning that only a shell gives it.
    """
    _check_characters(text)
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command is incomplete: {str(error).lower()}", hint="close the quote") from None


def _check_characters(text: str) -> None:
    quote, escaped = "", False
    for character in text:
        if escaped and not (quote and character in _NEED_A_SHELL_IN_QUOTES):  # which `shlex` does not unescape there
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote and character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        elif character in ({"": _NEED_A_SHELL, '"': _NEED_A_SHELL_IN_QUOTES}.get(quote, ())):
            raise UsageError(
                f"{character!r} needs a shell, and the command runs without one",
                hint=f"quote it, or run a shell: !sh -c {shlex.quote(text.strip())}",
            )
