"""Questions with a default answer, one after the other, at the terminal."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from getpass import getpass

from sideband.command_line import marked
from sideband.rendering import MARK, render

from .._terminal._columns import terminal_width
from .._terminal._tables import paragraph
from .._terminal._words import one_line

_LEAST_WIDTH = 20
_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})


def has_terminal() -> bool:
    """Return whether questions can be asked: input and messages are at a terminal, and a shell does not stop us."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return True  # a terminal without job control


def say(text: str) -> None:
    """Print a message in lines that fit the terminal, each with the mark of sideband's own lines."""
    for line in text.splitlines():
        sys.stderr.write("".join(f"{row}\n" for row in _rows(line)))


def say_table(format_rows: Callable[[int], str]) -> None:
    """Print a table, each row with the mark of sideband's own lines.

    Args:
        format_rows: returns the table with a width.
    """
    rows = format_rows(_width()).split("\n")
    sys.stderr.write("".join(f"{row}\n" for row in marked(rows, sys.stderr)))


def answered(question: str, default: str = "") -> str:
    """Ask for a text. An empty line, and the end of the input, are the default."""
    shown = f" [{render(default)}]" if default else ""
    return _line(f"{question}{shown}:") or default


def confirmed(question: str, *, default: bool = True) -> bool:
    """Ask a question until the answer is yes or no."""
    while True:
        word = _line(f"{question} [{'Y/n' if default else 'y/N'}]").lower()
        if not word:
            return default
        if word in _YES | _NO:
            return word in _YES
        say("answer y or n")


def chosen(question: str, choices: Sequence[str], default: int = 0) -> int:
    """Ask for one of several choices until the answer is its number or its text, and return its position."""
    for number, choice in enumerate(choices, 1):
        say(one_line(f"{number}. {choice}"))  # no choice can look like two
    while True:
        word = answered(question, str(default + 1))
        if word in choices:
            return choices.index(word)
        if word.isdecimal() and 1 <= int(word) <= len(choices):
            return int(word) - 1
        say(f"answer with a number from 1 to {len(choices)}")


def secret(question: str) -> str:
    """Ask for a value that is not shown. The end of the input is an empty one."""
    _discard_input()
    answer = None
    try:
        answer = getpass(marked([f"{question}: "], sys.stderr)[0], stream=sys.stderr)
    except EOFError:
        return ""
    finally:
        if answer is None:  # end of input or interrupted: the cursor is still after the question
            sys.stderr.write("\n")
    return answer


def _line(question: str) -> str:
    _discard_input()
    sys.stderr.write("\n".join(_rows(question)) + " ")
    sys.stderr.flush()
    line = ""
    try:
        line = sys.stdin.readline()
    finally:
        if not line.endswith("\n"):
            sys.stderr.write("\n")
    return line.strip()


def _rows(text: str) -> list[str]:
    return marked(paragraph(text, hanging="   ", width=_width()).splitlines(), sys.stderr)


def _width() -> int:
    return max(terminal_width(sys.stderr) - len(MARK) - 2, _LEAST_WIDTH)


def _discard_input() -> None:
    with suppress(termios.error):  # what was typed before the question appeared must not answer it
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
