"""The imports of the state package, which is the lowest layer of the kernel and fast to import."""

import ast
import subprocess
import sys
from pathlib import Path

import sideband.state


def test_state_imports_only_errors_from_the_kernel():
    found = set()
    for path in Path(sideband.state.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                found.add(node.module)
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.partition(".")[0] == "sideband"], path
    # `_lazy` itself imports nothing from the kernel.
    assert found == {"_lazy", "errors"}


def test_default_home_imports_no_third_party_packages():
    probe = (
        "import sys; from sideband.state import default_home; default_home()\n"
        "print([name for name in sys.modules if name.partition('.')[0] in {'attr', 'attrs', 'anyio', 'pydantic'}])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
