import os
import subprocess
import sys
from pathlib import Path

import importlib_metadata
import pytest
import sideband

HEAVY = {
    "anyio", "asyncio", "attr", "dataclasses", "importlib_metadata", "inspect", "logging", "packaging", "pathlib",
    "pluggy", "pydantic",
}  # fmt: skip

SCRIPT = """
import sys
libraries, sys.path[:0] = sys.argv[1], sys.argv[2:4]
if libraries:
    sys.path.append(libraries)
    import importlib_metadata, packaging.requirements
    sys.path.remove(libraries)
from sideband.plugins._discovery import decide
from sideband.plugins._metadata import find_entry_points
class Policy:
    deny, only, conflicts = {}, None, {}
records = decide(find_entry_points(home=sys.argv[4]), (), Policy)
print(*[f"{record.name}:{record.state.value}" for record in records])
print(*sys.modules)
"""


@pytest.fixture
def listed(site, home, tmp_path):
    """Return a function that lists the plugins in a new interpreter, on a path with old mtimes."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "sideband").symlink_to(Path(sideband.__file__).parent)

    def run(*, libraries: str) -> tuple[str, set[str]]:
        for path in (*site.folder.rglob("*"), site.folder, source):
            os.utime(path, (1_000_000_000, 1_000_000_000))
        arguments = [sys.executable, "-I", "-S", "-B", "-c", SCRIPT, libraries, source, site.folder, home]
        output = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd="/").stdout.splitlines()
        return output[0], set(output[1].split())

    return run


def test_listing_from_the_index_imports_no_slow_module_and_no_plugin(site, listed):
    module = site.plugin("op", "tidal", "raise SystemExit('imported')", requires=["sideband-core>=0.1,<1"])
    site.plugin("op", "later", "", requires=["sideband-core>=99"])
    fresh, _ = listed(libraries=str(Path(importlib_metadata.__file__).parents[1]))
    cached, modules = listed(libraries="")
    assert fresh == cached == "later:incompatible tidal:found"
    assert not modules & HEAVY
    assert module not in modules
