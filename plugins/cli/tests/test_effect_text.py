"""What `audit why` says of one effect."""

import pytest
from sideband.ledger import EffectRecord, LedgerEntry
from sideband_cli._audit._record_text import describe_effect
from sideband_cli._undo._taken_back import takes_back


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def record(**fields):
    said = {
        "effect": "e1",
        "op": "http.get",
        "origin": {"skill": "github", "tool": "stars"},
        "level": "MONITORED",
        **fields,
    }
    return EffectRecord.from_entries((LedgerEntry(1, "2026-01-01T00:00:00Z", "intent", said),))


@pytest.mark.parametrize(
    ("giver", "words"),
    [
        ("call", "granted by whoever made the call"),
        ("policy", "granted by the configuration"),
        ("remembered", "granted by a person earlier, and remembered"),
        ("person", "granted by a person who was asked"),
    ],
)
def test_each_right_is_told_with_who_granted_it(giver, words):
    text = describe_effect(record(grant=["http:host=a.org", "secrets"], granted_by=[giver, ""], status="done"))
    assert f"  allowed by  http:host=a.org, {words}\n" in text
    assert "  allowed by  secrets\n" in text


def test_a_right_of_which_nobody_wrote_down_who_granted_it_is_told_alone():
    assert "  allowed by  http\n" in describe_effect(record(grant=["http"], status="done"))


def test_what_the_op_noted_is_told():
    assert '  noted       {"before": 7}' in describe_effect(record(note={"before": 7}))


def test_decisions_are_told_in_order_with_their_reasons():
    decisions = [{"plugin": "keeper", "said": "ask", "note": "sure?"}, {"by": "approver", "said": "approve"}]
    text = describe_effect(record(decisions=decisions))
    assert text.index("keeper: ask, sure?") < text.index("approver: approve")


@pytest.mark.parametrize(
    ("key", "effect"),
    [
        ("undo:01A-b:0", "01A-b"),
        ("undo:x:12", "x"),
        ("undo::0", None),
        ("undo:x:y", None),
        ("s:r:0", None),
        (None, None),
    ],
)
def test_a_key_tells_which_effect_is_taken_back(key, effect):
    assert takes_back(record(key=key)) == effect
