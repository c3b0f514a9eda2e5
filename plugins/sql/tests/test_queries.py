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


async def test_each_kind_of_value_comes_back_as_it_was(notes, query):
    values = {"n": None, "i": -(2**63), "f": 0.5, "t": "grüß\n\x00", "b": b"\x00\xff"}
    found = await query("SELECT :n AS n, :i AS i, :f AS f, :t AS t, :b AS b", params=values)
    assert found["rows"] == [values]


async def test_rows_beyond_the_limit_are_left_out_and_it_is_said(notes, query):
    found = await query("SELECT id FROM notes ORDER BY id", max_rows=3)
    assert [row["id"] for row in found["rows"]] == [1, 2, 3]
    assert found["truncated"] is True


async def test_exactly_as_many_rows_as_the_limit_are_not_called_truncated(notes, query):
    assert (await query("SELECT id FROM notes", max_rows=20))["truncated"] is False


@pytest.mark.usefixtures("notes")
class TestSmallResults:
    @pytest.fixture
    def settings(self):
        return {"max_result_bytes": 2048, "max_rows": 5}

    async def test_bytes_beyond_the_limit_are_left_out_and_it_is_said(self, query):
        found = await query("SELECT id, hex(zeroblob(400)) AS text FROM notes LIMIT 4")
        assert len(found["rows"]) == 2
        assert found["truncated"] is True

    async def test_a_row_that_does_not_fit_alone_is_an_error(self, query):
        with pytest.raises(SqlTooLarge):
            await query("SELECT zeroblob(5000) AS big")

    async def test_asking_for_more_rows_than_configured_changes_nothing(self, query):
        assert len((await query("SELECT id FROM notes", max_rows=19))["rows"]) == 5

    async def test_a_returning_clause_that_does_not_fit_undoes_its_change(self, query, host):
        with pytest.raises(SqlTooLarge):
            await host.op("sql.execute", {"db": "notes.db", "sql": "UPDATE notes SET title = 'x' RETURNING id"})
        assert (await query("SELECT count(*) AS n FROM notes WHERE title = 'x'"))["rows"] == [{"n": 0}]


async def test_two_columns_of_one_name_are_an_error_that_names_them(notes, query):
    with pytest.raises(SqlSyntax, match="`id`"):
        await query("SELECT a.id, b.id FROM notes a JOIN notes b")


async def test_a_database_that_is_not_there_is_missing_and_not_created(host, tmp_path):
    with pytest.raises(SqlMissing) as caught:
        await host.op("sql.query", {"db": "nothing.db", "sql": "SELECT 1"})
    assert caught.value.code == "sql.missing"
    assert not (host.home / "data" / "nothing.db").exists()


@pytest.mark.parametrize("sql", ["", "-- nothing", "SELEC 1", "SELECT * FROM nowhere", "SELECT nothing FROM notes"])
async def test_what_sqlite_does_not_understand_is_a_syntax_error(notes, query, sql):
    with pytest.raises((SqlSyntax, ValueError)):
        await query(sql)


async def test_text_that_is_no_utf_8_is_an_error_without_the_text(notes, query):
    with pytest.raises(SqlValue) as caught:
        await query("SELECT CAST(x'73656372657480' AS TEXT) AS t")
    assert "secret" not in caught.value.message


async def test_an_infinite_number_is_an_error_since_json_has_none(notes, query):
    with pytest.raises(SqlValue):
        await query("SELECT 9e999 AS n")


async def test_a_number_beyond_64_bits_is_an_error_without_the_number(notes, query):
    with pytest.raises(SqlValue) as caught:
        await query("SELECT ? AS n", params=[2**63])
    assert str(2**63) not in caught.value.message


async def test_missing_parameters_are_named(notes, query):
    with pytest.raises(SqlSyntax, match="id"):
        await query("SELECT :id AS id", params={"other": 1})


async def test_too_few_and_too_many_positional_parameters_are_an_error_that_says_where_they_belong(notes, query):
    for params in ([], [1, 2]):
        with pytest.raises(SqlSyntax, match="bindings") as caught:
            await query("SELECT ? AS id", params=params)
        assert "params" in caught.value.hint


async def test_attached_databases_are_read_under_their_alias(notes, query, host):
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
async def test_an_alias_is_a_plain_name(notes, query, alias):
    with pytest.raises(ValueError, match="plain name"):
        await query("SELECT 1 AS one", attach={alias: "notes.db"})


async def test_full_text_search_and_json_work_in_queries(notes, query, host):
    await host.op("sql.execute", {"db": "notes.db", "sql": "CREATE VIRTUAL TABLE words USING fts5(text)"})
    await host.op("sql.execute", {"db": "notes.db", "sql": "INSERT INTO words VALUES ('hello world')"})
    assert (await query("SELECT text FROM words WHERE words MATCH 'world'"))["rows"] == [{"text": "hello world"}]
    assert (await query("SELECT value FROM json_each('[1,2]')"))["rows"] == [{"value": 1}, {"value": 2}]


async def test_the_schema_can_be_described(notes, query):
    columns = (await query("PRAGMA table_info(notes)"))["rows"]
    assert [column["name"] for column in columns] == ["id", "title"]


async def test_views_may_use_the_functions_that_are_replaced(notes, query, host):
    sql = "CREATE VIEW short AS SELECT replace(trim(title), 'note', '') AS n FROM notes WHERE instr(title, '7')"
    await host.op("sql.execute", {"db": "notes.db", "sql": sql})
    assert (await query("SELECT n FROM short ORDER BY n"))["rows"] == [{"n": " 17"}, {"n": " 7"}]


async def test_a_database_of_another_program_is_read_by_its_absolute_path(query, host, tmp_path):
    file = tmp_path / "other program?.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    found = await host.op("sql.query", {"db": str(file), "sql": "SELECT count(*) AS n FROM t"})
    assert found["rows"] == [{"n": 0}]
