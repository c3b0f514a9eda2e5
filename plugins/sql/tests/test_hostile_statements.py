"""Statements that try to exhaust resources: each one ends in time, with a typed error."""

import anyio
import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_sql import SqlDenied, SqlError, SqlReadonly, SqlSyntax, SqlTimeout, SqlTooLarge
from sideband_sql._sqlite._statement import StatementCheck, is_blank

pytestmark = pytest.mark.anyio

COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) "


@pytest.fixture
async def query(host):
    await host.op("sql.execute", {"db": "a.db", "sql": "CREATE TABLE t (a)"})
    await host.op("sql.execute", {"db": "a.db", "sql": "CREATE VIRTUAL TABLE words USING fts5(text)"})
    await host.op("sql.execute", {"db": "a.db", "sql": f"INSERT INTO words {COUNT.format(500)} SELECT 'w' || i FROM n"})

    async def run(sql, params=(), op="sql.query"):
        with anyio.fail_after(30):
            return await host.op(op, {"db": "a.db", "sql": sql, "params": list(params)})

    return run


BOMBS = [
    "SELECT zeroblob(2147483647) AS x",
    "SELECT hex(zeroblob(16000000)) AS x",
    "SELECT printf('%.*c', 999999999, 'x') AS x",
    "SELECT format('%999999999d', 1) AS x",
    "SELECT quote(zeroblob(16000000)) AS x",
    "SELECT replace(hex(zeroblob(8000)), '0', hex(zeroblob(8000))) AS x",
    f"{COUNT.format(100000)} SELECT length(group_concat(hex(zeroblob(1000)))) AS x FROM n",
    f"{COUNT.format(100000)} SELECT length(json_group_array(hex(zeroblob(1000)))) AS x FROM n",
    "SELECT json('" + "[" * 2000 + "') AS x",
    "SELECT json_extract('" + "[" * 3000 + "]" * 3000 + "', '$') AS x",
    "SELECT 1 IN (" + "1," * 520_000 + "1) AS x",
    "SELECT " + " + ".join(["1"] * 2000) + " AS x",
    "SELECT " + "NOT " * 3000 + "1 AS x",
    "SELECT CASE " + "WHEN 1 THEN 1 " * 100_000 + "END AS x",
    "SELECT max(" + ", ".join(["1"] * 200) + ") AS x",
    "SELECT " + ", ".join(f"1 AS c{number}" for number in range(3000)),
    "SELECT 1 AS x FROM " + ", ".join(f"t AS t{number}" for number in range(70)),
    "SELECT " + "(SELECT " * 150 + "1" + ")" * 150 + " AS x",
    "SELECT unhex('00', '" + "".join(chr(number) for number in range(200, 400)) + "') AS x",
    "SELECT text FROM words WHERE words MATCH '" + "(" * 5000 + "w1" + ")" * 5000 + "'",
    "SELECT text FROM words WHERE words MATCH '" + "NEAR(" * 300 + "'",
    "SELECT text FROM words WHERE words MATCH '\"'",
    "SELECT 'x' REGEXP '(a+)+$' AS x",
    "SELECT 'x' MATCH 'y' AS x",
]


async def test_oversized_statements_are_rejected(query):
    codes = {}
    for sql in BOMBS:
        try:
            await query(sql)
        except (SqlError, ValueError) as error:
            # a statement that is too long fails the validation of its parameters
            codes[sql[:60]] = getattr(error, "code", "") if getattr(error, "hint", "") else "no hint"
    assert set(codes) == {sql[:60] for sql in BOMBS}
    assert set(codes.values()) <= {"sql.too_large", "sql.syntax", "op.params"}


async def test_uninterruptible_and_external_functions_are_denied(query):
    for function in ("json_patch", "jsonb_patch", "JSON_PATCH", "geopoly_overlap", "load_extension"):
        with pytest.raises(SqlDenied, match=function.lower()) as caught:
            await query(f"SELECT {function}('{{}}', '{{}}') AS x")
        assert caught.value.code == "sql.denied"


async def test_unhex_with_long_arguments_is_fast(query):
    long = "ab" * 1_000_000
    assert (await query("SELECT unhex(?, '-') IS NULL AS x", [long]))["rows"] == [{"x": 0}]
    assert (await query("SELECT length(unhex(?, 'xyz')) AS x", [long]))["rows"] == [{"x": 1_000_000}]


ENDLESS = [
    f"{COUNT.format(-1)} SELECT count(*) AS x FROM n",
    f"{COUNT.format(1000)} SELECT count(*) AS x FROM n a, n b, n c, n d",
    "SELECT count(*) AS x FROM words a, words b, words c WHERE a.text LIKE b.text || c.text",
    f"{COUNT.format(30000)} SELECT (SELECT count(*) FROM n b WHERE b.i > a.i) AS x FROM n a ORDER BY x",
    f"{COUNT.format(-1)} SELECT i AS x FROM n WHERE i < 0",
    "SELECT count(*) AS x FROM json_each(?) a, json_each(?) b, json_each(?) c",
]


class TestShortTimeLimit:
    @pytest.fixture
    def settings(self):
        return {"max_seconds": 0.15}

    async def test_endless_query_times_out(self, query):
        for sql in ENDLESS:
            values = ["[" + "1," * 2000 + "1]"] * sql.count("?")
            # the progress callback must stop it, long before the fallback that adds `busy_seconds`
            with anyio.fail_after(8), pytest.raises(SqlTimeout) as caught:
                await query(sql, values)
            assert caught.value.code == "sql.timeout"

    async def test_endless_change_is_rolled_back(self, query):
        with pytest.raises(SqlTimeout):
            await query(f"INSERT INTO t {COUNT.format(-1)} SELECT i FROM n", op="sql.execute")
        assert (await query("SELECT count(*) AS n FROM t"))["rows"] == [{"n": 0}]


class TestSmallMemory:
    @pytest.fixture
    def settings(self):
        return {"max_memory_bytes": 16 * 1024 * 1024}

    async def test_memory_is_limited_and_released(self, query):
        with pytest.raises(SqlTooLarge, match="memory"):
            await query(f"{COUNT.format(200000)} SELECT hex(randomblob(200)) AS x FROM n ORDER BY x")
        assert (await query("SELECT 1 AS one"))["rows"] == [{"one": 1}]


@pytest.fixture(autouse=True)
def restored_memory_limit():
    """Restore the memory limit, which applies to the whole process."""
    before = apsw.hard_heap_limit(-1)
    yield
    apsw.hard_heap_limit(before)


@pytest.mark.parametrize(
    "op", ["sql.query", "sql.execute", "sql.executemany", "sql.transaction", "sql.open", "sql.export"]
)
async def test_every_op_rejects_multiple_statements(query, host, op):
    for sql in ("SELECT 1 AS x; DELETE FROM t", "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", "SELECT 1;;x"):
        shape = {"sql.executemany": {"sql": sql, "rows": [[]]}, "sql.transaction": {"statements": [{"sql": sql}]}}
        with pytest.raises(SqlError):
            await host.op(op, {"db": "a.db", **shape.get(op, {"sql": sql})})
    assert (await query("SELECT count(*) AS n FROM t"))["rows"] == [{"n": 0}]


async def test_trailing_comments_and_empty_statements_are_allowed(query):
    for end in ("", ";", " ; ", "; -- more", "; /* more", "-- ;\n;", ";;;\n"):
        assert (await query(f"/* a */ SELECT 1 AS one {end}"))["rows"] == [{"one": 1}]


@pytest.mark.parametrize(
    "second", ["/**/ DROP TABLE notes", "/* a */ DROP TABLE notes /* b */", "/*/ */ DROP TABLE notes"]
)
async def test_statement_after_a_comment_is_a_second_statement(host, query, second):
    await host.op("sql.execute", {"db": "a.db", "sql": "CREATE TABLE notes (a)"})
    for op in ("sql.execute", "sql.query"):
        with pytest.raises(SqlSyntax, match="more than one"):
            await host.op(op, {"db": "a.db", "sql": f"SELECT 1; {second}"})
    assert (await query("SELECT count(*) AS n FROM notes"))["rows"] == [{"n": 0}]


@pytest.mark.parametrize("text", ["/*", "/**/x", "/* a */ x", "/**/ /* x */ x"])
def test_text_after_a_comment_is_not_blank(text):
    assert not is_blank(text)


@given(st.text(alphabet=" ;-*/\n\tx'\f", max_size=12))
def test_blank_text_is_never_executed(text):
    """SQLite agrees: after a statement, blank text has no effect."""
    connection = apsw.Connection(":memory:")
    try:
        if is_blank(text):
            assert connection.execute("SELECT 1;" + text).fetchall() == [(1,)]
        else:
            with pytest.raises(apsw.Error):
                connection.execute(text).fetchall()
    finally:
        connection.close()


def test_statement_check_rejects_changes_on_its_own():
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE t (a)")
    for sql in ("INSERT INTO t VALUES (1)", "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x RETURNING a"):
        cursor = connection.cursor()
        cursor.exec_trace = StatementCheck(sql, changes=False)
        with pytest.raises(SqlReadonly):
            cursor.execute(sql)
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


async def test_executemany_rejects_a_statement_that_changes_nothing(host, query):
    with pytest.raises(SqlSyntax):
        await host.op("sql.executemany", {"db": "a.db", "sql": "SELECT ?", "rows": [[1], [2]]})
