"""The ops with DuckDB as engine."""

import os
import sys

import anyio
import duckdb
import pytest
from sideband.ops import OpDenied
from sideband_sql import (
    Config,
    SqlBusy,
    SqlConstraint,
    SqlCorrupt,
    SqlDenied,
    SqlDriver,
    SqlEngineOff,
    SqlError,
    SqlMissing,
    SqlReadonly,
    SqlSyntax,
    SqlTimeout,
    SqlTooLarge,
    SqlValue,
)
from sideband_sql._duckdb import DuckdbDriver
from sideband_sql._paths import DatabaseTarget

pytestmark = pytest.mark.anyio

ENDLESS = "SELECT count(*) AS n FROM range(100000000000) a, range(100000) b"


@pytest.fixture
def settings():
    return {"duckdb": True}


@pytest.fixture
def change(host):
    async def run(sql, params=()):
        given = params if isinstance(params, dict) else list(params)
        return await host.op("sql.execute", {"db": "a.duckdb", "sql": sql, "params": given})

    return run


@pytest.fixture
def query(host):
    async def run(sql, **more):
        return await host.op("sql.query", {"db": "a.duckdb", "sql": sql, **more})

    return run


@pytest.fixture
async def db(change):
    await change("CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR)")
    await change("INSERT INTO t VALUES (1, 'one'), (2, NULL)")


@pytest.fixture
def rows(query):
    async def run():
        return [tuple(row.values()) for row in (await query("SELECT a, b FROM t ORDER BY a"))["rows"]]

    return run


async def test_new_database_is_accessible_by_its_owner_only(db, host):
    file = host.home / "data" / "a.duckdb"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in file.parent.iterdir()] == ["a.duckdb"]


async def test_changes_return_affected_rows_and_returning_rows(db, change):
    done = await change("UPDATE t SET b = $b", {"b": "x"})
    assert done == {"rows_affected": 2, "last_insert_rowid": None, "rows": []}
    done = await change("INSERT INTO t VALUES (?, 'three') RETURNING a", [3])
    assert done == {"rows_affected": 1, "last_insert_rowid": None, "rows": [{"a": 3}]}


async def test_executemany_and_transactions_are_atomic(db, host, rows):
    params = {"db": "a.duckdb", "sql": "INSERT INTO t VALUES (?, ?)"}
    assert await host.op("sql.executemany", {**params, "rows": [[5, "x"], [6, "y"]]}) == {"rows_affected": 2}
    with pytest.raises(SqlConstraint) as caught:
        await host.op("sql.executemany", {**params, "rows": [[7, "secret"], [1, "secret"]]})
    assert "secret" not in caught.value.message
    statements = [{"sql": "DELETE FROM t"}, {"sql": "SELEC"}]
    with pytest.raises(SqlSyntax):
        await host.op("sql.transaction", {"db": "a.duckdb", "statements": statements})
    assert [row[0] for row in await rows()] == [1, 2, 5, 6]


async def test_values_are_converted_to_json_types(db, query):
    sql = """SELECT 1 AS i, 2::HUGEINT ** 0 AS h, 170141183460469231731687303715884105727::HUGEINT AS big, true AS t,
        1.50::DECIMAL(4, 2) AS d, DATE '2020-01-02' AS day, [1, 2] AS l, {'x': NULL, 'y': 'z'} AS s, 'ab'::BLOB AS b"""
    (row,) = (await query(sql))["rows"]
    assert row == {"i": 1, "h": 1, "big": "170141183460469231731687303715884105727", "t": True, "d": "1.50",
                   "day": "2020-01-02", "l": [1, 2], "s": {"x": None, "y": "z"}, "b": b"ab"}  # fmt: skip


@pytest.mark.parametrize("sql", ["SELECT 'inf'::DOUBLE AS n", "SELECT ['nan'::DOUBLE] AS n", "SELECT 'x'::INT AS n"])
async def test_value_that_cannot_be_returned_is_an_error(db, query, sql):
    with pytest.raises(SqlValue):
        await query(sql)


async def test_result_over_the_row_limit_is_truncated(db, query):
    found = await query("SELECT range AS n FROM range(10)", max_rows=3)
    assert ([row["n"] for row in found["rows"]], found["truncated"]) == ([0, 1, 2], True)


async def test_export_contains_every_row(db, host):
    done = await host.op("sql.export", {"db": "a.duckdb", "sql": "SELECT range AS n FROM range(5000)"})
    assert done["rows"] == 5000


CHANGES = [
    "INSERT INTO t VALUES (3, '')",
    "WITH x AS (SELECT 3) INSERT INTO t SELECT *, '' FROM x RETURNING a",
    "DELETE FROM t",
    "DROP TABLE t",
    "CREATE TEMP TABLE u (a INTEGER)",
    "CREATE MACRO m() AS 1",
    "ALTER TABLE t ADD COLUMN c INTEGER",
]


async def test_query_cannot_change_anything(db, query, rows):
    for sql in CHANGES:
        with pytest.raises(SqlReadonly):
            await query(sql)
    assert await rows() == [(1, "one"), (2, None)]


FORBIDDEN = [
    "ATTACH '{out}/x.duckdb' AS x",
    "ATTACH ':memory:' AS x",
    "DETACH a",
    "COPY t TO '{out}/x'",
    "COPY t FROM '/etc/passwd'",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "EXPORT DATABASE '{out}/x'",
    "IMPORT DATABASE '{out}/x'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{out}/x.so'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET memory_limit = '100GB'",
    "SET SESSION threads = 9",
    "SET VARIABLE x = 1",
    "RESET memory_limit",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "CALL enable_logging(storage = 'file')",
    "CHECKPOINT",
    "VACUUM",
    "BEGIN",
    "COMMIT",
    "PREPARE p AS SELECT 1",
    "EXPLAIN ANALYZE DELETE FROM t",
    "USE memory",
    "SELECT 1; DELETE FROM t",
    "DELETE FROM t; COMMIT",
    "CREATE PERSISTENT SECRET s (TYPE http)",
    "CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET 'y')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_parquet('https://127.0.0.1/x')",
    "SELECT * FROM parquet_scan('/etc/passwd')",
    "SELECT getenv('HOME') AS x",
    "SELECT * FROM query('DELETE FROM t')",
    "CREATE TABLE u AS FROM read_csv('/etc/passwd')",
    "CREATE VIEW v AS FROM read_csv('/etc/passwd')",
]


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("op", ["sql.query", "sql.execute"])
async def test_access_outside_the_database_is_rejected(host, rows, tmp_path, op):
    out = tmp_path / "out"
    out.mkdir()
    succeeded = []
    # `sql.query` rejects all other kinds of statements by their type
    for sql in FORBIDDEN if op == "sql.execute" else [sql for sql in FORBIDDEN if sql.startswith("SELECT")]:
        try:
            await host.op(op, {"db": "a.duckdb", "sql": sql.format(out=out)})
        except SqlError as error:
            if "root:" not in error.message:
                continue
        succeeded.append(sql)
    assert succeeded == []
    assert await rows() == [(1, "one"), (2, None)]
    assert list(out.iterdir()) == []


async def test_cancellation_interrupts_an_endless_query(db, query):
    with anyio.move_on_after(0.1) as scope, anyio.fail_after(10):
        await query(ENDLESS)
    assert scope.cancelled_caught


@pytest.mark.usefixtures("db")
class TestShortTimeLimit:
    @pytest.fixture
    def settings(self):
        return {"duckdb": True, "max_seconds": 0.2, "busy_seconds": 0.1}

    async def test_slow_statement_times_out(self, query):
        with pytest.raises(SqlTimeout):
            await query(ENDLESS)

    async def test_database_locked_by_another_process_is_a_busy_error(self, query, host):
        code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", code, str(host.home / "data" / "a.duckdb")]
        async with await anyio.open_process(command) as holder:
            await holder.stdout.receive(1)
            with pytest.raises(SqlBusy) as caught:
                await query("SELECT 1 AS one")
            assert caught.value.retryable
            holder.kill()


@pytest.mark.usefixtures("db")
class TestSmallMemory:
    @pytest.fixture
    def settings(self):
        return {"duckdb": True, "max_memory_bytes": 32 * 1024 * 1024}

    async def test_memory_is_limited(self, query):
        with pytest.raises(SqlTooLarge):
            await query("SELECT list(range || 'some text that is long') AS x FROM range(5000000)")


@pytest.mark.usefixtures("db")
def test_configuration_is_locked_at_the_engine_level(host):
    file = host.home / "data" / "a.duckdb"
    session = DuckdbDriver().open(DatabaseTarget("a.duckdb", file, managed=True), {}, Config(), changes=True)
    try:
        for sql in ("SET memory_limit = '100GB'", "SET enable_external_access = true", "RESET memory_limit"):
            with pytest.raises(duckdb.Error, match="locked"):
                session.connection.execute(sql)
    finally:
        session.close()


async def test_concurrent_reads_and_writes_are_serialized(db, change, query, rows):
    async def read():
        await query("SELECT count(*) AS n FROM t")

    async def write():
        await change("UPDATE t SET a = a + 10 WHERE b IS NULL")

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(read)
            tasks.start_soon(write)
    assert await rows() == [(1, "one"), (82, None)]


async def test_undo_reports_that_changes_cannot_be_undone(db, host):
    effects = []
    params = {"db": "a.duckdb", "sql": "DELETE FROM t"}
    await host.op("sql.execute", params, on_effect=lambda report: effects.append(report.id))
    planned = await host.plan_undo(effects[-1])
    assert (planned.steps, "DuckDB" in planned.remains[0]) == ((), True)
    blob = await host.blobs.put(b"changes")
    with pytest.raises(SqlDenied):
        await host.op("sql.revert", {"db": "a.duckdb", "changes": blob.sha256})


async def test_attached_databases_are_read_only_and_of_the_same_engine(db, host, query, change):
    await host.op("sql.execute", {"db": "b.duckdb", "sql": "CREATE TABLE u AS SELECT 7 AS n"})
    assert (await query("SELECT n FROM b.u", attach={"b": "b.duckdb"}))["rows"] == [{"n": 7}]
    with pytest.raises(SqlError):
        await host.op("sql.execute", {"db": "a.duckdb", "sql": "DELETE FROM b.u", "attach": {"b": "b.duckdb"}})
    await host.op("sql.execute", {"db": "c.db", "sql": "CREATE TABLE u (n)"})
    for one, other in (("a.duckdb", "c.db"), ("c.db", "a.duckdb")):
        with pytest.raises(SqlDenied, match="attaching"):
            await host.op("sql.query", {"db": one, "sql": "SELECT 1 AS one", "attach": {"x": other}})


async def test_read_grant_does_not_allow_writing(db, host):
    grants = ["sql:path=a.duckdb,mode=read"]
    await host.op("sql.query", {"db": "a.duckdb", "sql": "SELECT 1 AS one"}, grants=grants)
    with pytest.raises(OpDenied):
        await host.op("sql.execute", {"db": "a.duckdb", "sql": "DELETE FROM t"}, grants=grants)


async def test_unknown_database_is_a_missing_error(host):
    with pytest.raises(SqlMissing):
        await host.op("sql.query", {"db": "none.duckdb", "sql": "SELECT 1 AS one"})


async def test_error_for_an_invalid_file_omits_its_content(host, tmp_path):
    (tmp_path / "x.duckdb").write_text("a secret text " * 1000)
    with pytest.raises(SqlCorrupt) as caught:
        await host.op("sql.query", {"db": str(tmp_path / "x.duckdb"), "sql": "SELECT 1 AS one"})
    assert "secret" not in caught.value.message


async def test_log_that_is_a_link_is_rejected(db, host, tmp_path):
    duckdb.connect(str(tmp_path / "x.duckdb")).close()
    (tmp_path / "victim").write_text("untouched")
    for make in (os.symlink, os.link):
        make(tmp_path / "victim", tmp_path / "x.duckdb.wal")
        with pytest.raises(SqlDenied):
            await host.op("sql.execute", {"db": str(tmp_path / "x.duckdb"), "sql": "CREATE TABLE t (a INTEGER)"})
        (tmp_path / "x.duckdb.wal").unlink()
    assert (tmp_path / "victim").read_text() == "untouched"


async def test_missing_library_error_names_the_extra_to_install(host, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sideband_sql._duckdb")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(SqlDriver) as caught:
        await host.op("sql.execute", {"db": "a.duckdb", "sql": "CREATE TABLE t (a INTEGER)"})
    assert (caught.value.code, "sideband-sql[duckdb]" in caught.value.hint) == ("sql.driver", True)


@pytest.mark.parametrize("settings", [{}])
async def test_engine_is_disabled_by_default(host, settings):
    with pytest.raises(SqlEngineOff) as caught:
        await host.op("sql.execute", {"db": "a.duckdb", "sql": "CREATE TABLE t (a INTEGER)"})
    with pytest.raises(SqlEngineOff):
        await host.op("sql.query", {"db": "a.duckdb", "sql": "SELECT 1"})
    assert caught.value.code == "sql.engine"
    assert "`duckdb = true`" in caught.value.hint
