"""The user's answers whether agents follow instruction files, each for one content of a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from attrs import frozen
from sideband.errors import StateUnwritable
from sideband.state import FileLock, make_home, write_state_file

from ._files import InstructionFile

Decision = Literal["used", "refused", "changed", "new"]
"""Whether an instruction file is used: ``changed`` and ``new`` files are not, until the user has answered."""

_FOLDER = "instructions"
_FILE = "answers.json"


@frozen
class Answers:
    """The answers, and the contents that they are about, in ``instructions/`` of the host's state folder.

    An answer holds for exactly the bytes that were shown. A damaged file counts as one without answers.

    Attributes:
        home: the host's state folder.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> file, answers = InstructionFile(folder, "AGENTS.md", b"Be kind."), Answers(folder / "home")
        >>> answers.remember([file], use=True)
        >>> answers.decision(file), answers.decision(InstructionFile(folder, "AGENTS.md", b"Be rude."))
        ('used', 'changed')
    """

    home: Path

    def decision(self, file: InstructionFile) -> Decision:
        """Return whether a file is used with its content."""
        return self.decisions([file])[file.path]

    def decisions(self, files: Iterable[InstructionFile]) -> dict[Path, Decision]:
        """Return whether each file is used with its content, by its path. One with a problem is never used."""
        stored = self._stored()
        return {file.path: _decision(file, stored.get(str(file.path))) for file in files}

    def remember(self, files: Iterable[InstructionFile], *, use: bool) -> None:
        """Store the user's answer about files with the contents that the user saw.

        Raises:
            StateUnwritable: if it cannot be stored.
        """
        with self._changing() as stored:
            for file in files:
                content = file.content.decode("utf-8", errors="replace")
                write_state_file(self.home / _FOLDER / file.digest, content)
                stored[str(file.path)] = {"digest": file.digest, "use": use}

    def forget(self, path: Path) -> bool:
        """Forget the answer about a file, so that the user is asked again. Return whether there was one.

        Raises:
            StateUnwritable: if the change cannot be stored.
        """
        with self._changing() as stored:
            return stored.pop(str(path), None) is not None

    def given(self) -> dict[Path, bool]:
        """Return the answers: whether each file is used as long as it has the content that was shown."""
        return {Path(path): entry["use"] for path, entry in sorted(self._stored().items())}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Write what the block changes, while no other process does."""
        folder = self.home / _FOLDER
        make_home(self.home)
        make_home(folder)
        with FileLock(folder / "lock") as lock:
            try:
                lock.acquire(math.inf)
            except OSError as error:
                raise StateUnwritable(folder, error) from error
            stored = self._stored()
            yield stored
            write_state_file(folder / _FILE, f"{json.dumps(stored, indent=1, sort_keys=True)}\n")
            _remove_unused(folder, stored)

    def previous_text(self, file: InstructionFile) -> str | None:
        """Return the text of a file that the user answered about last, or ``None`` if it is unknown."""
        entry = self._stored().get(str(file.path))
        if entry is None:
            return None
        try:
            content = (self.home / _FOLDER / entry["digest"]).read_bytes()
        except OSError:
            return None
        return InstructionFile(file.root, file.name, content).text

    def _stored(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads((self.home / _FOLDER / _FILE).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return {path: one for path, one in found.items() if _is_answer(one)} if isinstance(found, dict) else {}


def _is_answer(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("use"), bool):
        return False
    digest = entry.get("digest")
    return isinstance(digest, str) and len(digest) == 64 and set(digest) <= set("0123456789abcdef")


def _decision(file: InstructionFile, entry: Mapping[str, Any] | None) -> Decision:
    if file.problem:
        return "refused"
    if file.in_project:
        return "used"
    if entry is None:
        return "new"
    if entry["digest"] != file.digest:
        return "changed"
    return "used" if entry["use"] else "refused"


def _remove_unused(folder: Path, stored: Mapping[str, Mapping[str, Any]]) -> None:
    """Remove the contents that no answer is about any more."""
    known = {one["digest"] for one in stored.values()}
    for path in folder.iterdir():
        if len(path.name) == 64 and path.name not in known:
            path.unlink(missing_ok=True)
