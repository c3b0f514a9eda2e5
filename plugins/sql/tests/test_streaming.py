import json

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import LimitExceeded, OpContext, OpDenied, OpFamily, op
from sideband_sql import SqlBusy, SqlCursorMissing, SqlDriver, SqlSyntax, SqlTimeout, SqlTooLarge, SqlValue

pytestmark = pytest.mark.anyio

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x > 3 AND x < 5"


class Nothing(BaseModel):
    pass


@pytest.fixture
def inside():
    """The function to run inside one call."""
    return []


@pytest.fixture
def more_plugins(inside):
    @op("inside.go", timeout=60)
    async def go(params: Nothing, ctx: OpContext) -> None:
        await inside[0](ctx.dispatch)

    class Module:
        @staticmethod
        def sideband_ops():
            return OpFamily(name="inside", ops=(go,))

    return [Plugin("op", "inside", Module)]


@pytest.fixture
async def call(host, inside):
    await host.op("sql.execute", {"db": "a.db", "sql": "CREATE TABLE t (a)"})

    async def run(work, **more):
        inside[:] = [work]
        await host.op("inside.go", {}, **more)

    return run


async def test_fetch_returns_all_rows_in_batches(call):
    async def work(dispatch):
        opened = await dispatch("sql.open", {"db": "a.db", "sql": NUMBERS.format(25)})
        assert opened["columns"] == ["i"]
        batches = []
        more = True
        while more:
            fetched = await dispatch("sql.fetch", {"cursor": opened["cursor"], "max_rows": 10})
            batches.append([row["i"] for row in fetched["rows"]])
            more = fetched["more"]
        assert [len(batch) for batch in batches] == [10, 10, 5]
        assert [one for batch in batches for one in batch] == list(range(1, 26))

    await call(work)


async def test_cursor_reads_a_snapshot(call):
    async def work(dispatch):
        await dispatch("sql.executemany", {"db": "a.db", "sql": "INSERT INTO t VALUES (?)", "rows": [[1], [2], [3]]})
        opened = await dispatch("sql.open", {"db": "a.db", "sql": "SELECT a FROM t ORDER BY a"})
        first = await dispatch("sql.fetch", {"cursor": opened["cursor"], "max_rows": 1})
        await dispatch("sql.execute", {"db": "a.db", "sql": "DELETE FROM t"})
        rest = await dispatch("sql.fetch", {"cursor": opened["cursor"]})
        assert [row["a"] for row in first["rows"] + rest["rows"]] == [1, 2, 3]

    await call(work)


async def test_cursor_ends_after_its_last_row_and_on_close(call):
    async def work(dispatch):
        opened = await dispatch("sql.open", {"db": "a.db", "sql": NUMBERS.format(3)})
        assert not (await dispatch("sql.fetch", {"cursor": opened["cursor"]}))["more"]
        with pytest.raises(SqlCursorMissing):
            await dispatch("sql.fetch", {"cursor": opened["cursor"]})
        opened = await dispatch("sql.open", {"db": "a.db", "sql": NUMBERS.format(3)})
        await dispatch("sql.close", {"cursor": opened["cursor"]})
        await dispatch("sql.close", {"cursor": opened["cursor"]})
        with pytest.raises(SqlCursorMissing) as caught:
            await dispatch("sql.fetch", {"cursor": opened["cursor"]})
        assert (caught.value.code, bool(caught.value.hint)) == ("sql.cursor", True)

    await call(work)


async def test_cursor_is_private_to_its_call_and_ends_with_it(call, host):
    kept = []

    async def work(dispatch):
        kept.append((await dispatch("sql.open", {"db": "a.db", "sql": NUMBERS.format(3)}))["cursor"])
        with pytest.raises(SqlCursorMissing):
            await host.op("sql.fetch", {"cursor": kept[0]})
        # closing a cursor of another call has no effect
        await host.op("sql.close", {"cursor": kept[0]})
        await dispatch("sql.fetch", {"cursor": kept[0], "max_rows": 1})

    await call(work)
    with pytest.raises(SqlCursorMissing):
        await host.op("sql.fetch", {"cursor": kept[0]})


class TestLocked:
    @pytest.fixture
    def settings(self):
        return {"busy_seconds": 0.2}

    async def test_abandoned_cursor_releases_its_lock(self, call, host, tmp_path):
        # without a write-ahead log, a reader blocks writers
        db = str(tmp_path / "b.db")
        await host.op("sql.execute", {"db": db, "sql": "CREATE TABLE t (a)"})
        await host.op("sql.executemany", {"db": db, "sql": "INSERT INTO t VALUES (?)", "rows": [[1], [2]]})

        async def work(dispatch):
            opened = await dispatch("sql.open", {"db": db, "sql": "SELECT a FROM t"})
            await dispatch("sql.fetch", {"cursor": opened["cursor"], "max_rows": 1})
            with pytest.raises(SqlBusy):
                await dispatch("sql.execute", {"db": db, "sql": "DELETE FROM t"})

        await call(work)
        await host.op("sql.execute", {"db": db, "sql": "DELETE FROM t"})


async def test_number_of_cursors_is_limited(call):
    async def work(dispatch):
        request = {"db": "a.db", "sql": NUMBERS.format(3)}
        opened = [await dispatch("sql.open", request) for _ in range(4)]
        with pytest.raises(LimitExceeded):
            await dispatch("sql.open", request)
        await dispatch("sql.close", {"cursor": opened[0]["cursor"]})
        await dispatch("sql.open", request)

    await call(work)


async def test_failed_open_does_not_count_as_a_cursor(call):
    async def work(dispatch):
        for _ in range(6):
            with pytest.raises(SqlSyntax):
                await dispatch("sql.open", {"db": "a.db", "sql": "SELEC"})
        await dispatch("sql.open", {"db": "a.db", "sql": NUMBERS.format(3)})

    await call(work)


async def test_concurrent_fetches_share_the_rows_of_a_cursor(call):
    async def work(dispatch):
        slow = (
            " WHERE (WITH RECURSIVE m(j) AS (SELECT i UNION ALL SELECT j + 1 FROM m LIMIT 3000) SELECT count(*) FROM m)"
        )
        opened = await dispatch("sql.open", {"db": "a.db", "sql": NUMBERS.format(100) + slow})
        found = []

        async def fetch():
            rows = await dispatch("sql.fetch", {"cursor": opened["cursor"], "max_rows": 10})
            found.extend(row["i"] for row in rows["rows"])

        async with anyio.create_task_group() as tasks:
            for _ in range(9):
                tasks.start_soon(fetch)
        assert sorted(found) == list(range(1, 91))

    await call(work)


async def test_cancelled_fetch_closes_its_cursor(call):
    async def work(dispatch):
        opened = await dispatch("sql.open", {"db": "a.db", "sql": ENDLESS})
        with anyio.move_on_after(0.2) as scope:
            await dispatch("sql.fetch", {"cursor": opened["cursor"]})
        assert scope.cancelled_caught
        with pytest.raises(SqlCursorMissing):
            await dispatch("sql.fetch", {"cursor": opened["cursor"]})

    await call(work)


class TestShortTimeLimit:
    @pytest.fixture
    def settings(self):
        return {"max_seconds": 0.2}

    async def test_slow_fetch_times_out(self, call):
        async def work(dispatch):
            opened = await dispatch("sql.open", {"db": "a.db", "sql": ENDLESS})
            with pytest.raises(SqlTimeout):
                await dispatch("sql.fetch", {"cursor": opened["cursor"]})

        await call(work)


class TestSmallResults:
    @pytest.fixture
    def settings(self):
        return {"max_result_bytes": 1024, "max_export_bytes": 2048}

    async def test_fetch_respects_the_byte_limit_and_loses_no_rows(self, call):
        async def work(dispatch):
            sql = "SELECT i, hex(zeroblob(200)) AS text FROM (" + NUMBERS.format(7) + ")"
            opened = await dispatch("sql.open", {"db": "a.db", "sql": sql})
            found, more = [], True
            while more:
                fetched = await dispatch("sql.fetch", {"cursor": opened["cursor"]})
                assert len(fetched["rows"]) <= 2
                found += [row["i"] for row in fetched["rows"]]
                more = fetched["more"]
            assert found == list(range(1, 8))

        await call(work)

    async def test_oversized_export_fails_and_stores_no_blob(self, call, host):
        before = await host.blobs.list()
        with pytest.raises(ValueError, match=r"2,?048"):
            await host.op("sql.export", {"db": "a.db", "sql": NUMBERS.format(5000)})
        assert await host.blobs.list() == before


async def exported(host, sql, form="jsonl"):
    done = await host.op("sql.export", {"db": "a.db", "sql": sql, "format": form})
    return done, await host.blobs.read(done["sha256"], max_bytes=10_000_000)


async def test_export_contains_every_row_as_json_lines(call, host):
    done, data = await exported(host, NUMBERS.format(25_000))
    assert (done["rows"], done["columns"], done["size"]) == (25_000, ["i"], len(data))
    assert [json.loads(line)["i"] for line in data.splitlines()] == list(range(1, 25_001))


async def test_json_lines_export_distinguishes_bytes_from_text(call, host):
    _, data = await exported(host, "SELECT x'00ff' AS b, 'ü\n' AS t, NULL AS n, 1.5 AS f")
    assert json.loads(data) == {"b": {"__bytes__": "AP8="}, "t": "ü\n", "n": None, "f": 1.5}


async def test_csv_export_quotes_fields(call, host):
    _, data = await exported(host, "SELECT 'a,\"b\"\n' AS \"x,y\", NULL AS n, x'00' AS b", "csv")
    assert data == b'"x,y",n,b\r\n"a,""b""\n",,AA==\r\n'


async def test_export_of_an_infinite_number_is_an_error(call, host):
    with pytest.raises(SqlValue):
        await exported(host, "SELECT 9e999 AS n")


async def test_export_needs_a_grant_to_write_blobs(call, host):
    with pytest.raises(OpDenied, match="blobs"):
        await host.op("sql.export", {"db": "a.db", "sql": "SELECT 1 AS one"}, grants=["sql:path=a.db,mode=read"])


async def test_cursor_cannot_change_anything(call, host):
    async def work(dispatch):
        with pytest.raises(PermissionError):
            await dispatch("sql.open", {"db": "a.db", "sql": "DELETE FROM t RETURNING a"})

    await call(work)


def test_driver_error_names_the_extra_to_install():
    error = SqlDriver("duckdb", "duckdb")
    assert (error.code, "sideband-sql[duckdb]" in error.hint) == ("sql.driver", True)
    assert isinstance(SqlTooLarge("x"), ValueError)
