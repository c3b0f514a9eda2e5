"""Output during a question at a terminal."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

from sideband.command_line import notice
from sideband_cli._terminal._held_output import _MAX_CHARACTERS, held_output
from sideband_cli._terminal._progressbar import Progressbar


class Stream(io.StringIO):
    def __init__(self, *, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


def test_output_appears_after_the_question_in_its_order():
    with redirect_stderr(screen := Stream(terminal=True)), redirect_stdout(screen), held_output() as terminal:
        terminal.write("question? ")
        sys.stdout.write("text\n")
        notice("message")
        terminal.write("y\n")
    assert screen.getvalue() == "question? y\ntext\n▌ message\n"


def test_output_to_a_file_is_not_kept_back():
    with redirect_stderr(Stream(terminal=True)), redirect_stdout(file := Stream(terminal=False)), held_output():
        sys.stdout.write("text")
        assert file.getvalue() == "text"


def test_output_that_is_kept_back_is_bounded():
    with redirect_stderr(screen := Stream(terminal=True)), held_output():
        for _ in range(3):
            sys.stderr.write("x" * (_MAX_CHARACTERS // 2))
        sys.stderr.write("end")
    assert len(screen.getvalue()) <= _MAX_CHARACTERS
    assert screen.getvalue().endswith("end")


def test_message_ends_the_progress_line():
    with redirect_stderr(screen := Stream(terminal=True)):
        Progressbar().line("code.test")
        notice("granted to x")
    assert screen.getvalue() == "\r▌ … code.test\n▌ granted to x\n"
