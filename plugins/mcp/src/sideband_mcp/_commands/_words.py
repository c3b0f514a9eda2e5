"""The words of a command in the command line of another one."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any


def with_words_after_dashes(base: type[ArgumentParser]) -> type[ArgumentParser]:
    """Return a parser that takes all words after ``--`` as ``command``, if that has a default.

    The one of the standard library does not accept further words after an option that follows a positional argument.
    """

    class CommandParser(base):  # type: ignore[valid-type, misc]
        def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
            words: list[str] = list(args or ())
            if self.get_default("command") is None or "--" not in words:
                return super().parse_known_args(words, namespace)
            end = words.index("--")
            found, unknown = super().parse_known_args(words[:end], namespace)
            found.command = words[end + 1 :]
            return found, unknown

    return CommandParser
