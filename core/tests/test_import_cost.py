"""What an import of the host costs, counted."""

import subprocess
import sys

SCRIPT = """
import gc, sys
from sideband import Host
from pydantic import BaseModel

built = [one for one in gc.get_objects() if isinstance(one, type) and issubclass(one, BaseModel)]
print(len(sys.modules), sum(one.__pydantic_complete__ for one in built))
print(*sys.modules)
"""
MAX_MODULES = 545
MAX_MODELS = 5


def test_import_of_the_host_builds_few_models_and_imports_no_module_that_is_rarely_needed():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    counts, modules = done.stdout.splitlines()
    imported, built = map(int, counts.split())
    assert imported <= MAX_MODULES, "import what is rarely needed in the function that needs it"
    assert built <= MAX_MODELS, "set `defer_build=True` in the configuration of the model"
    assert not {"packaging", "importlib_metadata", "httpx"} & {*modules.split()}
