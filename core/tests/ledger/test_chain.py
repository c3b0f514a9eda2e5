"""Writing the ledger: one chain of lines, across segments and hosts."""

import json
import os
from hashlib import sha256

import anyio
import pytest
from sideband.ledger import Intent, Ledger, LedgerClosed, LedgerDamaged, Outcome, tail, verify
from sideband.ops import Level, Origin

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def raw_lines(folder):
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


async def test_lines_are_chained_as_documented(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 3)
    prev = "0" * 64
    for number, raw in enumerate(raw_lines(folder), 1):
        fields = json.loads(raw)
        digest, content = fields.pop("hash"), fields.pop("content", None)
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert (fields["seq"], fields["prev"], fields["v"]) == (number, prev, 2)
        if content is not None:
            text = json.dumps(content, sort_keys=True, separators=(",", ":"))
            assert fields["content_sha256"] == sha256(text.encode()).hexdigest()
        assert digest == sha256(prev.encode() + canonical.encode()).hexdigest()
        prev = digest


@both_backends
async def test_host_writes_open_and_close_lines_around_its_effects(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    assert [entry.kind for entry in await tail(folder)] == ["open", "intent", "outcome", "close"]


async def test_host_without_effects_creates_no_files(folder, store):
    async with Ledger(folder, store) as ledger:
        assert await ledger.orphans() == ()
    assert not folder.exists()


async def test_intent_line_contains_origin_op_and_grant(folder, store):
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


async def test_outcome_repeats_request_fields_only_without_an_intent(folder, store):
    async with Ledger(folder, store) as ledger:
        request = {"op": "http.get", "params": {"n": 1}, "grant": ("http",), "origin": Origin(), "level": Level.SAFE}
        effect = ledger.new_effect_id()
        await ledger.intent(Intent(effect=effect, **request), durable=False)
        await ledger.outcome(Outcome(effect=effect, status="done", **request))
        await ledger.outcome(Outcome(effect=ledger.new_effect_id(), status="denied", **request))
        done, denied = (entry.fields for entry in await tail(folder, 2))
    assert not {"params", "grant", "origin", "level"} & set(done)
    assert {"params", "grant", "origin", "level"} <= set(denied)


async def test_result_is_recorded_only_with_a_key(folder, store):
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
async def test_value_that_json_cannot_represent_is_recorded_as_text(folder, store, value, recorded):
    async with Ledger(folder, store) as ledger:
        await ledger.intent(Intent(effect=ledger.new_effect_id(), op="x.y", params={"value": value}), durable=False)
        assert (await tail(folder, 1))[0].fields["params"] == {"value": recorded}
    assert (await verify(folder, store)).ok


async def test_recursive_value_is_recorded_up_to_a_maximum_depth(folder, store):
    value = []
    value.append(value)
    async with Ledger(folder, store) as ledger:
        await ledger.intent(Intent(effect=ledger.new_effect_id(), op="x.y", params={"value": value}), durable=False)
        assert "nested too deeply" in json.dumps((await tail(folder, 1))[0].fields["params"])


async def test_chain_continues_across_numbered_segments(folder, store, write):
    async with Ledger(folder, store, rotate_bytes=2000) as ledger:
        await write(ledger, 20)
    names = sorted(path.name for path in folder.glob("*.jsonl"))
    assert len(names) > 4
    assert names == [f"{number:08d}.jsonl" for number in range(1, len(names) + 1)]
    assert all((folder / name).stat().st_size < 3000 for name in names)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    assert verdict.entries == len(raw_lines(folder))


async def test_second_host_continues_the_chain(folder, store, write):
    for _ in range(2):
        async with Ledger(folder, store) as ledger:
            await write(ledger, 2)
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries) == (True, 12)


@pytest.mark.parametrize("rotate_bytes", [1, 1500])
async def test_alternating_hosts_in_one_process_share_the_chain_across_segments(folder, store, write, rotate_bytes):
    """If the first one ends a segment with each line, the second one continues in segments that it does not end."""
    async with Ledger(folder, store, rotate_bytes=rotate_bytes) as one, Ledger(folder, store, rotate_bytes=1500) as two:
        for _ in range(10):
            await write(one, 1)
            await write(two, 2)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    assert verdict.entries == len(raw_lines(folder))


async def test_effect_ids_are_unique_across_hosts(folder, store):
    async with Ledger(folder, store) as one, Ledger(folder, store) as two:
        ids = [ledger.new_effect_id() for ledger in (one, two) for _ in range(100)]
    assert len(set(ids)) == 200


@both_backends
async def test_concurrent_durable_intents_are_all_recorded(folder, store, write):
    async with Ledger(folder, store) as ledger, anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(lambda: write(ledger, 3, durable=True))
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries) == (True, 302)


@both_backends
async def test_cancelled_waiter_does_not_block_the_others(folder, store, write):
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


async def test_files_and_folders_are_accessible_to_their_owner_only(folder, store, write):
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


async def test_closed_ledger_raises(folder, store, write):
    ledger = Ledger(folder, store)
    with pytest.raises(LedgerClosed):
        await write(ledger, 1)
    async with ledger:
        await write(ledger, 1)
    with pytest.raises(LedgerClosed):
        await write(ledger, 1)


@both_backends
async def test_exception_of_the_body_is_not_wrapped(folder, store, write):
    async def fail():
        async with Ledger(folder, store) as ledger:
            await write(ledger, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert (await verify(folder, store)).ok


@both_backends
async def test_cancelled_host_still_writes_its_close_line_and_head(folder, store, write):
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
    ("damage", "reason"),
    [
        (lambda data: data + b"not an entry\n", "not an entry"),
        (lambda data: data.replace(b'"kind":"close"', b'"kind":"clone"'), "does not match its content"),
    ],
    ids=["nonsense", "changed"],
)
async def test_nothing_is_written_after_an_invalid_last_line(folder, store, write, damage, reason):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    path = folder / "00000001.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    async with Ledger(folder, store) as ledger:
        with pytest.raises(LedgerDamaged, match=reason) as caught:
            await write(ledger, 1)
    assert "audit verify" in caught.value.hint
    assert path.read_bytes() == before


async def test_ledger_that_is_truncated_after_it_could_not_be_read_is_recorded(folder, store, write):
    segment = folder / "00000001.jsonl"
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        await write(ledger, 3)
        first, *_ = data = segment.read_bytes().splitlines(keepends=True)
        segment.write_bytes(b"".join([*data, b"nonsense\n"]))
        with pytest.raises(LedgerDamaged):
            await write(ledger, 1)
        segment.write_bytes(first)
        await write(ledger, 2)
    assert [entry.kind for entry in await tail(folder)].count("mismatch") == 1
    assert not (await verify(folder, store)).ok


async def test_link_in_place_of_a_segment_is_not_followed(folder, store, write, tmp_path):
    folder.mkdir()
    (tmp_path / "elsewhere").touch()
    (folder / "00000001.jsonl").symlink_to(tmp_path / "elsewhere")
    async with Ledger(folder, store) as ledger:
        with pytest.raises(OSError, match="cannot write ledger"):
            await write(ledger, 1)
    assert (tmp_path / "elsewhere").read_bytes() == b""
