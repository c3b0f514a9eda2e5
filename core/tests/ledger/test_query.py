"""The record is found again: by filters, by text, by id; and the index can always be thrown away."""

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest
from sideband.ledger import EffectRecord, Intent, Ledger, LedgerIndexFailed, Outcome, find, query, tail
from sideband.ops import Level, Origin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def filled(folder, store):
    """Effects of several kinds; their ids by name."""
    async with Ledger(folder, store, rotate_bytes=1500) as ledger:
        ids = {}

        async def effect(name, op, status, *, skill="demo", tool="harvest", principal="user", key=None, **params):
            ids[name] = ledger.new_effect_id()
            origin = Origin(principal=principal, skill=skill, tool=tool)
            said = {"effect": ids[name], "op": op, "key": key}
            intent = Intent(**said, params=params, origin=origin, level=Level.MONITORED, grant=("http",))
            if status == "denied":
                error = {"code": "op.denied"}
                said |= {"params": params, "origin": origin, "level": Level.MONITORED, "error": error}
            else:
                await ledger.intent(intent, durable=False)
            if status != "open":
                await ledger.outcome(Outcome(**said, status=status, ms=2.5, bytes=7, result={"n": b"\x01"}))

        await effect("get", "http.get", "done", url="https://example.org/ä?q=%_")
        await effect("post", "http.post", "failed", tool="send", key="s:r:1")
        await effect("query", "sql.query", "done", skill="other", principal="ana")
        await effect("refused", "shell.run", "denied", binary="rm")
        await effect("httpx", "httpx.get", "cancelled")
        await effect("running", "http.get", "open")
        yield ids


@pytest.fixture
async def agents(folder, store):
    """Effects of agents: sessions, runs and steps, by name."""
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


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("filters", "names"),
    [
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
    ],
    ids=str,
)
async def test_effects_of_agents_are_found_by_session_run_step_and_tool(folder, agents, filters, names):
    assert [record.effect for record in await query(folder, **filters)] == [agents[name] for name in names]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_index_of_an_older_version_is_built_again(folder, agents):
    """The first version's index knew no sessions."""
    (folder / "index.sqlite").unlink(missing_ok=True)
    with sqlite3.connect(folder / "index.sqlite") as database:
        database.executescript(
            "CREATE TABLE effects (id INTEGER PRIMARY KEY, effect TEXT); "
            "CREATE TABLE position (one INTEGER PRIMARY KEY, segment, start, end, digest); PRAGMA user_version = 1;"
        )
    database.close()
    assert [record.effect for record in await query(folder, session="t")] == [agents["elsewhere"]]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("filters", "names"),
    [
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
    ],
    ids=str,
)
async def test_effects_are_found_by_what_they_have_in_common_newest_first(folder, filled, filters, names):
    assert [record.effect for record in await query(folder, **filters)] == [filled[name] for name in names]


async def test_effects_are_found_by_time(folder, filled):
    now = datetime.now(UTC)
    assert await query(folder, since=now) == ()
    assert await query(folder, until=now - timedelta(hours=1)) == ()
    assert len(await query(folder, since=now - timedelta(hours=1), until=now)) == 6
    middle = datetime.fromisoformat((await find(folder, filled["query"])).time)
    assert [record.effect for record in await query(folder, until=middle)] == [filled["post"], filled["get"]]


async def test_an_effect_is_put_together_from_its_lines(folder, filled):
    record = await find(folder, filled["post"])
    assert isinstance(record, EffectRecord)
    assert (record.op, record.status, record.key, record.ms, record.bytes) == ("http.post", "failed", "s:r:1", 2.5, 7)
    assert (record.level, record.grant, record.origin.tool) == (Level.MONITORED, ("http",), "send")
    assert record.result == {"n": b"\x01"}
    assert [entry.kind for entry in record.entries] == ["intent", "outcome"]
    refused = await find(folder, filled["refused"])
    assert (refused.params, refused.error) == ({"binary": "rm"}, {"code": "op.denied"})


async def test_an_unknown_effect_is_none(folder, filled):
    assert await find(folder, "nothing-1") is None


async def test_a_ledger_that_is_not_there_has_no_effects_and_is_not_made(folder):
    assert await query(folder) == ()
    assert await tail(folder) == ()
    assert not folder.exists()


async def test_an_outcome_that_comes_later_is_seen(folder, store):
    async with Ledger(folder, store) as ledger:
        effect = ledger.new_effect_id()
        await ledger.intent(Intent(effect=effect, op="x.y"), durable=False)
        assert (await find(folder, effect)).status is None
        await ledger.outcome(Outcome(effect=effect, op="x.y", status="done"))
        assert (await find(folder, effect)).status == "done"


async def test_the_last_entries_come_in_order_over_segments(folder, filled):
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


def damage_nothing_but_delete(path):
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


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    "damage",
    [
        damage_nothing_but_delete,
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
async def test_an_index_that_is_gone_damaged_or_wrong_is_built_again(folder, filled, damage):
    before = await query(folder)
    damage(folder / "index.sqlite")
    assert await query(folder) == before
    with sqlite3.connect(folder / "index.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


async def test_an_index_of_a_ledger_that_was_cut_is_built_again(folder, store, filled):
    await query(folder)
    path = max(path for path in folder.glob("*.jsonl") if path.stat().st_size)
    path.write_bytes(b"")
    assert filled["running"] not in {record.effect for record in await query(folder)}


async def test_what_was_written_after_a_cut_is_found(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 5)
    await query(folder)
    path = folder / "00000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    async with Ledger(folder, store) as ledger:
        later = await write(ledger, 3, op="other.op")
    assert [record.effect for record in await query(folder, op="other.op")] == later[::-1]


async def test_what_can_be_read_of_a_damaged_ledger_is_found(folder, filled):
    for path in folder.glob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b'"op":"sql.query"', b'"op":"sql\xffquery"'))
    (folder / "00000001.jsonl").write_bytes(b'[]\n{"kind": 1}\n' + (folder / "00000001.jsonl").read_bytes())
    found = [record.effect for record in await query(folder)]
    assert found == [filled[name] for name in ("running", "httpx", "refused", "post", "get")]


async def test_an_index_that_cannot_be_made_is_a_clear_error(folder, filled):
    (folder / "index.sqlite").mkdir()
    with pytest.raises(LedgerIndexFailed) as caught:
        await query(folder)
    assert caught.value.hint
