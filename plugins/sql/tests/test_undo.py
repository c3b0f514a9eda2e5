import apsw
import pytest
from sideband_sql import SqlConflict, SqlError

pytestmark = pytest.mark.anyio

SCHEMA = """
CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, size REAL, data BLOB);
CREATE TABLE loose (a, b);
CREATE TABLE pair (a TEXT, b INTEGER, c, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE log (what TEXT);
CREATE TABLE owner (name TEXT PRIMARY KEY);
CREATE TABLE card (name TEXT REFERENCES owner ON DELETE CASCADE ON UPDATE CASCADE, number INTEGER PRIMARY KEY);
CREATE TRIGGER noted AFTER DELETE ON note BEGIN INSERT INTO log VALUES ('deleted ' || old.title); END;
CREATE TRIGGER added AFTER INSERT ON note BEGIN INSERT INTO log VALUES ('added ' || new.title); END;
INSERT INTO note VALUES (1, 'one', 1.5, x'00ff'), (2, NULL, 9e999, x''), (3, 'three', NULL, NULL);
INSERT INTO loose VALUES (1, 2), (1, 2), ('x', NULL);
INSERT INTO pair VALUES ('a', 1, 'c'), ('a', 2, NULL);
INSERT INTO owner VALUES ('ann'), ('bob');
INSERT INTO card VALUES ('ann', 1), ('ann', 2), ('bob', 3);
DELETE FROM log;
"""


@pytest.fixture
def effects():
    """Collects the ids of effects."""

    class Effects(list):
        def __call__(self, report):
            self.append(report.id)

    return Effects()


@pytest.fixture
def file(host):
    folder = host.home / "data"
    folder.mkdir(parents=True)
    connection = apsw.Connection(str(folder / "a.db"))
    connection.execute(SCHEMA)
    connection.close()
    return folder / "a.db"


@pytest.fixture
def contents(file):
    """Return a function that reads all rows of the database."""

    def read():
        connection = apsw.Connection(str(file))
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {
                table: sorted(map(repr, connection.execute(f"SELECT * FROM {table}")))
                for table in tables
                if table != "_sideband_effects"
            }
        finally:
            connection.close()

    return read


@pytest.fixture
def change(host, file, effects):
    async def run(*statements):
        if len(statements) == 1:
            return await host.op("sql.execute", {"db": "a.db", "sql": statements[0]}, on_effect=effects)
        given = [{"sql": sql} for sql in statements]
        return await host.op("sql.transaction", {"db": "a.db", "statements": given}, on_effect=effects)

    return run


@pytest.fixture
def undo_last(host, effects):
    """Return a function that undoes the last effect and returns what cannot be undone."""

    async def undo():
        planned = await host.plan_undo(effects[-1])
        for step in await host.undo(planned, on_effect=effects):
            if step.error:
                raise step.error
        return planned.remains

    return undo


CHANGES = [
    ("INSERT INTO note VALUES (9, 'nine', 0.1, x'01')",),
    ("UPDATE note SET title = title || '!', size = NULL, data = zeroblob(10)",),
    ("DELETE FROM note",),
    ("REPLACE INTO note VALUES (1, 'other', 2, NULL), (7, 'seven', 2, NULL)",),
    ("UPDATE note SET id = id + 10",),
    ("DELETE FROM loose WHERE rowid = 1",),
    ("UPDATE loose SET b = 5", "INSERT INTO loose VALUES (8, 9)"),
    ("UPDATE pair SET b = b + 5", "DELETE FROM pair WHERE b = 6"),
    ("DELETE FROM owner WHERE name = 'ann'",),
    ("UPDATE owner SET name = 'eve' WHERE name = 'ann'",),
    ("INSERT INTO note (title) VALUES ('x')", "DELETE FROM note WHERE title = 'x'", "UPDATE log SET what = 'y'"),
]


async def test_undo_restores_every_value(change, contents, undo_last):
    before = contents()
    for statements in CHANGES:
        await change(*statements)
        assert contents() != before, statements
        assert await undo_last() == (), statements
        assert contents() == before, statements


async def test_undo_can_be_undone(change, contents, undo_last):
    await change("DELETE FROM note")
    after = contents()
    await undo_last()
    assert contents() != after
    await undo_last()
    assert contents() == after


async def test_executemany_is_undone(host, effects, file, contents, undo_last):
    before = contents()
    rows = [[number] for number in range(500)]
    params = {"db": "a.db", "sql": "INSERT INTO loose VALUES (?, 0)", "rows": rows}
    await host.op("sql.executemany", params, on_effect=effects)
    planned = await host.plan_undo(effects[-1])
    assert [step.text for step in planned.steps] == ["revert the change of `a.db` (500 rows)"]
    await undo_last()
    assert contents() == before


@pytest.mark.parametrize(
    "case",
    [
        ("UPDATE note SET title = 'x'", "UPDATE note SET title = 'y' WHERE id = 1", "modified since"),
        ("UPDATE note SET title = 'x'", "DELETE FROM note WHERE id = 1", "deleted since"),
        ("DELETE FROM note", "INSERT INTO note (id) VALUES (2)", "inserted again"),
        ("INSERT INTO owner VALUES ('eve')", "INSERT INTO card VALUES ('eve', 9)", "refer"),
        ("UPDATE note SET title = 'x'", "ALTER TABLE note ADD COLUMN more", "altered since"),
        ("DELETE FROM loose", "DROP TABLE loose", "altered since"),
        ("DELETE FROM note WHERE id = 1", "CREATE UNIQUE INDEX s ON note (coalesce(title, 'one'))", "constraint"),
    ],
    ids=lambda case: case[1],
)
async def test_later_change_is_a_conflict_and_nothing_is_undone(host, change, contents, effects, case):
    statement, later, problem = case
    await change(statement)
    planned = await host.plan_undo(effects[-1])
    await change(later)
    after = contents()
    (step,) = await host.undo(planned)
    assert step.error.code == "sql.conflict"
    assert problem in step.error.message
    assert contents() == after


async def test_conflict_error_names_table_and_database():
    error = SqlConflict("a.db", "note", "a row was deleted since")
    assert (error.code, bool(error.hint)) == ("sql.conflict", True)
    assert "`note` of `a.db`" in error.message


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (("CREATE TABLE u (a)", "INSERT INTO u VALUES (1)"), "schema"),
        (("DROP TABLE loose",), "schema"),
        (("CREATE INDEX i ON note (title)",), "schema"),
        (("CREATE VIRTUAL TABLE words USING fts5(text)",), "schema"),
        (("INSERT INTO loose VALUES (hex(zeroblob(3000000)), 1)",), "`undo_bytes`"),
    ],
)
async def test_undo_reports_what_cannot_be_undone(host, change, effects, statements, reason):
    await change(*statements)
    planned = await host.plan_undo(effects[-1])
    assert planned.steps == ()
    assert reason in planned.remains[0]


async def test_undo_reports_changes_of_virtual_tables(host, change, effects):
    await change("CREATE VIRTUAL TABLE words USING fts5(text)")
    await change("INSERT INTO words VALUES ('hello')")
    planned = await host.plan_undo(effects[-1])
    assert planned.steps == ()
    assert "virtual" in planned.remains[0]


class TestUndoDisabled:
    @pytest.fixture
    def settings(self):
        return {"undo_bytes": 0}

    async def test_undo_reports_that_it_is_disabled(self, host, change, effects):
        await change("DELETE FROM loose")
        planned = await host.plan_undo(effects[-1])
        assert (planned.steps, "`undo_bytes`" in planned.remains[0]) == ((), True)
        assert await host.blobs.list() == ()


async def test_failed_change_needs_no_undo(host, change, effects):
    with pytest.raises(SqlError):
        await change("INSERT INTO owner VALUES ('ann')")
    assert (await host.plan_undo(effects[-1])).steps == ()


@pytest.mark.parametrize("table", ["sqlite_master", "_sideband_effects", "words_content", "nowhere"])
async def test_forged_inverse_cannot_change_protected_tables(host, change, table):
    await change("CREATE VIRTUAL TABLE words USING fts5(text)")
    other = apsw.Connection(":memory:")
    columns = {"sqlite_master": 5}.get(table, 2)
    names = ", ".join(f"c{number}" for number in range(columns))
    other.execute(f"CREATE TABLE x{table} (c0 INTEGER PRIMARY KEY{names[2:]})")
    session = apsw.Session(other, "main")
    session.attach()
    other.execute(f"INSERT INTO x{table} (c0) VALUES (77)")
    forged = session.changeset().replace(f"x{table}".encode() + b"\0", f"{table}".encode() + b"\0")
    blob = await host.blobs.put(forged)
    with pytest.raises(SqlError):
        await host.op("sql.revert", {"db": "a.db", "changes": blob.sha256})


async def test_invalid_inverse_is_rejected(host, file):
    for data in (b"no changeset", b"T\x03\x01" * 50):
        blob = await host.blobs.put(data)
        with pytest.raises(SqlError):
            await host.op("sql.revert", {"db": "a.db", "changes": blob.sha256})


async def test_missing_inverse_is_a_lookup_error(host, file):
    with pytest.raises(LookupError):
        await host.op("sql.revert", {"db": "a.db", "changes": "0" * 64})


async def test_statements_cannot_change_the_effects_table(host, change):
    await change("INSERT INTO loose VALUES (1, 1)")
    for sql in ("DELETE FROM _sideband_effects", "DROP TABLE _sideband_effects",
                "ALTER TABLE _sideband_effects RENAME TO x", "UPDATE main._SIDEBAND_EFFECTS SET effect = 'x'",
                "CREATE TRIGGER g AFTER INSERT ON _sideband_effects BEGIN DELETE FROM loose; END",
                "CREATE INDEX i ON _sideband_effects (effect)"):  # fmt: skip
        with pytest.raises(SqlError) as caught:
            await change(sql)
        assert caught.value.code == "sql.denied"
