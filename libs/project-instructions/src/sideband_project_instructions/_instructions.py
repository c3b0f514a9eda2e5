"""The instruction files of a folder by what happens to them: used, asked about, or left out."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from ._answers import Answers, Decision
from ._files import InstructionFile, find_instructions


@frozen
class Instructions:
    """The instruction files of a folder.

    Attributes:
        files: all that were found, in their order.
        decisions: whether each is used, by its path.
        used: those that agents follow.
        unanswered: those that the user has not answered about with their content.
        left_out: those that cannot be used, and those that a used one names and that are not accepted.
    """

    files: tuple[InstructionFile, ...]
    decisions: dict[Path, Decision]
    used: tuple[InstructionFile, ...]
    unanswered: tuple[InstructionFile, ...]
    left_out: tuple[InstructionFile, ...]


def known_instructions(folder: Path | None, project: Path | None, home: Path) -> Instructions:
    """Return the instruction files of a folder. What only an unused file names is neither used nor asked about.

    Args:
        folder: the working directory.
        project: the folder of the trusted project, if there is one.
        home: the host's state folder, with the answers of the user.
    """
    files = find_instructions(folder, project)
    decisions = Answers(home).decisions(files)
    used: dict[Path, InstructionFile] = {}
    unanswered: dict[Path, InstructionFile] = {}
    left_out = []
    for file in files:
        importer = file.root / file.importer if file.importer else None
        decision = decisions[file.path]
        if file.problem:
            if importer in used or importer in unanswered or file.in_project or importer is None:
                left_out.append(file)
        elif decision == "used" and (importer is None or importer in used or file.counts_alone):
            used[file.path] = file
        elif decision in ("new", "changed") and file.text and (importer is None or importer in {*used, *unanswered}):
            unanswered[file.path] = file
        if decision != "used" and not file.problem and importer in used:
            left_out.append(file)
    return Instructions(tuple(files), decisions, tuple(used.values()), tuple(unanswered.values()), tuple(left_out))
