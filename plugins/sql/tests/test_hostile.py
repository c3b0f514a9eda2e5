import os
import sqlite3
from contextlib import suppress

import anyio
import pytest
from sideband import Plugin, hookimpl
from sideband.ops import OpDenied
from sideband_sql import SqlCorrupt, SqlDenied, SqlError, SqlReadonly, SqlTimeout, SqlTooLarge

pytestmark = pytest.mark.anyio

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0"


@pytest.fixture
async def db(host):
    await host.op("sql.execute", {"db": "a.db", "sql": "CREATE TABLE t (a)"})
    await host.op("sql.execute", {"db": "a.db", "sql": "INSERT INTO t VALUES (1)"})


async def count(host):
    return (await host.op("sql.query", {"db": "a.db", "sql": "SELECT count(*) AS n FROM t"}))["rows"][0]["n"]


CHANGES = [
    "INSERT INTO t VALUES (2)",
    "WITH x AS (SELECT 2) INSERT INTO t SELECT * FROM x RETURNING a",
    "DELETE FROM t",
    "DROP TABLE t",
    "CREATE TEMP TABLE u (a)",
    "CREATE TABLE u (a)",
    "ALTER TABLE t ADD COLUMN b",
    "EXPLAIN DELETE FROM t",
    "PRAGMA user_version = 5",
    "ANALYZE",
]


async def test_query_cannot_change_anything(db, host):
    for sql in CHANGES:
        with pytest.raises(SqlReadonly):
            await host.op("sql.query", {"db": "a.db", "sql": sql})
    assert await count(host) == 1


OUTSIDE = [
    "ATTACH '/etc/passwd' AS x",
    "ATTACH ':memory:' AS x",
    "DETACH main",
    "SELECT load_extension('/tmp/x.so')",
    "SELECT fts3_tokenizer('simple')",
    "PRAGMA writable_schema = 1",
    "PRAGMA writable_schema(1)",
    "PRAGMA trusted_schema = 1",
    "PRAGMA query_only = 0",
    "PRAGMA journal_mode = OFF",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA hard_heap_limit = 1",
    "PRAGMA wal_checkpoint",
    "PRAGMA database_list",
    "PRAGMA schema_version = 7",
    "SELECT * FROM pragma_database_list",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT x",
]


@pytest.mark.parametrize("op", ["sql.query", "sql.execute"])
async def test_access_outside_the_database_is_denied(db, host, op):
    allowed = []
    for sql in OUTSIDE:
        with suppress(SqlDenied):
            await host.op(op, {"db": "a.db", "sql": sql})
            allowed.append(sql)
    assert allowed == []
    assert await count(host) == 1


ESCAPES = [
    "SELECT 1; DELETE FROM t",
    "DELETE FROM t; COMMIT",
    "UPDATE sqlite_master SET sql = ''",
    "DELETE FROM sqlite_schema",
    "SELECT writefile('/tmp/sideband-test', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x')",
    "CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')",
    "VACUUM",
]


@pytest.mark.parametrize("op", ["sql.query", "sql.execute"])
async def test_known_escapes_are_rejected(db, host, op):
    allowed = []
    for sql in ESCAPES:
        with suppress(SqlError):
            await host.op(op, {"db": "a.db", "sql": sql})
            allowed.append(sql)
    assert allowed == []
    assert await count(host) == 1


async def test_vacuum_into_another_file_is_rejected(db, host, tmp_path):
    for op in ("sql.query", "sql.execute"):
        with pytest.raises(SqlError):
            await host.op(op, {"db": "a.db", "sql": f"VACUUM INTO '{tmp_path}/copy.db'"})
    assert not (tmp_path / "copy.db").exists()


async def test_views_and_triggers_are_restricted_like_statements(db, host):
    file = host.home / "data" / "a.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE VIEW v AS SELECT load_extension('/tmp/x.so') AS x")
        connection.execute("CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT fts3_tokenizer('simple'); END")
    connection.close()
    with pytest.raises(SqlDenied):
        await host.op("sql.query", {"db": "a.db", "sql": "SELECT x FROM v"})
    with pytest.raises(SqlDenied):
        await host.op("sql.execute", {"db": "a.db", "sql": "INSERT INTO t VALUES (3)"})


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancellation_interrupts_an_endless_query(db, host):
    started = anyio.current_time()
    with anyio.move_on_after(0.1) as scope:
        await host.op("sql.query", {"db": "a.db", "sql": ENDLESS})
    assert scope.cancelled_caught
    assert anyio.current_time() - started < 3


async def test_cancelled_change_is_rolled_back(db, host):
    endless_insert = f"INSERT INTO t {ENDLESS}"
    with anyio.move_on_after(0.1):
        await host.op("sql.execute", {"db": "a.db", "sql": endless_insert})
    assert await count(host) == 1
    await host.op("sql.execute", {"db": "a.db", "sql": "INSERT INTO t VALUES (2)"})


@pytest.mark.usefixtures("db")
class TestShortTimeLimit:
    @pytest.fixture
    def settings(self):
        return {"max_seconds": 0.1}

    async def test_slow_statement_times_out(self, host):
        with pytest.raises(SqlTimeout) as caught:
            await host.op("sql.query", {"db": "a.db", "sql": ENDLESS})
        assert caught.value.code == "sql.timeout"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT trim(:a, :b || 'a') AS x",
        "SELECT rtrim(:a, :b || 'a') AS x",
        "SELECT instr(:a, substr(:a, 1, 4000000) || 'b') AS x",
        "SELECT replace(:a, substr(:a, 1, 4000000) || 'b', '') IS NULL AS x",
    ],
)
async def test_functions_with_long_arguments_are_fast(db, host, sql):
    size = 8_000_000
    params = {"a": "a" * size, "b": "b" * size}
    used = {name: value for name, value in params.items() if f":{name}" in sql}
    with anyio.fail_after(10):
        await host.op("sql.query", {"db": "a.db", "sql": sql, "params": used})


OVERSIZED = [
    "SELECT 'a' LIKE '" + "%a" * 100 + "'",
    "SELECT 'a' GLOB '" + "*a" * 100 + "'",
    "SELECT zeroblob(1000000000)",
    "SELECT replace(zeroblob(8000), x'00', zeroblob(8000))",
    "SELECT " + "(" * 300 + "1" + ")" * 300,
    "SELECT 1" + " UNION SELECT 1" * 200,
]


async def test_oversized_statements_are_rejected(db, host):
    codes = set()
    for sql in OVERSIZED:
        with pytest.raises(SqlError) as caught:
            await host.op("sql.query", {"db": "a.db", "sql": sql})
        codes.add(caught.value.code)
    assert codes == {"sql.too_large", "sql.syntax"}


async def test_complex_like_pattern_is_too_large(db, host):
    with pytest.raises(SqlTooLarge):
        await host.op("sql.query", {"db": "a.db", "sql": "SELECT 'a' LIKE ?", "params": ["%a" * 100]})


INVALID_NAMES = [
    "../a.db", "a/../b.db", "a/b.db", "", ".hidden", "-x", ":memory:", "file:a.db?mode=rw", "a.db-wal", "A.DB-SHM",
    "/etc/x-journal", "~root/x.db", "a\x00.db", "a b", "/a" * 2_049,
]  # fmt: skip


async def test_invalid_database_names_are_rejected(host):
    for name in INVALID_NAMES:
        with pytest.raises(ValueError, match="db"):
            await host.op("sql.execute", {"db": name, "sql": "CREATE TABLE t (a)"})


async def test_link_in_the_data_folder_is_denied(db, host, tmp_path):
    outside = tmp_path / "outside.db"
    sqlite3.connect(outside).close()
    (host.home / "data" / "link.db").symlink_to(outside)
    for op in ("sql.query", "sql.execute"):
        with pytest.raises(SqlDenied):
            await host.op(op, {"db": "link.db", "sql": "SELECT 1 AS one"})


async def test_dangling_link_in_the_data_folder_creates_no_file(db, host, tmp_path):
    (host.home / "data" / "link.db").symlink_to(tmp_path / "outside.db")
    with pytest.raises(SqlDenied):
        await host.op("sql.execute", {"db": "link.db", "sql": "CREATE TABLE u (a)"})
    assert not (tmp_path / "outside.db").exists()


async def test_pipe_and_folder_are_denied_as_database(host, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(SqlDenied):
            await host.op("sql.query", {"db": str(place), "sql": "SELECT 1 AS one"})


async def test_state_of_the_host_is_denied(db, host):
    sqlite3.connect(host.home / "state.db").close()
    with pytest.raises(SqlDenied, match="belongs to the host"):
        await host.op("sql.query", {"db": str(host.home / "state.db"), "sql": "SELECT 1 AS one"})


async def test_error_for_an_invalid_file_omits_its_content(host, tmp_path):
    (tmp_path / "text.db").write_text("a secret text " * 100)
    with pytest.raises(SqlCorrupt) as caught:
        await host.op("sql.query", {"db": str(tmp_path / "text.db"), "sql": "SELECT * FROM sqlite_master"})
    assert "secret" not in caught.value.message


class TestReplacedLinks:
    @pytest.fixture
    def link(self, tmp_path):
        for name in ("allowed", "secret"):
            sqlite3.connect(tmp_path / f"{name}.db").close()
        link = tmp_path / "link.db"
        link.symlink_to(tmp_path / "allowed.db")
        return link

    @pytest.fixture
    def more_plugins(self, link, tmp_path):
        @hookimpl
        def op_call(event):
            link.unlink()
            link.symlink_to(tmp_path / "secret.db")

        return [Plugin("guard", "swap", type("Guard", (), {"op_call": staticmethod(op_call)}))]

    async def test_link_that_changes_after_the_grant_check_is_denied(self, host, link, tmp_path):
        params = {"db": str(link), "sql": "SELECT 1 AS one"}
        with pytest.raises(OpDenied):
            await host.op("sql.query", params, grants=[f"sql:path={tmp_path}/allowed.db"])


@pytest.mark.usefixtures("db")
class TestGrants:
    async def test_read_grant_does_not_allow_writing(self, host):
        grants = ["sql:path=a.db,mode=read"]
        await host.op("sql.query", {"db": "a.db", "sql": "SELECT 1 AS one"}, grants=grants)
        with pytest.raises(OpDenied):
            await host.op("sql.execute", {"db": "a.db", "sql": "DELETE FROM t"}, grants=grants)

    async def test_attached_database_needs_its_own_grant(self, host):
        await host.op("sql.execute", {"db": "b.db", "sql": "CREATE TABLE t (a)"})
        params = {"db": "a.db", "sql": "SELECT * FROM b.t", "attach": {"b": "b.db"}}
        with pytest.raises(OpDenied):
            await host.op("sql.query", params, grants=["sql:path=a.db"])
        await host.op("sql.query", params, grants=["sql:path=a.db", "sql:path=b.db,mode=read"])

    async def test_grant_applies_to_the_target_of_a_link(self, host, tmp_path):
        sqlite3.connect(tmp_path / "secret.db").close()
        (tmp_path / "open.db").symlink_to(tmp_path / "secret.db")
        params = {"db": str(tmp_path / "open.db"), "sql": "SELECT 1 AS one"}
        with pytest.raises(OpDenied):
            await host.op("sql.query", params, grants=[f"sql:path={tmp_path}/open.db"])
        await host.op("sql.query", params, grants=[f"sql:path={tmp_path}/secret.db"])

    async def test_path_with_dots_is_resolved_before_the_grant_check(self, host, tmp_path):
        (tmp_path / "allowed").mkdir()
        sqlite3.connect(tmp_path / "secret.db").close()
        params = {"db": f"{tmp_path}/allowed/../secret.db", "sql": "SELECT 1 AS one"}
        with pytest.raises(OpDenied):
            await host.op("sql.query", params, grants=[f"sql:path={tmp_path}/allowed/*"])
