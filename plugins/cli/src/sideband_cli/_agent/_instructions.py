"""The question whether agents follow the instruction files of the folder, such as AGENTS.md.

An answer is about exactly the content that was shown: it is stored with the digest of these bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sideband.command_line import notice
from sideband.rendering import render

from .._terminal._questions import ANY_TEXT

if TYPE_CHECKING:
    from sideband import Host
    from sideband_project_instructions import Instructions

    from .._terminal._questions import Ask

_LEGEND = "y = yes, n = no, v = show all of them first, Enter = not now"
_QUESTION = "Use them? [y/n/v]"


async def ask_about_instructions(host: Host, ask: Ask | None) -> None:
    """Ask whether the instruction files of the working directory are used, unless the user has answered that.

    The answer holds until a file changes. Without a terminal, report the files that are ignored.

    Args:
        host: the host of the agent.
        ask: asks at the terminal; ``None`` without one.
    """
    from sideband.settings import trusted_project
    from sideband_project_instructions import Answers, known_instructions, question_lines

    if not any(one.kind == "hook" and one.name == "prompt" and one.state.usable for one in host.plugins.records):
        return  # what reads the files is not in use
    here = Path.cwd()
    found = known_instructions(here, trusted_project(host.home, here), host.home)
    if not found.unanswered:
        return
    answers = Answers(host.home)
    if ask is None:
        _report(found)
        return
    lines = [*question_lines(found, answers), _LEGEND]
    while (word := (await ask(lines, _QUESTION, ANY_TEXT)).reason.strip().lower()) in ("v", "view"):
        lines = [*question_lines(found, answers, whole=True), _LEGEND]
    if word in ("y", "yes", "n", "no"):
        answers.remember(found.unanswered, use=word in ("y", "yes"))


def _report(found: Instructions) -> None:
    first, *others = (file.path for file in found.unanswered)
    more = f" and {len(others)} more" if others else ""
    changed = any(found.decisions[file.path] == "changed" for file in found.unanswered)
    why = "changed since you answered about it" if changed and not others else "you have not accepted it"
    how = "start sideband at a terminal to be asked, or add --trust to trust this folder"
    notice(f"notice: ignored {render(str(first))}{more}: {why}; {how}")
