"""What runs in processes of its own needs no package, and the host needs nothing of it but where it is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import sideband_sandbox
from sideband_sandbox import _inside

PACKAGE = Path(sideband_sandbox.__file__).parent
FILES = [path for path in sorted((PACKAGE / "_inside").glob("*.py")) if path.name != "__init__.py"]

LOADED_ALONE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("alone", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
known = {*sys.stdlib_module_names, *sys.builtin_module_names, "__main__"}
print(sorted({name.partition(".")[0] for name in sys.modules} - known))
"""


def imports(path):
    """What a module imports, as it is written, with its dots."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_loads_by_its_path_where_nothing_is_installed(path):
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADED_ALONE, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_imports_the_standard_library_only(path):
    # The zygote has loaded the runtime of workers by its path before it imports it.
    preloaded = {"sideband.workers.runtime"} if path.stem == "_zygote" else set()
    used = set(imports(path)) - preloaded
    assert {name for name in used if name.partition(".")[0] not in sys.stdlib_module_names} == set()


def test_the_host_knows_where_each_file_is_and_imports_none():
    named = [value for value in vars(_inside).values() if isinstance(value, Path) and value.is_file()]
    assert sorted(named) == FILES
    others = [path for path in PACKAGE.rglob("*.py") if path not in FILES]
    assert not [path for path in others if any("_inside._" in name for name in imports(path))]
