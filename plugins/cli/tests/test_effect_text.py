"""The text of `audit why` for one effect."""

import pytest
from sideband.ledger import EffectRecord, LedgerEntry
from sideband_cli._audit._record_text import describe_effect
from sideband_cli._undo._undo_effects import undone_effect


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def record(**fields):
    fields = {
        "effect": "e1",
        "op": "http.get",
        "origin": {"skill": "github", "tool": "stars"},
        "level": "MONITORED",
        **fields,
    }
    return EffectRecord.from_entries((LedgerEntry(1, "2026-01-01T00:00:00Z", "intent", fields),))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("call", "granted by the caller"),
        ("policy", "granted by the configuration"),
        ("remembered", "granted by the user in an earlier call"),
        ("person", "granted by the user for this call"),
    ],
)
def test_capabilities_are_listed_with_the_source_of_their_grant(source, words):
    text = describe_effect(record(grant=["http:host=a.org", "secrets"], granted_by=[source, ""], status="done"))
    assert f"  allowed by  http:host=a.org, {words}\n" in text
    assert "  allowed by  secrets\n" in text


def test_capability_without_a_recorded_source_is_listed_alone():
    assert "  allowed by  http\n" in describe_effect(record(grant=["http"], status="done"))


def test_note_of_the_op_is_shown():
    assert '  op note     {"before": 7}' in describe_effect(record(note={"before": 7}))


def test_decisions_are_listed_in_order_with_their_reasons():
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
def test_undone_effect_is_read_from_the_key(key, effect):
    assert undone_effect(record(key=key)) == effect
