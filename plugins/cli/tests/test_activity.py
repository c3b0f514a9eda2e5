"""The output of a run for a person: replies of routes, and failed tool calls."""

from types import SimpleNamespace

import pytest
from sideband.hooks import MessageEnd, MessageStart, MessageUpdate, RouteEnd, ToolExecutionEnd, ToolExecutionStart
from sideband_cli._agent._activity import Activity

REPLY = (
    MessageStart({"role": "assistant"}),
    MessageUpdate({"type": "text", "text": "pong"}),
    MessageEnd({"role": "assistant", "content": [{"type": "text", "text": "pong"}]}),
    RouteEnd("r1", "ping", "greeter", "matched `^ping$`\n\x1b[2J", handled=True, ms=3000.0),
)


@pytest.mark.parametrize("verbose", [False, True])
def test_reply_of_a_route_is_shown_and_its_name_only_if_verbose(verbose):
    texts, lines = [], []
    sink = SimpleNamespace(text=texts.append, line=lines.append, end_text=lambda: None, aside=lambda _: None)
    shown = Activity(sink, verbose=verbose)
    for event in REPLY:
        shown.take(event)
    assert texts == ["pong"]
    assert lines == (["* route ping of greeter: handled, matched `^ping$` \\x1b[2J, 3 s"] if verbose else [])


def test_route_that_has_not_replied_is_shown_with_the_reason_if_verbose():
    lines = []
    shown = Activity(SimpleNamespace(line=lines.append), verbose=True)
    shown.take(RouteEnd("r1", "ping", "greeter", "declined after it matched `ping`", handled=False, ms=0.0))
    assert lines == ["* route ping of greeter: not handled, declined after it matched `ping`, 0 s"]


def test_failed_script_is_shown_with_its_exception():
    lines = []
    shown = Activity(SimpleNamespace(line=lines.append, end_text=lambda: None, progress=lambda _: None))
    printed = 'Traceback (most recent call last):\n  File "a.py", line 2\n    x\nNameError: x is unknown\n[exit code 1]'
    shown.take(ToolExecutionStart("1", "skill_run", {}))
    shown.take(ToolExecutionEnd("1", "skill_run", printed, is_error=True, ms=0.0))
    assert lines == ["* skill_run: failed: NameError: x is unknown, 0 s"]
