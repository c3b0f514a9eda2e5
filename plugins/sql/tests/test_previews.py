from types import SimpleNamespace

import pytest
from sideband import Plugin, hookimpl
from sideband.hooks import Deny
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio


@pytest.fixture
def previews():
    """What ops said they would do, in order; while it is ``None``, nobody asks."""
    return SimpleNamespace(texts=None)


@pytest.fixture
def more_plugins(previews):
    @hookimpl
    async def op_call(event):
        if previews.texts is None:
            return None
        previews.texts.append(await event.preview(event.params))
        return Deny("only asked")

    return [Plugin("hook", "watch", SimpleNamespace(op_call=op_call))]


@pytest.fixture
async def ask(host, previews):
    """What an op would do; it is kept from doing it."""
    await host.op("sql.execute", {"db": "a.db", "sql": "CREATE TABLE t (a UNIQUE)"})
    await host.op("sql.executemany", {"db": "a.db", "sql": "INSERT INTO t VALUES (?)", "rows": [[1], [2], [3]]})

    async def preview(name, **params):
        previews.texts = []
        with pytest.raises(OpDenied, match="only asked"):
            await host.op(f"sql.{name}", {"db": "a.db", **params})
        (text,), previews.texts = previews.texts, None
        return text

    return preview


async def test_a_preview_counts_rows_and_changes_none(ask, host):
    assert await ask("execute", sql="DELETE FROM t WHERE a > 1") == "would change 2 rows of `a.db`"
    rows = [[7], [8]]
    assert await ask("executemany", sql="INSERT INTO t VALUES (?)", rows=rows) == "would change 2 rows of `a.db`"
    statements = [{"sql": "DELETE FROM t"}, {"sql": "INSERT INTO t VALUES (5)"}]
    expected = "would change 4 rows of `a.db` in 2 statements (3, 1)"
    assert await ask("transaction", statements=statements) == expected
    found = await host.op("sql.query", {"db": "a.db", "sql": "SELECT a FROM t"})
    assert [row["a"] for row in found["rows"]] == [1, 2, 3]


async def test_a_preview_of_what_fails_says_so_without_a_value(ask):
    text = await ask("execute", sql="INSERT INTO t VALUES (:a)", params={"a": 1})
    assert text.startswith("would fail, and change nothing: UNIQUE constraint failed")


async def test_a_preview_creates_no_database(ask, host):
    text = await ask("execute", db="new.db", sql="CREATE TABLE t (a)")
    assert text == "would create the database `new.db` and change it"
    assert not (host.home / "data" / "new.db").exists()


async def test_a_preview_keeps_nothing_to_take_back(ask, host):
    before = await host.blobs.list()
    await ask("execute", sql="DELETE FROM t")
    assert await host.blobs.list() == before
