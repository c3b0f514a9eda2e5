"""Fixtures for hostile skills: real hosts on each tier, and skills that are generated from source code.

A hostile skill is an entry of the dictionary ``HOSTILE`` of a module in this folder (name → body of the tool); a test
counts them. It must return if it succeeded, and raise if it was stopped.
"""

import importlib.util
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest
from sideband.workers import WorkerPool

HERE = Path(__file__).parent
ORDINARY_USER = 61_234
IS_ROOT = os.geteuid() == 0
# Root also runs the tests as an ordinary user. CI runs them as root.
WHO = ["root", "user"] if IS_ROOT else ["user"]
TIERS = ["full", "no-namespaces"]


def load_module(path):
    """Load a module of this folder, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"security_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


harness = load_module(HERE / "harness_host.py")


@pytest.fixture
def anyio_backend():
    """Return only asyncio: attacks target the worker, which does not depend on the host's event loop."""
    return "asyncio"


@pytest.fixture(params=TIERS)
def tier(request):
    return request.param


@pytest.fixture(params=WHO)
def who(request):
    return request.param


@pytest.fixture(scope="session")
def area():
    """Return a folder that every user can traverse, unlike pytest's ``tmp_path``."""
    folder = Path(tempfile.mkdtemp(prefix="s-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def make_host(tmp_path):
    """Return ``make_host(tier, *skill_folders, **options)``: a host in this process whose workers run on this tier."""

    def make(tier, *folders, **options):
        return harness.make_host(tier, home=options.pop("home", tmp_path / "home"), skill_dirs=folders, **options)

    return make


@pytest.fixture(scope="module")
def fight(tmp_path_factory):
    """Return ``fight(skills, seconds=…)``: runs hostile skills on one host, and returns its ``Arena``."""

    def run(skills, *, backend="asyncio", limits=None, **options):
        arena = load_module(HERE / "arena.py").Arena(tmp_path_factory.mktemp("arena"), **options)
        with pytest.MonkeyPatch.context() as patch:
            # Most attacks ignore their cancellation: wait less for them than in production.
            patch.setattr("sideband.host._parts.WorkerPool", partial(WorkerPool, cancel_grace=0.2))
            for name, value in (limits or {}).items():
                patch.setattr(f"sideband.workers._pending.{name}", value)
            anyio.run(arena.fight, skills, backend=backend)
        return arena

    return run
