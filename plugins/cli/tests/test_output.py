"""Terminal output that can be tested without a process."""

import io

from sideband_cli._terminal._progressbar import Progressbar, format_progress
from sideband_cli._terminal._tables import first_sentence, format_table


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_notice_ends_the_progress_line_first(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    bar = Progressbar()
    bar.line("half")
    bar.notice("said")
    bar.line("done")
    bar.close()
    assert terminal.getvalue().splitlines() == ["", "▌ … half", "▌ said", "", "▌ … done"]


def test_wrapped_table_keeps_all_of_its_last_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = format_table(["a", "b"], [["x", "word " * 30], ["y", ""]], wrapped=True).splitlines()
    assert sum(line.count("word") for line in lines) == 30
    assert max(map(len, lines)) <= 40
    assert lines[-1] == "y"


def test_first_sentence_may_span_lines():
    assert first_sentence("Do one\nthing. Do another.\n\nMore.") == "Do one thing."
    assert first_sentence("Do one thing.\n\nMore.") == "Do one thing."
    assert first_sentence("no stop") == "no stop"


def test_wrapped_table_may_have_an_empty_last_column():
    # `sideband skills install` prints one for skills without requirements
    lines = format_table(["skill", "packages", ""], [["notes", "not needed", ""]], wrapped=True).splitlines()
    assert [line.split() for line in lines[::2]] == [["skill", "packages"], ["notes", "not", "needed"]]


def test_progress_does_not_round_numbers():
    assert format_progress(2_159_620.0, 3e6) == "2,159,620/3,000,000"
    assert format_progress(0.5, None) == "0.5"
    assert format_progress(12_345, None, "bytes") == "12,345 bytes"
