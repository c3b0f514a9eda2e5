"""Queries of the ledger by filter, text and id, and the index, which can be deleted at any time."""

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest
from sideband.ledger import EffectRecord, Intent, Ledger, LedgerIndexFailed, Outcome, find, query, tail
from sideband.ops import Level, Origin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def filled(folder, store):
    """Record effects of several kinds, and return their ids by name."""
    async with Ledger(folder, store, rotate_bytes=1500) as ledger:
        ids = {}

        async def effect(name, op, status, *, skill="demo", tool="harvest", principal="user", key=None, **params):
            ids[name] = ledger.new_effect_id()
            origin = Origin(principal=principal, skill=skill, tool=tool)
            fields = {"effect": ids[name], "op": op, "key": key}
            intent = Intent(**fields, params=params, origin=origin, level=Level.MONITORED, grant=("http",))
            if status == "denied":
                error = {"code": "op.denied"}
                fields |= {"params": params, "origin": origin, "level": Level.MONITORED, "error": error}
            else:
                await ledger.intent(intent, durable=False)
            if status != "open":
                await ledger.outcome(Outcome(**fields, status=status, ms=2.5, bytes=7, result={"n": b"\x01"}))

        await effect("get", "http.get", "done", url="https://example.org/ä?q=%_")
        await effect("post", "http.post", "failed", tool="send", key="s:r:1")
        await effect("query", "sql.query", "done", skill="other", principal="ana")
        await effect("refused", "shell.run", "denied", binary="rm")
        await effect("httpx", "httpx.get", "cancelled")
        await effect("running", "http.get", "open")
        yield ids


@pytest.fixture
async def agents(folder, store):
    """Record effects of agents with sessions, runs and steps, and return their ids by name."""
    async with Ledger(folder, store) as ledger:
        ids = {}

        async def effect(name, op, place, **origin):
            ids[name] = ledger.new_effect_id()
            session, run, step = place.split(":")
            origin = Origin(session=session, run=run, step=step or None, **origin)
            await ledger.intent(Intent(effect=ids[name], op=op, origin=origin), durable=False)
            await ledger.outcome(Outcome(effect=ids[name], op=op, status="done"))

        await effect("model", "llm.generate", "s:r:1")
        await effect("call", "tool.call", "s:r:1.0", tool="hello.greet")
        await effect("below", "http.get", "s:r:1.0", tool="greet", skill="hello")
        await effect("second", "tool.call", "s:r:1.1", tool="memory")
        await effect("tenth", "llm.generate", "s:r:10")
        await effect("later", "llm.generate", "s:q:1")
        await effect("elsewhere", "llm.generate", "t:p:1")
        await effect("beside", "llm.generate", "s:r:", plugin="compaction")
        yield ids


AGENT_QUERIES = [
    ({"session": "t"}, ["elsewhere"]),
    ({"session": "s", "op": "llm"}, ["beside", "later", "tenth", "model"]),
    ({"run": "r"}, ["beside", "tenth", "second", "below", "call", "model"]),
    ({"run": "r", "step": "1"}, ["second", "below", "call", "model"]),
    ({"run": "r", "step": "1.0"}, ["below", "call"]),
    ({"session": "s", "step": "1"}, ["later", "second", "below", "call", "model"]),
    ({"tool": "hello.greet"}, ["below", "call"]),
    ({"tool": "greet"}, ["below"]),
    ({"tool": "memory"}, ["second"]),
    ({"run": "r", "step": "%"}, []),
    ({"session": "\ud800"}, []),
    ({"step": "\ud800"}, []),
]


async def test_effects_of_agents_are_found_by_session_run_step_and_tool(folder, agents):
    wrong, by_id = [], {effect: name for name, effect in agents.items()}
    for filters, names in AGENT_QUERIES:
        found = [by_id.get(record.effect) for record in await query(folder, **filters)]
        if found != names:
            wrong.append((filters, found))
    assert wrong == []


async def test_index_of_an_older_version_is_rebuilt(folder, agents):
    """Format 1 of the index had no sessions."""
    (folder / "index.sqlite").unlink(missing_ok=True)
    with sqlite3.connect(folder / "index.sqlite") as database:
        database.executescript(
            "CREATE TABLE effects (id INTEGER PRIMARY KEY, effect TEXT); "
            "CREATE TABLE position (one INTEGER PRIMARY KEY, segment, start, end, digest); PRAGMA user_version = 1;"
        )
    database.close()
    assert [record.effect for record in await query(folder, session="t")] == [agents["elsewhere"]]


QUERIES = [
    ({}, ["running", "httpx", "refused", "query", "post", "get"]),
    ({"op": "http.get"}, ["running", "get"]),
    ({"op": "http"}, ["running", "post", "get"]),
    ({"skill": "demo"}, ["running", "httpx", "refused", "post", "get"]),
    ({"skill": "demo.send"}, ["post"]),
    ({"status": "done"}, ["query", "get"]),
    ({"status": "denied"}, ["refused"]),
    ({"status": "open"}, ["running"]),
    ({"key": "s:r:1"}, ["post"]),
    ({"principal": "ana"}, ["query"]),
    ({"text": "ä?q=%_"}, ["get"]),
    ({"text": "op.denied"}, ["refused"]),
    ({"text": "http", "status": "failed"}, ["post"]),
    ({"text": "nowhere"}, []),
    ({"op": "http", "status": "done", "skill": "demo"}, ["get"]),
    ({"limit": 2}, ["running", "httpx"]),
    ({"text": "http.", "limit": 1}, ["running"]),
    ({"key": "\ud800"}, []),
]


async def test_query_returns_matching_effects_newest_first(folder, filled):
    wrong, by_id = [], {effect: name for name, effect in filled.items()}
    for filters, names in QUERIES:
        found = [by_id.get(record.effect) for record in await query(folder, **filters)]
        if found != names:
            wrong.append((filters, found))
    assert wrong == []


async def test_effects_are_found_by_time(folder, filled):
    now = datetime.now(UTC)
    assert await query(folder, since=now) == ()
    assert await query(folder, until=now - timedelta(hours=1)) == ()
    assert len(await query(folder, since=now - timedelta(hours=1), until=now)) == 6
    middle = datetime.fromisoformat((await find(folder, filled["query"])).time)
    assert [record.effect for record in await query(folder, until=middle)] == [filled["post"], filled["get"]]


async def test_record_is_merged_from_its_lines(folder, filled):
    record = await find(folder, filled["post"])
    assert isinstance(record, EffectRecord)
    assert (record.op, record.status, record.key, record.ms, record.bytes) == ("http.post", "failed", "s:r:1", 2.5, 7)
    assert (record.level, record.grant, record.origin.tool) == (Level.MONITORED, ("http",), "send")
    assert record.result == {"n": b"\x01"}
    assert [entry.kind for entry in record.entries] == ["intent", "outcome"]
    refused = await find(folder, filled["refused"])
    assert (refused.params, refused.error) == ({"binary": "rm"}, {"code": "op.denied"})


async def test_find_returns_none_for_an_unknown_effect(folder, filled):
    assert await find(folder, "nothing-1") is None


async def test_query_of_a_missing_ledger_is_empty_and_creates_nothing(folder):
    assert await query(folder) == ()
    assert await tail(folder) == ()
    assert not folder.exists()


async def test_later_outcome_is_found(folder, store):
    async with Ledger(folder, store) as ledger:
        effect = ledger.new_effect_id()
        await ledger.intent(Intent(effect=effect, op="x.y"), durable=False)
        assert (await find(folder, effect)).status is None
        await ledger.outcome(Outcome(effect=effect, op="x.y", status="done"))
        assert (await find(folder, effect)).status == "done"


async def test_tail_returns_the_last_entries_in_order_across_segments(folder, filled):
    entries = await tail(folder, 7)
    assert [entry.seq for entry in entries] == list(range(entries[-1].seq - 6, entries[-1].seq + 1))
    assert await tail(folder, 100, after=entries[-3].seq) == entries[-2:]
    assert (await tail(folder, 1000))[0].seq == 1


async def test_lines_longer_than_a_block_are_found(folder, store, write):
    async with Ledger(folder, store) as ledger:
        effect = ledger.new_effect_id()
        await write(ledger, 2)
        params = {"text": "x" * 3_000_000 + "needle"}
        await ledger.intent(Intent(effect=effect, op="x.y", params=params), durable=False)
        await write(ledger, 2)
        assert [record.effect for record in await query(folder, text="needle")] == [effect]
        assert (await find(folder, effect)).params == params
        assert len(await tail(folder, 100)) == 10


def delete(path):
    path.unlink()


def damage_bytes(path):
    path.write_bytes(b"\xff" * path.stat().st_size)


def damage_middle(path):
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x07" * (len(data) - 4096)
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:5000])


def execute(statement):
    def change(path):
        with sqlite3.connect(path) as database:
            database.execute(statement)
        database.close()

    return change


@pytest.mark.parametrize(
    "damage",
    [
        delete,
        damage_bytes,
        damage_middle,
        cut,
        execute("DROP TABLE effects"),
        execute("PRAGMA user_version = 9"),
        execute("UPDATE position SET digest = 'other'"),
        execute("UPDATE position SET segment = 99"),
        execute("UPDATE effects SET first_offset = first_offset + 1"),
        execute("UPDATE effects SET effect = effect || 'x'"),
    ],
    ids=["deleted", "bytes", "middle", "cut", "table", "version", "digest", "segment", "offsets", "effects"],
)
async def test_missing_damaged_or_wrong_index_is_rebuilt(folder, filled, damage):
    before = await query(folder)
    damage(folder / "index.sqlite")
    assert await query(folder) == before
    with sqlite3.connect(folder / "index.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


async def test_index_of_a_truncated_ledger_is_rebuilt(folder, store, filled):
    await query(folder)
    path = max(path for path in folder.glob("*.jsonl") if path.stat().st_size)
    path.write_bytes(b"")
    assert filled["running"] not in {record.effect for record in await query(folder)}


async def test_effects_written_after_a_truncation_are_found(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 5)
    await query(folder)
    path = folder / "00000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    async with Ledger(folder, store) as ledger:
        later = await write(ledger, 3, op="other.op")
    assert [record.effect for record in await query(folder, op="other.op")] == later[::-1]


async def test_readable_effects_of_a_damaged_ledger_are_found(folder, filled):
    for path in folder.glob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b'"op":"sql.query"', b'"op":"sql\xffquery"'))
    (folder / "00000001.jsonl").write_bytes(b'[]\n{"kind": 1}\n' + (folder / "00000001.jsonl").read_bytes())
    found = [record.effect for record in await query(folder)]
    assert found == [filled[name] for name in ("running", "httpx", "refused", "post", "get")]


async def test_index_that_cannot_be_created_raises(folder, filled):
    (folder / "index.sqlite").mkdir()
    with pytest.raises(LedgerIndexFailed) as caught:
        await query(folder)
    assert caught.value.hint
