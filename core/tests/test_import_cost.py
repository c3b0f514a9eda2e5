"""What an import of the host costs, and what an open host imports, counted."""

import subprocess
import sys

import pytest

IMPORT = """
import gc, sys
from sideband import Host
from pydantic import BaseModel

built = [one for one in gc.get_objects() if isinstance(one, type) and issubclass(one, BaseModel)]
print(len(sys.modules), sum(one.__pydantic_complete__ for one in built if one is not BaseModel))
print(*sys.modules)
"""
OPEN = """
import sys
from pathlib import Path
import anyio
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

async def main():
    store = Plugin("store", "sqlite", sideband_store_sqlite.plugin)
    async with Host(home=Path(sys.argv[1]), plugins=[store], autoload=False) as host:
        await host.tools.view()
        print(*sys.modules)

anyio.run(main)
"""
MAX_MODULES = 475
# Needed for skills only, and for some commands. `importlib.metadata` comes with the first model that is built, because
# pydantic searches the installed packages for plugins.
RARELY_USED = {
    "argparse",
    "asyncio",
    "html",
    "importlib.metadata",
    "sideband.calls._plugin_folders",
    "sideband.ops._sdk",
    "sideband.workers._launcher",
    "sideband.workers._worker",
    "sideband.workers.runtime",
}


def run(*arguments):
    return subprocess.run([sys.executable, "-c", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def imported():
    return run(IMPORT).splitlines()


def test_import_of_the_host_imports_no_module_that_is_rarely_needed(imported):
    counts, modules = imported
    remedy = "import what is rarely needed in the function that needs it"
    assert int(counts.split()[0]) <= MAX_MODULES, remedy
    assert not (RARELY_USED | {"packaging", "importlib_metadata", "httpx"}) & {*modules.split()}, remedy


def test_import_of_the_host_builds_no_model(imported):
    built = int(imported[0].split()[1])
    assert built == 0, "set `defer_build=True` in the configuration of the model, and create no object of it"


def test_open_host_without_skills_imports_nothing_that_only_skills_need(tmp_path):
    expected = RARELY_USED - {"asyncio", "importlib.metadata"}
    assert not expected & {*run(OPEN, str(tmp_path)).split()}, "import it where a skill is run"
