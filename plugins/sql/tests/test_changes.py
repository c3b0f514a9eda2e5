import stat
import subprocess
import sys

import anyio
import apsw
import pytest
from sideband_sql import SqlBusy, SqlConstraint, SqlError, SqlMissing, SqlStorage, SqlSyntax

pytestmark = pytest.mark.anyio


@pytest.fixture
def change(host):
    async def run(sql, params=()):
        given = params if isinstance(params, dict) else list(params)
        return await host.op("sql.execute", {"db": "bank.db", "sql": sql, "params": given})

    return run


@pytest.fixture
async def bank(change):
    await change("CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER CHECK (balance >= 0))")
    await change("INSERT INTO account VALUES ('ann', 10), ('bob', 0)")


@pytest.fixture
def balances(host):
    async def read():
        found = await host.op("sql.query", {"db": "bank.db", "sql": "SELECT name, balance FROM account"})
        return {row["name"]: row["balance"] for row in found["rows"]}

    return read


async def test_new_database_is_accessible_by_its_owner_only(bank, host):
    file = host.home / "data" / "bank.db"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_insert_returns_row_count_and_rowid(bank, change):
    done = await change("INSERT INTO account VALUES (:name, :balance)", {"name": "eve", "balance": 1})
    assert done == {"rows_affected": 1, "last_insert_rowid": 3, "rows": []}


async def test_update_returns_no_rowid(bank, change):
    done = await change("UPDATE account SET balance = balance + 1")
    assert done == {"rows_affected": 2, "last_insert_rowid": None, "rows": []}


async def test_returning_clause_returns_rows(bank, change):
    done = await change("UPDATE account SET balance = 5 WHERE name = ? RETURNING name, balance", ["ann"])
    assert done == {"rows_affected": 1, "last_insert_rowid": None, "rows": [{"name": "ann", "balance": 5}]}


async def test_constraint_violation_is_reported_and_rolled_back(bank, change, balances):
    with pytest.raises(SqlConstraint, match="CHECK") as caught:
        await change("UPDATE account SET balance = balance - 5")
    assert caught.value.code == "sql.constraint"
    assert await balances() == {"ann": 10, "bob": 0}


async def test_foreign_keys_are_enforced(bank, change):
    await change("CREATE TABLE card (owner TEXT REFERENCES account(name))")
    with pytest.raises(SqlConstraint, match="FOREIGN KEY"):
        await change("INSERT INTO card VALUES ('nobody')")


async def test_executemany_writes_all_rows(bank, host, balances):
    rows = [{"n": f"user {number}"} for number in range(1000)]
    done = await host.op(
        "sql.executemany", {"db": "bank.db", "sql": "INSERT INTO account VALUES (:n, 1)", "rows": rows}
    )
    assert done == {"rows_affected": 1000}
    assert len(await balances()) == 1002


async def test_executemany_is_atomic(bank, host, balances):
    rows = [["eve", 1], ["ann", 1]]
    with pytest.raises(SqlConstraint):
        await host.op("sql.executemany", {"db": "bank.db", "sql": "INSERT INTO account VALUES (?, ?)", "rows": rows})
    assert await balances() == {"ann": 10, "bob": 0}


async def test_transaction_returns_a_result_per_statement(bank, host, balances):
    statements = [
        {"sql": "UPDATE account SET balance = balance - 4 WHERE name = 'ann'"},
        {"sql": "UPDATE account SET balance = balance + ? WHERE name = 'bob'", "params": [4]},
        {"sql": "INSERT INTO account VALUES ('eve', 0)"},
        {"sql": "DELETE FROM account WHERE name = 'eve'"},
    ]
    done = await host.op("sql.transaction", {"db": "bank.db", "statements": statements})
    assert [one["rows_affected"] for one in done["results"]] == [1, 1, 1, 1]
    assert [one["last_insert_rowid"] for one in done["results"]] == [None, None, 3, None]
    assert await balances() == {"ann": 6, "bob": 4}


@pytest.mark.parametrize(
    "second",
    [
        "UPDATE account SET balance = balance - 99 WHERE name = 'bob'",
        "INSERT OR ROLLBACK INTO account VALUES ('bob', 1)",
        "SELEC",
        "COMMIT",
    ],
)
async def test_failing_second_statement_rolls_back_the_transaction(bank, host, balances, second):
    statements = [{"sql": "UPDATE account SET balance = 99 WHERE name = 'ann'"}, {"sql": second}]
    with pytest.raises(SqlError):
        await host.op("sql.transaction", {"db": "bank.db", "statements": statements})
    assert await balances() == {"ann": 10, "bob": 0}


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_concurrent_changes_are_all_applied(bank, host, change, balances):
    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(change, "UPDATE account SET balance = balance + 1 WHERE name = 'ann'")
            tasks.start_soon(balances)
    assert (await balances())["ann"] == 50


_OTHER_WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
for _ in range(100):
    connection.execute("UPDATE account SET balance = balance + 1 WHERE name = 'bob'")
"""


async def test_another_process_can_write_concurrently(bank, host, change, balances):
    command = [sys.executable, "-c", _OTHER_WRITER, str(host.home / "data" / "bank.db")]
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL) as process:
        for _ in range(30):
            await change("UPDATE account SET balance = balance + 1 WHERE name = 'ann'")
        assert await process.wait() == 0
    assert await balances() == {"ann": 40, "bob": 100}


@pytest.mark.usefixtures("bank")
class TestLocked:
    @pytest.fixture
    def settings(self):
        return {"busy_seconds": 0.1}

    async def test_locked_database_is_a_retryable_busy_error(self, host, change, balances):
        holder = apsw.Connection(str(host.home / "data" / "bank.db"))
        try:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(SqlBusy) as caught:
                await change("DELETE FROM account")
            assert caught.value.retryable
            assert await balances() == {"ann": 10, "bob": 0}
        finally:
            holder.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_waiting_for_a_lock_can_be_cancelled(bank, host, change):
    holder = apsw.Connection(str(host.home / "data" / "bank.db"))
    try:
        holder.execute("BEGIN IMMEDIATE")
        started = anyio.current_time()
        with anyio.move_on_after(0.1) as scope:
            await change("DELETE FROM account")
        assert scope.cancelled_caught
        assert anyio.current_time() - started < 3
    finally:
        holder.close()


async def test_journal_mode_of_an_external_database_is_unchanged(host, tmp_path):
    file = str(tmp_path / "foreign.db")
    await host.op("sql.execute", {"db": file, "sql": "CREATE TABLE t (a)"})
    assert (tmp_path / "foreign.db").read_bytes()[18:20] == b"\x01\x01"


async def test_database_in_a_missing_folder_is_a_missing_error(host, tmp_path):
    with pytest.raises(SqlMissing):
        await host.op("sql.execute", {"db": str(tmp_path / "no" / "a.db"), "sql": "CREATE TABLE t (a)"})


@pytest.mark.usefixtures("bank")
class TestSmallDatabase:
    @pytest.fixture
    def settings(self):
        return {"max_database_bytes": 65536}

    async def test_database_cannot_grow_beyond_its_limit(self, change, balances):
        with pytest.raises(SqlStorage, match="full"):
            await change("INSERT INTO account VALUES (hex(zeroblob(100000)), 1)")
        assert await balances() == {"ann": 10, "bob": 0}


async def test_query_without_rows_is_a_syntax_error(bank, host):
    with pytest.raises(SqlSyntax, match="no rows"):
        await host.op("sql.query", {"db": "bank.db", "sql": "/* nothing */"})
