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

CRASHING = """
import os, signal, sys
from pathlib import Path

import anyio
import sideband_sql.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_sql._sqlite._session import SqliteSession

PLUGINS = [Plugin("op", "sql", sideband_sql.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]


def kill_at(name):
    method = getattr(SqliteSession, name)

    def call_and_kill(self, *args):
        result = method(self, *args)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(SqliteSession, name, call_and_kill)


async def run(home, db, moment):
    async with Host(home=home, plugins=PLUGINS, autoload=False) as host:
        await host.op("sql.execute", {"db": db, "sql": "CREATE TABLE t (a)"})
        # `mark` is called right before the commit, `close` right after it
        kill_at({"before": "mark", "after": "close"}[moment])
        await host.op("sql.execute", {"db": db, "sql": "INSERT INTO t VALUES (1)"}, key="k")


for name, db, moment in CASES:
    child = os.fork()
    if child == 0:
        try:
            anyio.run(run, Path(sys.argv[1]) / name, db, moment)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, (db, moment)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return a function that returns the home of a host that was killed before or after a commit, and its database."""
    folder = tmp_path_factory.mktemp("homes")
    databases = {"own": "a.db", "external": str(folder / "{}.db")}
    cases = [(kind, moment) for kind in databases for moment in ("before", "after")]
    arguments = [(f"{kind}-{moment}", databases[kind].format(moment), moment) for kind, moment in cases]
    subprocess.run([sys.executable, "-c", f"CASES = {arguments!r}\n{CRASHING}", folder], check=True)

    def find(kind, moment):
        return folder / f"{kind}-{moment}", databases[kind].format(moment)

    return find


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
    home, db = killed("own", moment)
    async with Host(home=home, plugins=PLUGINS, autoload=False) as host:
        assert [(one.op, one.status) for one in host.recovered] == [("sql.execute", status)]
        assert await count(host, db) == rows


@pytest.mark.parametrize(("moment", "rows"), [("before", 0), ("after", 1)])
async def test_change_of_an_external_database_is_unknown_and_never_repeated(killed, moment, rows):
    home, db = killed("external", moment)
    async with Host(home=home, plugins=PLUGINS, autoload=False) as host:
        assert [one.status for one in host.recovered] == ["unknown"]
        with pytest.raises(EffectUnknown):
            await host.op("sql.execute", {"db": db, "sql": "INSERT INTO t VALUES (1)"}, key="k")
        assert await count(host, db) == rows
