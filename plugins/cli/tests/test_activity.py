"""The output of a run for a person shows replies of routes, and with --verbose which route has replied."""

from types import SimpleNamespace

import pytest
from sideband.hooks import MessageEnd, MessageStart, MessageUpdate, RouteEnd
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
