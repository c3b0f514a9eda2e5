"""Hosts that are killed during a change: the database stays intact, and the next host determines the outcome."""

import subprocess
import sys

import apsw
import pytest
import sideband_sql.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.ops import EffectUnknown
from sideband_sql._sqlite._marks import is_marked, mark

pytestmark = pytest.mark.anyio

PLUGINS = [Plugin("op", "sql", sideband_sql.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]

DYING = """
import os, signal, sys
from pathlib import Path

import anyio
import sideband_sql.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_sql._sqlite._session import SqliteSession

PLUGINS = [Plugin("op", "sql", sideband_sql.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]


def die_at(name):
    method = getattr(SqliteSession, name)

    def call_and_die(self, *args):
        result = method(self, *args)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(SqliteSession, name, call_and_die)


async def run(home, db, moment):
    async with Host(home=home, plugins=PLUGINS, autoload=False) as host:
        await host.op("sql.execute", {"db": db, "sql": "CREATE TABLE t (a)"})
        # `mark` is called right before the commit, `close` right after it
        die_at({"before": "mark", "after": "close"}[moment])
        await host.op("sql.execute", {"db": db, "sql": "INSERT INTO t VALUES (1)"}, key="k")


anyio.run(run, Path(sys.argv[1]), *sys.argv[2:])
"""


@pytest.fixture
def killed(tmp_path):
    """Return a function that runs a host until it is killed before or after a commit, and returns its home."""

    def run(db, moment):
        home = tmp_path / "home"
        ended = subprocess.run([sys.executable, "-c", DYING, home, db, moment], check=False)
        assert ended.returncode == -9
        return home

    return run


def test_pruned_effect_is_unknown():
    connection = apsw.Connection(":memory:")
    assert is_marked(connection, "0") is False
    for number in range(1_000):
        mark(connection, str(number))
    assert [is_marked(connection, name) for name in ("0", "999", "x")] == [True, True, False]
    mark(connection, "more")
    assert [is_marked(connection, name) for name in ("0", "999", "x")] == [None, True, None]


async def count(host, db):
    found = await host.op("sql.query", {"db": db, "sql": "SELECT count(*) AS n FROM t"})
    return found["rows"][0]["n"]


@pytest.mark.parametrize(("moment", "status", "rows"), [("before", "failed", 0), ("after", "done", 1)])
async def test_outcome_is_recovered_in_a_database_of_the_host(killed, moment, status, rows):
    home = killed("a.db", moment)
    async with Host(home=home, plugins=PLUGINS, autoload=False) as host:
        assert [(one.op, one.status) for one in host.recovered] == [("sql.execute", status)]
        assert await count(host, "a.db") == rows


@pytest.mark.parametrize(("moment", "rows"), [("before", 0), ("after", 1)])
async def test_change_of_an_external_database_is_unknown_and_never_repeated(killed, tmp_path, moment, rows):
    db = str(tmp_path / "other.db")
    home = killed(db, moment)
    async with Host(home=home, plugins=PLUGINS, autoload=False) as host:
        assert [one.status for one in host.recovered] == ["unknown"]
        with pytest.raises(EffectUnknown):
            await host.op("sql.execute", {"db": db, "sql": "INSERT INTO t VALUES (1)"}, key="k")
        assert await count(host, db) == rows
