"""The files that run in isolated processes need no packages, and the host only uses their paths."""

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
    """Yield the modules that a file imports, as written, with the dots of relative imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_loads_by_path_without_installed_packages(path):
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADED_ALONE, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_imports_only_the_standard_library(path):
    # The zygote loads the workers' runtime by path before it imports it.
    preloaded = {"sideband.workers.runtime"} if path.stem == "_zygote" else set()
    used = set(imports(path)) - preloaded
    assert {name for name in used if name.partition(".")[0] not in sys.stdlib_module_names} == set()


def test_host_names_each_file_and_imports_none():
    named = [value for value in vars(_inside).values() if isinstance(value, Path) and value.is_file()]
    assert sorted(named) == FILES
    others = [path for path in PACKAGE.rglob("*.py") if path not in FILES]
    assert not [path for path in others if any("_inside._" in name for name in imports(path))]
