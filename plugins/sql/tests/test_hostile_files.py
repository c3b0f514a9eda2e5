"""Untrusted databases: a host that reads or changes them must not trust anything in them."""

import random

import anyio
import apsw
import pytest
from sideband_sql import SqlCorrupt, SqlDenied, SqlError, SqlSyntax

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(tmp_path):
    return tmp_path / "hostile.db"


@pytest.fixture
def make(file):
    """Return a function that creates the file, then adds schema entries that no statement can create."""

    def run(statements, entries=()):
        connection = apsw.Connection(str(file))
        connection.execute(statements)
        connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
        for entry in entries:
            connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", entry)
        connection.close()

    return run


@pytest.fixture
def query(host, file):
    async def run(sql):
        return (await host.op("sql.query", {"db": str(file), "sql": sql}))["rows"]

    return run


@pytest.fixture
def change(host, file):
    async def run(sql):
        return await host.op("sql.execute", {"db": str(file), "sql": sql})

    return run


FORBIDDEN = ["load_extension('/tmp/x.so')", "fts3_tokenizer('simple')", "json_patch('{}', '{}')", "geopoly_area('[]')"]


@pytest.mark.parametrize("call", FORBIDDEN)
async def test_views_and_triggers_cannot_call_forbidden_functions(make, query, change, call):
    # SQLite does not accept these in a new schema any more, but older files may contain them
    make(
        "CREATE TABLE t (a, b)",
        [
            ("view", "v", "v", 0, f"CREATE VIEW v AS SELECT {call} AS x"),
            ("trigger", "g", "t", 0, f"CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT {call}; END"),
        ],
    )
    for work in (query("SELECT x FROM v"), change("INSERT INTO t VALUES (1, 2)")):
        with pytest.raises(SqlDenied):
            await work


async def test_view_cannot_read_pragma_tables(make, query):
    make("CREATE VIEW v AS SELECT name FROM pragma_function_list")
    with pytest.raises(SqlDenied, match="unsafe use"):
        await query("SELECT name FROM v")


@pytest.mark.parametrize("module", ["fts3(a)", "fts4(a)", "dbstat", "sqlite_dbpage", "carray", "geopoly(a)"])
async def test_virtual_table_of_an_unlisted_module_is_rejected(make, query, module):
    make("CREATE TABLE t (a)", [("table", "v", "v", 0, f"CREATE VIRTUAL TABLE v USING {module}")])
    with pytest.raises(SqlError):
        await query("SELECT count(*) AS n FROM v")
    assert await query("SELECT count(*) AS n FROM t") == [{"n": 0}]


@pytest.mark.parametrize("name", ["dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode('SELECT 1')"])
async def test_engine_tables_do_not_exist(make, query, name):
    make("CREATE TABLE t (a)")
    with pytest.raises(SqlError):
        await query(f"SELECT * FROM {name}")


@pytest.mark.parametrize(
    "entry",
    [
        ("view", "v", "v", 0, "CREATE VIEW v AS SELECT * FROM v"),
        ("table", "u", "u", 999, "CREATE TABLE u (a)"),
        ("table", "u", "u", 1, "CREATE TABLE u (a)"),
        ("table", "u", "u", 0, "CREATE TABLE u AS SELECT 1"),
        ("index", "i", "t", 2, "CREATE INDEX i ON t (a)"),
        ("table", "u", "u", 3, "DELETE FROM t"),
        ("table", None, None, None, None),
    ],
)
async def test_malformed_schema_is_an_error(make, query, entry):
    make("CREATE TABLE t (a)", [entry])
    with pytest.raises(SqlError) as caught:
        await query(f"SELECT * FROM {entry[1] or 't'}")
    assert caught.value.hint


class TestShortTimeLimit:
    @pytest.fixture
    def settings(self):
        return {"max_seconds": 0.15}

    async def test_exponential_views_time_out(self, make, query):
        views = "".join(
            f"CREATE VIEW v{n} AS SELECT * FROM v{n - 1} UNION ALL SELECT * FROM v{n - 1};" for n in range(1, 60)
        )
        make(f"CREATE TABLE v0 (a); {views}")
        with anyio.fail_after(20), pytest.raises(SqlError):
            await query("SELECT count(*) AS n FROM v59")

    async def test_recursive_triggers_terminate(self, make, change):
        make("CREATE TABLE t (a); CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO t SELECT a + 1 FROM t; END")
        with anyio.fail_after(20):
            try:
                await change("PRAGMA recursive_triggers = 1")
            except SqlDenied:
                await change("INSERT INTO t VALUES (1)")


async def test_shadow_table_is_read_only(make, change):
    make("CREATE VIRTUAL TABLE words USING fts5(text)")
    with pytest.raises(SqlError):
        await change("INSERT INTO words_data VALUES (99, x'00')")


async def test_largest_page_size_is_supported(make, query):
    make("PRAGMA page_size = 65536; CREATE TABLE t (a); INSERT INTO t VALUES (hex(zeroblob(100000)))")
    assert await query("SELECT length(a) AS n FROM t") == [{"n": 200_000}]


async def test_unusable_shared_memory_file_is_an_error(make, query, file):
    make("PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
    file.with_name("hostile.db-shm").mkdir()
    with pytest.raises(SqlError):
        await query("SELECT a FROM t")


async def test_unknown_double_quoted_name_is_a_syntax_error(make, query):
    make("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    with pytest.raises(SqlSyntax, match="nothing"):
        await query('SELECT "nothing" AS x FROM t')


async def test_damaged_file_causes_only_typed_errors(make, host, file):
    make(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b); CREATE INDEX i ON t (b);"
        "CREATE VIRTUAL TABLE words USING fts5(text); CREATE VIRTUAL TABLE place USING rtree(id, x0, x1);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
        "INSERT INTO t SELECT i, hex(zeroblob(i)) FROM n;"
        "INSERT INTO words SELECT 'word' || a FROM t; INSERT INTO place SELECT a, a, a + 1 FROM t"
    )
    intact = file.read_bytes()
    rng = random.Random(7)
    statements = [
        "SELECT * FROM t ORDER BY b",
        "SELECT * FROM words WHERE words MATCH 'word*'",
        "SELECT * FROM place WHERE x0 > 5",
        "PRAGMA integrity_check",
    ]
    codes = set()
    for _ in range(60):
        damaged = bytearray(intact)
        for _ in range(rng.randrange(1, 30)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        file.write_bytes(damaged)
        for sql, op in ((rng.choice(statements), "sql.query"), ("DELETE FROM t WHERE a % 2", "sql.execute")):
            try:
                await host.op(op, {"db": str(file), "sql": sql})
            except SqlError as error:
                codes.add(error.code)
    assert SqlCorrupt.code in codes
    assert codes <= {
        "sql.corrupt",
        "sql.syntax",
        "sql.value",
        "sql.denied",
        "sql.too_large",
        "sql.missing",
        "sql.constraint",
        "sql.storage",
        "sql.readonly",
    }
