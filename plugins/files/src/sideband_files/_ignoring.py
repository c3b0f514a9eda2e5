"""Which files the `.gitignore` files of a folder exclude."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attrs import frozen
from sideband_confined_files import FileError, OpenFolder

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_NAME = ".gitignore"
_LARGEST = 64 * 1024
_MOST_RULES = 2_000


@frozen
class Ignoring:
    """The rules that apply in a folder: those of its own file, and of the folders above it.

    Attributes:
        rules: the rules, outermost first, each with the path of its folder relative to the searched one.
    """

    rules: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def entering(self, folder: OpenFolder, path: str) -> Ignoring:
        """Return the rules that apply in a folder below this one."""
        own = _rules_of(folder)
        return self if own is None else Ignoring((*self.rules, (path, own)))

    def excludes(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path is excluded. The innermost file that mentions it decides."""
        for base, rules in reversed(self.rules):
            inner = path.removeprefix(base).lstrip("/")
            included = rules.check_file(f"{inner}/" if is_folder else inner).include
            if included is not None:
                return included
        return False


def _rules_of(folder: OpenFolder) -> GitIgnoreSpec | None:
    try:
        with folder.file(_NAME) as (descriptor, _):
            lines = os.read(descriptor, _LARGEST).decode(errors="replace").splitlines()[:_MOST_RULES]
    except FileError:
        return None
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415  as below
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  after the first `.gitignore`: the import takes 20 ms

    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")  # matches in linear time, whatever the rules
    except (ValueError, re2.error):  # invalid rules, or more than fit into its memory
        return None
