from types import SimpleNamespace

import pytest
from sideband import Plugin, hookimpl
from sideband.hooks import Deny
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio


@pytest.fixture
def previews():
    """The previews so far, in order; ``None`` while no preview is requested."""
    return SimpleNamespace(texts=None)


@pytest.fixture
def more_plugins(previews):
    @hookimpl
    async def op_call(event):
        if previews.texts is None:
            return None
        previews.texts.append(await event.preview(event.params))
        return Deny("preview only")

    return [Plugin("guard", "watch", type("Guard", (), {"op_call": staticmethod(op_call)}))]


@pytest.fixture
async def preview_of(host, previews):
    """Return a function that previews an op without running it."""
    await host.op("sql.execute", {"db": "a.db", "sql": "CREATE TABLE t (a UNIQUE)"})
    await host.op("sql.executemany", {"db": "a.db", "sql": "INSERT INTO t VALUES (?)", "rows": [[1], [2], [3]]})

    async def preview(name, **params):
        previews.texts = []
        with pytest.raises(OpDenied, match="preview only"):
            await host.op(f"sql.{name}", {"db": "a.db", **params})
        (text,), previews.texts = previews.texts, None
        return text

    return preview


async def test_preview_counts_rows_without_changing_them(preview_of, host):
    assert await preview_of("execute", sql="DELETE FROM t WHERE a > 1") == "would change 2 rows in `a.db`"
    rows = [[7], [8]]
    assert await preview_of("executemany", sql="INSERT INTO t VALUES (?)", rows=rows) == "would change 2 rows in `a.db`"
    statements = [{"sql": "DELETE FROM t"}, {"sql": "INSERT INTO t VALUES (5)"}]
    expected = "would change 4 rows in `a.db` in 2 statements (3, 1)"
    assert await preview_of("transaction", statements=statements) == expected
    found = await host.op("sql.query", {"db": "a.db", "sql": "SELECT a FROM t"})
    assert [row["a"] for row in found["rows"]] == [1, 2, 3]


async def test_preview_of_a_failing_change_omits_values(preview_of):
    text = await preview_of("execute", sql="INSERT INTO t VALUES (:a)", params={"a": 1})
    assert text.startswith("would fail without changing anything: UNIQUE constraint failed")


async def test_preview_does_not_create_a_database(preview_of, host):
    text = await preview_of("execute", db="new.db", sql="CREATE TABLE t (a)")
    assert text == "would create the database `new.db` and change it"
    assert not (host.home / "data" / "new.db").exists()


async def test_preview_stores_no_inverse(preview_of, host):
    before = await host.blobs.list()
    await preview_of("execute", sql="DELETE FROM t")
    assert await host.blobs.list() == before


@pytest.mark.parametrize("exists", [False, True])
async def test_name_of_a_database_cannot_end_its_quotation(preview_of, host, tmp_path, exists):
    db = str(tmp_path / "a` and `b.db")
    if exists:
        await host.op("sql.execute", {"db": db, "sql": "CREATE TABLE t (a)"})
    assert f'"{db}"' in await preview_of("execute", db=db, sql="CREATE TABLE u (a)")
    if exists:
        assert f'"{db}"' in await preview_of("transaction", db=db, statements=[{"sql": "CREATE TABLE u (a)"}])
