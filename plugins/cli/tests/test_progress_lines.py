"""The progress of tools as newline-delimited JSON, for programs that show it."""

import io
import json

import pytest
from sideband import UsageError
from sideband.hooks import ToolProgress, TurnStart
from sideband_cli._agent._progress_lines import ProgressLines, progress_to


def lines_of(*events):
    file = io.StringIO()
    lines = ProgressLines(file, clock=lambda: 1.5)
    for event in events:
        lines.take(event)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_each_event_is_one_line_with_the_documented_keys():
    (line,) = lines_of(ToolProgress("c1", "build", "stderr", 0, text="a\nb"))
    assert line == {
        "type": "tool_progress",
        "tool_call_id": "c1",
        "text": "a\nb",
        "stream": "stderr",
        "closed": False,
        "ts": 1.5,
    }


def test_end_of_a_stream_is_closed_and_has_no_text():
    (line,) = lines_of(ToolProgress("c1", "build", "stdout", 9, closed=True))
    assert (line["closed"], line["text"]) == (True, "")


def test_gap_has_its_size():
    (line,) = lines_of(ToolProgress("c1", "build", "stdout", 9, gap=2_000))
    assert (line["gap"], line["text"], line["closed"]) == (2_000, "", False)


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ({"current": 3, "total": 10, "unit": "files", "message": "notes"}, "3/10 files notes"),
        ({"current": 2.5}, "2.5"),
        ({"message": "linking"}, "linking"),
    ],
)
def test_report_has_a_text_for_display(report, text):
    (line,) = lines_of(ToolProgress("c1", "build", "progress", 0, **report))
    assert (line["stream"], line["text"]) == ("progress", text)


def test_other_events_are_not_written():
    assert lines_of(TurnStart("r1", 0)) == []


def test_lines_replace_the_content_of_the_file_and_are_flushed(tmp_path):
    path = tmp_path / "progress.ndjson"
    path.write_text("old\n")
    with progress_to(str(path)) as lines:
        lines.take(ToolProgress("c1", "build", "stdout", 0, text="new"))
        assert json.loads(path.read_text())["text"] == "new"


def test_file_that_cannot_be_written_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot write"), progress_to(str(tmp_path / "none" / "x")):
        pass
