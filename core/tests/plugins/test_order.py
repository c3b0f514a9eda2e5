"""The order of installed plugins does not depend on installation, file system or hash seed."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import importlib_metadata
import packaging.requirements
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.plugins import PluginHost, PluginPolicy

NAMES = ["a", "b", "c", "d", "e", "f"]
HOOK = """
from sideband.hooks import hookimpl

@hookimpl(before={before!r}, after={after!r})
def settled(event):
    pass
"""
GUARD = """
from sideband.hooks import hookimpl

class Guard:
    @hookimpl(before={before!r}, after={after!r})
    def settled(self, event):
        pass

def sideband_guards():
    return Guard
"""
ORDER = """
import json, sys
from pathlib import Path
import anyio
from sideband.plugins import PluginHost, PluginPolicy

async def main():
    policy = PluginPolicy(only=frozenset({"test-*"}), order={"settled": tuple(json.loads(sys.argv[2]))})
    async with PluginHost(policy, home=Path(sys.argv[1])) as plugins:
        print(*[one.plugin for one in plugins.hooks.order("settled")], hash("a"))

anyio.run(main)
"""
_NEEDED = (importlib_metadata, packaging.requirements)  # imported before the path is restricted
_numbers = count()


def install(folder, plugins, order):
    """Write distributions in this order. A folder lists its entries in an order of the file system's own."""
    modules = {}
    for name in order:
        kind, before, after = plugins[name]
        module = modules[name] = f"sideband_test_order_{next(_numbers)}"
        (folder / f"{module}.py").write_text((GUARD if kind == "guard" else HOOK).format(before=before, after=after))
        info = folder / f"test_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: test-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[sideband.v1.{kind}]\n{name} = {module}\n")
    return modules


@contextmanager
def only_on_path(folder):
    """Let Python find the distributions of this folder only."""
    before = list(sys.path)
    sys.path[:] = [str(folder), *(one for one in before if "site-packages" not in one)]
    try:
        yield
    finally:
        sys.path[:] = before


def order_of(plugins, installation, manifest):
    async def main(home):
        async with PluginHost(PluginPolicy(order={"settled": tuple(manifest)}), home=home) as host:
            assert not [record for record in host.records if record.state.broken]
            return [one.plugin for one in host.hooks.order("settled")]

    with TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "site").mkdir()
        modules = install(folder / "site", plugins, installation)
        try:
            with only_on_path(folder / "site"):
                return anyio.run(main, folder / "home")
        finally:
            for module in modules.values():
                sys.modules.pop(module, None)


@st.composite
def solvable(draw):
    """Draw plugins whose constraints match a hidden order, a manifest, and two orders of installation."""
    hidden = draw(st.permutations(NAMES))
    plugins = {}
    for index, name in enumerate(hidden):
        before = draw(st.lists(st.sampled_from([*hidden[index + 1 :], "missing"]), unique=True, max_size=2))
        after = draw(st.lists(st.sampled_from([*hidden[:index], "missing"]), unique=True, max_size=2))
        plugins[name] = (draw(st.sampled_from(["guard", "hook"])), before, after)
    manifest = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return plugins, manifest, draw(st.permutations(NAMES)), draw(st.permutations(NAMES))


@settings(max_examples=15, deadline=None)
@given(solvable())
def test_order_does_not_depend_on_the_order_of_installation(case):
    plugins, manifest, one_way, other_way = case
    order = order_of(plugins, one_way, manifest)
    assert order == order_of(plugins, other_way, manifest)
    assert sorted(order) == NAMES
    kinds = [plugins[name][0] for name in order]
    assert kinds == sorted(kinds), "guards run before others"
    for name, (kind, before, after) in plugins.items():
        for first, second in [(name, other) for other in before] + [(other, name) for other in after]:
            if "missing" not in (first, second) and plugins[first][0] == plugins[second][0] == kind:
                assert order.index(first) < order.index(second)


def test_order_does_not_depend_on_the_hash_seed(tmp_path):
    plugins = {
        "a": ("hook", [], ["c", "b"]),
        "b": ("hook", ["d"], []),
        "c": ("guard", ["a"], ["f"]),
        "d": ("hook", [], ["missing"]),
        "e": ("hook", [], []),
        "f": ("guard", [], []),
    }
    seen = []
    for number, seed in enumerate(["0", "1", "4242"]):
        site = tmp_path / f"site-{number}"
        site.mkdir()
        install(site, plugins, sorted(NAMES, key=lambda name, seed=seed: hash((name, seed))))
        done = subprocess.run(
            [sys.executable, "-c", ORDER, str(tmp_path / f"home-{number}"), json.dumps(["e"])],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=True,
        )
        seen.append(done.stdout.split())
    assert len({tuple(order[:-1]) for order in seen}) == 1
    assert seen[0][:2] == ["f", "c"]
    assert len({order[-1] for order in seen}) == 3, "the seeds must differ"
