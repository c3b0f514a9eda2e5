"""The status line of a running tool."""

from types import SimpleNamespace

from sideband.hooks import ToolExecutionEnd, ToolExecutionUpdate, ToolProgress
from sideband_cli._agent._activity import Activity


def shown(*events):
    """Return the last status line of each event."""
    lines = []
    sink = SimpleNamespace(line=lambda _: None, progress=lines.append)
    activity = Activity(sink)
    for event in events:
        activity.take(event)
    return lines


def output(text, call="c1"):
    return ToolProgress(call, "build", "stdout", 0, "shell.run", text=text)


def test_status_line_has_the_last_line_of_output_after_the_amount():
    lines = shown(
        output("compiling one\ncompiling two\n\n"),
        ToolExecutionUpdate("c1", "build", 3, 10, None, "files"),
        output("linking"),
    )
    assert lines == ["build compiling two", "build 3/10 files compiling two", "build 3/10 files linking"]


def test_gaps_ends_and_blank_output_leave_the_status_line_as_it_is():
    lines = shown(
        output("one"),
        output("\n \n"),
        ToolProgress("c1", "build", "stdout", 3, gap=5),
        ToolProgress("c1", "build", "stdout", 8, closed=True),
    )
    assert lines == ["build one"]


def test_status_of_an_ended_call_is_forgotten():
    lines = shown(
        ToolExecutionUpdate("c1", "build", 3, 10),
        ToolExecutionEnd("c1", "build", "ok"),
        output("again"),
    )
    assert lines[-1] == "build again"
