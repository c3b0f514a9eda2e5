"""Completion in a chat: commands after a slash, and files after an ``@``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from sideband.rendering import render

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

_MAX_SHOWN = 50
_MAX_SEARCHED = 5_000
_LEFT_OUT = frozenset({"__pycache__", "node_modules"})


class ChatCompleter(Completer):
    """Completes what the user types.

    Args:
        commands: returns the names of the chat commands, with a summary of each.
        folder: returns the folder to which paths are relative.
    """

    def __init__(self, commands: Callable[[], Iterable[tuple[str, str]]], folder: Callable[[], Path]) -> None:
        self._commands = commands
        self._folder = folder

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        """Yield what the word before the cursor may be."""
        text = document.text_before_cursor
        if text.startswith("/") and " " not in text and "\n" not in text:
            for name, summary in self._commands():
                if name.startswith(text[1:]):
                    yield Completion(f"/{name}", -len(text), display_meta=summary)
        elif (start := mention_start(text)) is not None:
            for path in _paths(text[start:], self._folder()):
                shown = path if " " not in path else f'"{path}"'
                yield Completion(shown, start - len(text), display=render(path))


def completes_while_typing(text: str) -> bool:
    """Return whether a menu is shown without Tab: for the name of a command or a file."""
    return (text.startswith("/") and " " not in text) or mention_start(text) is not None


def mention_start(text: str) -> int | None:
    """Return where the path begins that is being typed after an ``@`` at the end of a text."""
    word = max(text.rfind(" "), text.rfind("\n")) + 1
    return word + 1 if text[word : word + 1] == "@" else None


def _paths(typed: str, folder: Path) -> Sequence[str]:
    """Return the entries of a folder that begin so, otherwise files below it whose names contain it."""
    typed = typed.removeprefix('"')
    parent, slash, name = typed.rpartition("/")
    found = _in_folder(f"{parent}{slash}", name, folder)
    return found or ([] if slash or not name else _below(name.lower(), folder))


def _in_folder(parent: str, name: str, folder: Path) -> list[str]:
    try:
        with os.scandir(folder / Path(parent).expanduser()) as entries:
            found = [
                f"{parent}{one.name}" + "/" * one.is_dir()
                for one in entries
                if one.name.startswith(name) and (name or not one.name.startswith("."))
            ]
    except (OSError, RuntimeError, ValueError):
        return []
    return sorted(found)[:_MAX_SHOWN]


def _below(name: str, folder: Path) -> list[str]:
    found: list[str] = []
    searched = 0
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _LEFT_OUT)
        for one in sorted(files):
            searched += 1
            if name in one.lower():
                found.append(os.path.relpath(Path(root, one), folder))
        if len(found) >= _MAX_SHOWN or searched >= _MAX_SEARCHED:
            break
    return found[:_MAX_SHOWN]
