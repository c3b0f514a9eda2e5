"""What hostile skills run in: real hosts, on each tier, and skills written on the spot.

A hostile skill is an entry of a dictionary ``HOSTILE`` of a module of this folder (name → body of the tool); they are
counted. Write it so that it returns if it got what it wanted, and raises if it was stopped.
"""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import anyio
import pytest

HERE = Path(__file__).parent
ORDINARY_USER = 61_234
IS_ROOT = os.geteuid() == 0
# Root also tries as an ordinary user. Who is no root can't become it; CI runs both.
WHO = ["root", "user"] if IS_ROOT else ["user"]
TIERS = ["full", "no-namespaces"]


def load_module(path):
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"security_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


harness = load_module(HERE / "harness_host.py")


@pytest.fixture
def anyio_backend():
    """One is enough: what is attacked here is the worker, which knows nothing of the host's event loop."""
    return "asyncio"


@pytest.fixture(params=TIERS)
def tier(request):
    return request.param


@pytest.fixture(params=WHO)
def who(request):
    return request.param


@pytest.fixture(scope="session")
def area():
    """A folder that every user can pass, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="sideband-security-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def make_host(tmp_path):
    """``make_host(tier, *skill_folders, **options)``: a host in this process, whose workers run on this tier."""

    def make(tier, *folders, **options):
        return harness.make_host(tier, home=options.pop("home", tmp_path / "home"), skill_dirs=folders, **options)

    return make


@pytest.fixture(scope="module")
def fight(tmp_path_factory):
    """``fight(skills, seconds=…)`` runs hostile skills on one host, and gives the ``Arena`` in which they were."""

    def run(skills, *, backend="asyncio", **options):
        arena = load_module(HERE / "arena.py").Arena(tmp_path_factory.mktemp("arena"), **options)
        anyio.run(arena.fight, skills, backend=backend)
        return arena

    return run
