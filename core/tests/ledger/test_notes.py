"""Notes about effects are synced to disk before the op continues."""

import os

import pytest
from sideband.ledger import Intent, Ledger, Outcome, find, verify

pytestmark = pytest.mark.anyio


async def test_note_is_synced_before_it_returns(folder, store, monkeypatch):
    synced = []

    def sync(descriptor):
        synced.append(descriptor)
        os.fsync(descriptor)

    monkeypatch.setattr("sideband.ledger._commit.sync_data", sync)
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        effect = ledger.new_effect_id()
        await ledger.intent(Intent(effect=effect, op="test.write"), durable=True)
        before = len(synced)
        for number in range(20):
            await ledger.note(effect, "test.write", {"number": number})
        assert len(synced) - before >= 20
        await ledger.outcome(Outcome(effect=effect, op="test.write", status="done"))


async def test_note_without_an_outcome_is_part_of_the_record(folder, store):
    async with Ledger(folder, store) as ledger:
        effect = ledger.new_effect_id()
        await ledger.intent(Intent(effect=effect, op="test.write", params={"a": 1}), durable=True)
        await ledger.note(effect, "test.write", {"digest": "abc"})
        record = await find(folder, effect)
        assert (record.status, record.params, record.note) == (None, {"a": 1}, {"digest": "abc"})
        await ledger.outcome(Outcome(effect=effect, op="test.write", status="done"))
    assert (await verify(folder, store)).ok
