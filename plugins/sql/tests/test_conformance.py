"""The op family passes the tests that every op family passes."""

import sqlite3
from contextlib import closing

from sideband_testing.conformance import Example, OpFamilyConformance

DB = "notes.db"
NOTES = "DROP TABLE IF EXISTS notes; CREATE TABLE notes (title); INSERT INTO notes VALUES ('tea')"
INSERT = "INSERT INTO notes VALUES (?)"


class TestSql(OpFamilyConformance):
    plugin = "op.sql"
    max_modules = 80
    max_steps = 5
    examples = (
        Example("sql.query", {"db": DB, "sql": "SELECT * FROM notes"}),
        Example("sql.query", {"db": DB, "sql": "SELEC"}, error="sql.syntax"),
        Example("sql.open", {"db": DB, "sql": "SELECT * FROM notes"}),
        Example("sql.fetch", {"cursor": "0" * 32}, error="sql.cursor"),
        Example("sql.close", {"cursor": "0" * 32}),
        Example("sql.export", {"db": DB, "sql": "SELECT * FROM notes"}),
        Example("sql.execute", {"db": DB, "sql": INSERT, "params": ["milk"]}),
        Example("sql.executemany", {"db": DB, "sql": INSERT, "rows": [["milk"], ["bread"]]}),
        Example("sql.transaction", {"db": DB, "statements": [{"sql": "DELETE FROM notes"}]}),
        Example("sql.revert", {"db": DB, "changes": "{changes}"}),
    )

    async def prepare_host(self, host, example):
        folder = host.home / "data"
        folder.mkdir(mode=0o700, exist_ok=True)
        with closing(sqlite3.connect(folder / "notes.db")) as database:
            database.executescript(NOTES)
        if example.name == "sql.revert":
            effects = []
            inserting = {"db": DB, "sql": INSERT, "params": ["milk"]}
            await host.op("sql.execute", inserting, on_effect=lambda report: effects.append(report.id))
            (step,) = (await host.plan_undo(effects[-1])).steps
            self.values["changes"] = step.params["changes"]

    def observe(self, folder, home):
        with closing(sqlite3.connect(home / "data" / "notes.db")) as database:
            return database.execute("SELECT title FROM notes").fetchall()
