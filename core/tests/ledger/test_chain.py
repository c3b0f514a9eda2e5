"""What is written: one chain of lines, over segments and among hosts."""

import json
import os
from hashlib import sha256

import anyio
import pytest
from sideband.ledger import Intent, Ledger, LedgerClosed, LedgerDamaged, Outcome, tail, verify
from sideband.ops import Level, Origin

pytestmark = pytest.mark.anyio


def raw_lines(folder):
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


async def test_each_line_follows_the_one_before_it_as_documented(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 3)
    prev = "0" * 64
    for number, raw in enumerate(raw_lines(folder), 1):
        fields = json.loads(raw)
        digest = fields.pop("hash")
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert (fields["seq"], fields["prev"], fields["v"]) == (number, prev, 1)
        assert digest == sha256(prev.encode() + canonical.encode()).hexdigest()
        prev = digest


async def test_a_host_opens_and_closes_around_its_effects(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    assert [entry.kind for entry in await tail(folder)] == ["open", "intent", "outcome", "close"]


async def test_a_host_without_effects_leaves_nothing(folder, store):
    async with Ledger(folder, store) as ledger:
        assert await ledger.orphans() == ()
    assert not folder.exists()


async def test_an_intent_says_who_what_and_with_which_right(folder, store):
    async with Ledger(folder, store) as ledger:
        intent = Intent(
            effect=ledger.new_effect_id(),
            op="http.get",
            key="s:r:1",
            params={"url": "https://example.org"},
            grant=("http:host=example.org",),
            origin=Origin(principal="ana", session="s", skill="demo", tool="harvest"),
            level=Level.CONTROLLED,
            decisions=({"by": "grant", "decision": "allow"},),
            isolation="full",
        )
        await ledger.intent(intent, durable=True)
        fields = (await tail(folder, 1))[0].fields
    assert {name: fields[name] for name in ("op", "key", "grant", "level", "isolation", "params", "decisions")} == {
        "op": "http.get",
        "key": "s:r:1",
        "grant": ["http:host=example.org"],
        "level": "CONTROLLED",
        "isolation": "full",
        "params": {"url": "https://example.org"},
        "decisions": [{"by": "grant", "decision": "allow"}],
    }
    assert fields["origin"] == {"principal": "ana", "session": "s", "skill": "demo", "tool": "harvest"}


async def test_an_outcome_repeats_nothing_of_its_intent_and_a_refusal_says_all(folder, store):
    async with Ledger(folder, store) as ledger:
        said = {"op": "http.get", "params": {"n": 1}, "grant": ("http",), "origin": Origin(), "level": Level.SAFE}
        effect = ledger.new_effect_id()
        await ledger.intent(Intent(effect=effect, **said), durable=False)
        await ledger.outcome(Outcome(effect=effect, status="done", **said))
        await ledger.outcome(Outcome(effect=ledger.new_effect_id(), status="denied", **said))
        done, denied = (entry.fields for entry in await tail(folder, 2))
    assert not {"params", "grant", "origin", "level"} & set(done)
    assert {"params", "grant", "origin", "level"} <= set(denied)


async def test_a_result_is_recorded_only_under_a_key(folder, store):
    async with Ledger(folder, store) as ledger:
        for key in (None, "k"):
            outcome = Outcome(effect=ledger.new_effect_id(), op="x.y", status="done", key=key, result={"data": b"\x00"})
            await ledger.outcome(outcome)
        without, with_key = (entry.fields for entry in await tail(folder, 2))
    assert "result" not in without
    assert with_key["result"] == {"data": {"__bytes__": "AA=="}}


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (float("nan"), "<nan>"),
        (float("-inf"), "<-inf>"),
        ({1: "a", "b": 2}, {"1": "a", "b": 2}),
        (object(), "<object>"),
        (b"\xff", {"__bytes__": "/w=="}),
        ("\ud800", "\ud800"),
        (10**5000, hex(10**5000)),
        ({"x": {3}}, {"x": [3]}),
    ],
    ids=["nan", "infinity", "keys", "object", "bytes", "surrogate", "number", "set"],
)
async def test_a_value_that_json_cannot_say_does_not_keep_an_effect_from_the_record(folder, store, value, recorded):
    async with Ledger(folder, store) as ledger:
        await ledger.intent(Intent(effect=ledger.new_effect_id(), op="x.y", params={"value": value}), durable=False)
        assert (await tail(folder, 1))[0].fields["params"] == {"value": recorded}
    assert (await verify(folder, store)).ok


async def test_a_value_nested_without_end_is_recorded_up_to_a_depth(folder, store):
    value = []
    value.append(value)
    async with Ledger(folder, store) as ledger:
        await ledger.intent(Intent(effect=ledger.new_effect_id(), op="x.y", params={"value": value}), durable=False)
        assert "nested too deeply" in json.dumps((await tail(folder, 1))[0].fields["params"])


async def test_the_chain_continues_over_numbered_segments(folder, store, write):
    async with Ledger(folder, store, rotate_bytes=2000) as ledger:
        await write(ledger, 20)
    names = sorted(path.name for path in folder.glob("*.jsonl"))
    assert len(names) > 4
    assert names == [f"{number:08d}.jsonl" for number in range(1, len(names) + 1)]
    assert all((folder / name).stat().st_size < 3000 for name in names)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    assert verdict.entries == len(raw_lines(folder))


async def test_a_second_host_continues_the_chain(folder, store, write):
    for _ in range(2):
        async with Ledger(folder, store) as ledger:
            await write(ledger, 2)
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries) == (True, 12)


async def test_hosts_of_one_process_may_alternate_also_over_segments(folder, store, write):
    async with Ledger(folder, store, rotate_bytes=1500) as one, Ledger(folder, store, rotate_bytes=1500) as two:
        for _ in range(10):
            await write(one, 1)
            await write(two, 2)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    assert verdict.entries == len(raw_lines(folder))


async def test_effect_ids_are_unique_among_hosts(folder, store):
    async with Ledger(folder, store) as one, Ledger(folder, store) as two:
        ids = [ledger.new_effect_id() for ledger in (one, two) for _ in range(100)]
    assert len(set(ids)) == 200


async def test_many_durable_intents_at_once_are_all_recorded(folder, store, write):
    async with Ledger(folder, store) as ledger, anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(lambda: write(ledger, 3, durable=True))
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries) == (True, 302)


async def test_a_waiter_that_is_cancelled_does_not_keep_the_others_waiting(folder, store, write):
    async with Ledger(folder, store) as ledger:
        for _ in range(20):
            with anyio.fail_after(10):
                async with anyio.create_task_group() as tasks:
                    for _ in range(5):
                        tasks.start_soon(lambda: write(ledger, 1, durable=True))
                    with anyio.CancelScope() as scope:
                        scope.cancel()
                        await write(ledger, 1, durable=True)
    assert (await verify(folder, store)).ok


async def test_files_and_folders_are_for_their_user_only(folder, store, write):
    folder.mkdir(mode=0o755)
    old = os.umask(0)
    try:
        async with Ledger(folder, store) as ledger:
            await write(ledger, 1)
            modes = {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in folder.rglob("*")}
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert modes.pop("hosts") == 0o700
    assert set(modes.values()) == {0o600}


async def test_a_ledger_that_is_not_open_says_so(folder, store, write):
    ledger = Ledger(folder, store)
    with pytest.raises(LedgerClosed):
        await write(ledger, 1)
    async with ledger:
        await write(ledger, 1)
    with pytest.raises(LedgerClosed):
        await write(ledger, 1)


async def test_an_exception_of_the_body_comes_out_as_it_is(folder, store, write):
    async def fail():
        async with Ledger(folder, store) as ledger:
            await write(ledger, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert (await verify(folder, store)).ok


async def test_a_cancelled_host_still_closes_in_order(folder, store, write):
    with anyio.CancelScope() as scope:
        async with Ledger(folder, store) as ledger:
            await write(ledger, 1)
            scope.cancel()
            await anyio.sleep_forever()
    assert [entry.kind for entry in await tail(folder, 1)] == ["close"]
    verdict = await verify(folder, store)
    assert verdict.ok
    assert (await store.get("ledger/head")).value["seq"] == verdict.head.seq == 4
    assert list((folder / "hosts").iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data + b"not an entry\n", "not an entry"),
        (lambda data: data.replace(b'"kind":"close"', b'"kind":"clone"'), "does not fit its content"),
    ],
    ids=["nonsense", "changed"],
)
async def test_nothing_is_written_after_a_last_line_that_is_no_entry(folder, store, write, damage, says):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    path = folder / "00000001.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    async with Ledger(folder, store) as ledger:
        with pytest.raises(LedgerDamaged, match=says) as caught:
            await write(ledger, 1)
    assert "audit verify" in caught.value.hint
    assert path.read_bytes() == before


async def test_a_link_in_place_of_a_segment_is_not_followed(folder, store, write, tmp_path):
    folder.mkdir()
    (tmp_path / "elsewhere").touch()
    (folder / "00000001.jsonl").symlink_to(tmp_path / "elsewhere")
    async with Ledger(folder, store) as ledger:
        with pytest.raises(OSError, match="can't be written"):
            await write(ledger, 1)
    assert (tmp_path / "elsewhere").read_bytes() == b""
