"""What a user sees of the instruction files that wait for an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from ._answers import Answers
from ._files import InstructionFile
from ._instructions import Instructions

_MAX_LINES = 12
_MAX_CHANGES = 40
_MAX_PROBLEMS = 10
_MAX_LENGTH = 1_200
_MAX_COMPARED = 4_000


def question_lines(found: Instructions, answers: Answers, *, whole: bool = False) -> list[str]:
    """Return the lines that show the files that the user has not answered about.

    Who shows them renders each line, since names and texts of files are in them.

    Args:
        found: the instruction files, at least one of them unanswered.
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
    return lines


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
