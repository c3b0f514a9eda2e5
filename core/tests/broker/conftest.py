"""Fixtures for a host with inline op families, a real store and a real ledger."""

import importlib
import json
import sys
from types import SimpleNamespace

import pytest
import sideband_store_sqlite.plugin
from attrs import evolve
from sideband import Host, Plugin
from sideband.ledger import Ledger
from sideband.ops import OpFamily
from sideband.state import make_home
from sideband_store_sqlite import open_sqlite


@pytest.fixture
def anyio_backend():
    """Use asyncio, unless a test is parametrized with both backends, because it concerns concurrency."""
    return "asyncio"


@pytest.fixture(scope="module", params=["automaton", "table"])
def each_search(request):
    """Run the tests with the compiled search for forms of secrets, and as if it were not installed."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "table":
            patch.setitem(sys.modules, "ahocorasick_rs", None)
        else:
            importlib.import_module("ahocorasick_rs")
        yield


@pytest.fixture
def make_host(tmp_path):
    """Return a function that creates a host with a store and the given plugins only."""

    def make(*plugins, settings=None, home=tmp_path / "home", **options):
        store = Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin)
        return Host(home=home, settings=settings, plugins=[store, *plugins], autoload=False, **options)

    return make


@pytest.fixture
def family():
    """Return a function that creates an inline op plugin from its ops."""

    def make(name, *ops, **options):
        module = SimpleNamespace(sideband_ops=lambda: OpFamily(name=name, ops=ops, **options))
        return Plugin(kind="op", name=name, value=module)

    return make


@pytest.fixture
def hook():
    """Return a function that creates an inline plugin from a function marked with ``hookimpl``."""

    def make(name, function):
        hook = function.__name__
        if hook == "op_call":
            return Plugin("guard", name, type("Guard", (), {hook: staticmethod(function)}))
        return Plugin("hook", name, SimpleNamespace(**{hook: function}))

    return make


@pytest.fixture
def ledger_lines(tmp_path):
    """Return a function that reads all lines of the ledger as data, with their content."""

    def read(home=tmp_path / "home"):
        files = sorted((home / "ledger").glob("*.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [{**line, **line.pop("content", {})} for line in lines]

    return read


@pytest.fixture
def outcomes(ledger_lines):
    """Return a function that reads the outcome lines of the ledger."""
    return lambda: [line for line in ledger_lines() if line["kind"] == "outcome"]


@pytest.fixture
def leave_running(tmp_path):
    """Return a function that records an intent as a host that has died since, and returns the id of the effect."""

    async def leave(intent, home=tmp_path / "home"):
        make_home(home / "store")
        async with open_sqlite(home / "store") as store, Ledger(home / "ledger", store) as ledger:
            effect = ledger.new_effect_id()
            await ledger.intent(evolve(intent, effect=effect), durable=True)
        return effect

    return leave
