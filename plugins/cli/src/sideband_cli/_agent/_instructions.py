"""The question whether agents follow the instruction files of the folder, such as AGENTS.md.

An answer is about exactly the content that was shown: it is stored with the digest of these bytes.
"""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from sideband.command_line import notice
from sideband.rendering import render

from .._terminal._questions import ANY_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sideband import Host
    from sideband_project_instructions import Answers, InstructionFile, Instructions

    from .._terminal._questions import Ask

_MAX_LINES = 12
_MAX_CHANGES = 40
_MAX_PROBLEMS = 10
_MAX_LENGTH = 1_200
_MAX_COMPARED = 4_000
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
    from sideband_project_instructions import Answers, known_instructions

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
    lines = question_lines(found, answers)
    while (word := (await ask(lines, _QUESTION, ANY_TEXT)).reason.strip().lower()) in ("v", "view"):
        lines = question_lines(found, answers, whole=True)
    if word in ("y", "yes", "n", "no"):
        answers.remember(found.unanswered, use=word in ("y", "yes"))


def question_lines(found: Instructions, answers: Answers, *, whole: bool = False) -> list[str]:
    """Return the lines that show the files that the user has not answered about.

    Args:
        found: the instruction files.
        answers: the earlier answers.
        whole: whether to show all of each file.
    """
    root = found.unanswered[0].root
    lines = [f"Instructions for agents in {root}. Agents follow them as if you had written them."]
    for file in found.unanswered:
        previous = answers.previous_text(file) if found.decisions[file.path] == "changed" else None
        lines += [f"  {_title(file, changed=found.decisions[file.path] == 'changed')}"]
        lines += _shown(file.text) if whole else _beginning(file, previous)
    problems = [f"  {file.name} is left out: {file.problem}" for file in found.left_out if file.problem]
    lines += problems[:_MAX_PROBLEMS]
    lines += [f"  {len(problems) - _MAX_PROBLEMS:,} more are left out"] * (len(problems) > _MAX_PROBLEMS)
    # With many files, the first lines are not on the screen any more.
    lines += [f"These are {len(found.unanswered)} files in {root}."] * (len(found.unanswered) > 1)
    return [*lines, _LEGEND]


def _title(file: InstructionFile, *, changed: bool) -> str:
    size = len(file.content)
    remarks = [f"{size:,} byte{'s' * (size != 1)}"]
    remarks += ["changed since your last answer"] * changed
    remarks += [f"named by {file.importer}"] * bool(file.importer)
    invisible = file.invisible
    remarks += [f"without {invisible:,} invisible character{'s' * (invisible != 1)}"] * bool(invisible)
    return f"{file.name} ({', '.join(remarks)})"


def _beginning(file: InstructionFile, previous: str | None) -> list[str]:
    """Return the difference to the text of the last answer, or the beginning of a file."""
    if previous is not None and (changes := list(_difference(previous, file.text))):
        return _cut(changes, _MAX_CHANGES, len(changes))
    lines = file.text.split("\n")
    return _cut(lines, _MAX_LINES, len(lines))


def _difference(before: str, after: str) -> Iterator[str]:
    old, new = before.split("\n"), after.split("\n")
    if max(len(old), len(new)) > _MAX_COMPARED:
        return  # comparing takes too long
    _, _, *changes = [*unified_diff(old, new, lineterm="", n=2)] or ["", ""]
    yield from changes


def _cut(lines: Sequence[str], most: int, total: int) -> list[str]:
    text = "\n".join(lines[:most])
    shown = _shown(text[:_MAX_LENGTH])
    hidden = total - len(shown)
    cut = len(text) > _MAX_LENGTH
    return [*shown, *([f"  (… {hidden:,} more lines …)" if hidden else "  (… more …)"] if hidden or cut else [])]


def _shown(text: str) -> list[str]:
    return [f"  │ {line}" for line in text.split("\n")]


def _report(found: Instructions) -> None:
    first, *others = (file.path for file in found.unanswered)
    more = f" and {len(others)} more" if others else ""
    changed = any(found.decisions[file.path] == "changed" for file in found.unanswered)
    why = "changed since you answered about it" if changed and not others else "you have not accepted it"
    how = "start sideband at a terminal to be asked, or add --trust to trust this folder"
    notice(f"notice: ignored {render(str(first))}{more}: {why}; {how}")
