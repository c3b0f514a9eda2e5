import sqlite3

import pytest
from sideband_sql import SqlMissing, SqlReadonly, SqlSyntax, SqlTooLarge, SqlValue

pytestmark = pytest.mark.anyio


@pytest.fixture
async def notes(host):
    await host.op("sql.execute", {"db": "notes.db", "sql": "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT)"})
    rows = [[number, f"note {number}"] for number in range(1, 21)]
    await host.op("sql.executemany", {"db": "notes.db", "sql": "INSERT INTO notes VALUES (?, ?)", "rows": rows})


@pytest.fixture
def query(host):
    async def run(sql, **more):
        return await host.op("sql.query", {"db": "notes.db", "sql": sql, **more})

    return run


async def test_named_parameters_are_bound(notes, query):
    found = await query("SELECT title FROM notes WHERE id = :id", params={"id": 7})
    assert found == {"columns": ["title"], "rows": [{"title": "note 7"}], "truncated": False}


async def test_positional_parameters_are_bound(notes, query):
    found = await query("SELECT id FROM notes WHERE id > ? AND id < ?", params=[3, 5])
    assert found["rows"] == [{"id": 4}]


async def test_values_of_each_type_round_trip(notes, query):
    values = {"n": None, "i": -(2**63), "f": 0.5, "t": "grüß\n\x00", "b": b"\x00\xff"}
    found = await query("SELECT :n AS n, :i AS i, :f AS f, :t AS t, :b AS b", params=values)
    assert found["rows"] == [values]


async def test_result_over_the_row_limit_is_truncated(notes, query):
    found = await query("SELECT id FROM notes ORDER BY id", max_rows=3)
    assert [row["id"] for row in found["rows"]] == [1, 2, 3]
    assert found["truncated"] is True


async def test_result_at_the_row_limit_is_not_truncated(notes, query):
    assert (await query("SELECT id FROM notes", max_rows=20))["truncated"] is False


@pytest.mark.usefixtures("notes")
class TestSmallResults:
    @pytest.fixture
    def settings(self):
        return {"max_result_bytes": 2048, "max_rows": 5}

    async def test_result_over_the_byte_limit_is_truncated(self, query):
        found = await query("SELECT id, hex(zeroblob(400)) AS text FROM notes LIMIT 4")
        assert len(found["rows"]) == 2
        assert found["truncated"] is True

    async def test_single_row_over_the_limit_is_an_error(self, query):
        with pytest.raises(SqlTooLarge):
            await query("SELECT zeroblob(5000) AS big")

    async def test_max_rows_cannot_exceed_the_configured_limit(self, query):
        assert len((await query("SELECT id FROM notes", max_rows=19))["rows"]) == 5

    async def test_oversized_returning_clause_rolls_back_the_change(self, query, host):
        with pytest.raises(SqlTooLarge):
            await host.op("sql.execute", {"db": "notes.db", "sql": "UPDATE notes SET title = 'x' RETURNING id"})
        assert (await query("SELECT count(*) AS n FROM notes WHERE title = 'x'"))["rows"] == [{"n": 0}]


async def test_duplicate_column_names_are_an_error_that_names_them(notes, query):
    with pytest.raises(SqlSyntax, match="`id`"):
        await query("SELECT a.id, b.id FROM notes a JOIN notes b")


async def test_query_does_not_create_a_missing_database(host, tmp_path):
    with pytest.raises(SqlMissing) as caught:
        await host.op("sql.query", {"db": "nothing.db", "sql": "SELECT 1"})
    assert caught.value.code == "sql.missing"
    assert not (host.home / "data" / "nothing.db").exists()


@pytest.mark.parametrize("sql", ["", "-- nothing", "SELEC 1", "SELECT * FROM nowhere", "SELECT nothing FROM notes"])
async def test_invalid_sql_is_a_syntax_error(notes, query, sql):
    with pytest.raises((SqlSyntax, ValueError)):
        await query(sql)


async def test_error_for_invalid_utf_8_omits_the_text(notes, query):
    with pytest.raises(SqlValue) as caught:
        await query("SELECT CAST(x'73656372657480' AS TEXT) AS t")
    assert "secret" not in caught.value.message


async def test_infinite_number_is_an_error(notes, query):
    with pytest.raises(SqlValue):
        await query("SELECT 9e999 AS n")


async def test_error_for_an_integer_beyond_64_bits_omits_the_number(notes, query):
    with pytest.raises(SqlValue) as caught:
        await query("SELECT ? AS n", params=[2**63])
    assert str(2**63) not in caught.value.message


async def test_missing_parameters_are_named(notes, query):
    with pytest.raises(SqlSyntax, match="id"):
        await query("SELECT :id AS id", params={"other": 1})


async def test_wrong_number_of_positional_parameters_is_an_error_with_a_hint(notes, query):
    for params in ([], [1, 2]):
        with pytest.raises(SqlSyntax, match="bindings") as caught:
            await query("SELECT ? AS id", params=params)
        assert "params" in caught.value.hint


async def test_attached_database_is_readable_by_its_alias(notes, query, host):
    await host.op("sql.execute", {"db": "tags.db", "sql": "CREATE TABLE tags (note INTEGER, tag TEXT)"})
    await host.op("sql.execute", {"db": "tags.db", "sql": "INSERT INTO tags VALUES (7, 'red')"})
    sql = "SELECT title, tag FROM notes JOIN extra.tags ON note = id"
    found = await query(sql, attach={"extra": "tags.db"})
    assert found["rows"] == [{"title": "note 7", "tag": "red"}]


async def test_attached_databases_cannot_be_changed(notes, host):
    await host.op("sql.execute", {"db": "tags.db", "sql": "CREATE TABLE tags (tag TEXT)"})
    with pytest.raises(SqlReadonly):
        await host.op(
            "sql.execute",
            {"db": "notes.db", "sql": "INSERT INTO extra.tags VALUES ('x')", "attach": {"extra": "tags.db"}},
        )


@pytest.mark.parametrize("alias", ["main", "TEMP", "a b", '"; DROP TABLE notes', ""])
async def test_invalid_alias_is_rejected(notes, query, alias):
    with pytest.raises(ValueError, match="`main`"):
        await query("SELECT 1 AS one", attach={alias: "notes.db"})


async def test_full_text_search_and_json_work_in_queries(notes, query, host):
    await host.op("sql.execute", {"db": "notes.db", "sql": "CREATE VIRTUAL TABLE words USING fts5(text)"})
    await host.op("sql.execute", {"db": "notes.db", "sql": "INSERT INTO words VALUES ('hello world')"})
    assert (await query("SELECT text FROM words WHERE words MATCH 'world'"))["rows"] == [{"text": "hello world"}]
    assert (await query("SELECT value FROM json_each('[1,2]')"))["rows"] == [{"value": 1}, {"value": 2}]


async def test_pragma_describes_the_schema(notes, query):
    columns = (await query("PRAGMA table_info(notes)"))["rows"]
    assert [column["name"] for column in columns] == ["id", "title"]


async def test_views_can_use_the_replaced_functions(notes, query, host):
    sql = "CREATE VIEW short AS SELECT replace(trim(title), 'note', '') AS n FROM notes WHERE instr(title, '7')"
    await host.op("sql.execute", {"db": "notes.db", "sql": sql})
    assert (await query("SELECT n FROM short ORDER BY n"))["rows"] == [{"n": " 17"}, {"n": " 7"}]


async def test_external_database_is_readable_by_its_absolute_path(query, host, tmp_path):
    file = tmp_path / "other program?.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    found = await host.op("sql.query", {"db": str(file), "sql": "SELECT count(*) AS n FROM t"})
    assert found["rows"] == [{"n": 0}]
