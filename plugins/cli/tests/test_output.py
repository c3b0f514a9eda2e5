"""What people read, where a process is not needed to see it."""

import io

from sideband_cli._terminal._progressbar import Progressbar, how_far
from sideband_cli._terminal._tables import first_sentence, format_table


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_notice_leaves_the_line_of_the_progress_first(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    bar = Progressbar()
    bar.line("half")
    bar.notice("said")
    bar.line("done")
    bar.close()
    assert terminal.getvalue().splitlines() == ["", "… half", "said", "", "… done"]


def test_a_wrapped_table_cuts_nothing_of_its_last_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = format_table(["a", "b"], [["x", "word " * 30], ["y", ""]], wrapped=True).splitlines()
    assert sum(line.count("word") for line in lines) == 30
    assert max(map(len, lines)) <= 40
    assert lines[-1] == "y"


def test_a_first_sentence_may_go_over_lines():
    assert first_sentence("Do one\nthing. Do another.\n\nMore.") == "Do one thing."
    assert first_sentence("Do one thing.\n\nMore.") == "Do one thing."
    assert first_sentence("no stop") == "no stop"


def test_a_wrapped_table_may_have_nothing_in_its_last_column():
    # as `sideband skills install` has for skills that need no packages
    lines = format_table(["skill", "packages", ""], [["notes", "not needed", ""]], wrapped=True).splitlines()
    assert [line.split() for line in lines[::2]] == [["skill", "packages"], ["notes", "not", "needed"]]


def test_progress_shows_numbers_in_full():
    assert how_far(2_159_620.0, 3e6) == "2,159,620/3,000,000"
    assert how_far(0.5, None) == "0.5"
