"""Each plugin of this repository has the conformance tests of its kind; each op with undo or reconcile, an example."""

import importlib.util
import inspect
import tomllib
from pathlib import Path

import pytest
from sideband.plugins import find_entry_points
from sideband_testing.conformance import Conformance, OpFamilyConformance

ROOT = Path(__file__).parents[1]
GROUP = "sideband.v1."
PACKAGES = sorted(
    path.parent
    for pattern in ("plugins/*/pyproject.toml", "contrib/*/pyproject.toml")
    for path in ROOT.glob(pattern)
    if any(group.startswith(GROUP) for group in tomllib.loads(path.read_text())["project"].get("entry-points", {}))
)
# The ops that declare `undo` or `reconcile` and have no example that succeeds, each with the reason.
WITHOUT_EXAMPLE = {
    "http.session_request": "its session ends with the call that opened it; its own tests have both",
    "skills.run": "it needs the script of an installed skill; the tests of `skill_run` and `shell.run` have both",
}


def registered(package):
    """Return the plugins of a package, as `kind.name`."""
    groups = tomllib.loads((package / "pyproject.toml").read_text())["project"]["entry-points"]
    kinds = {group.removeprefix(GROUP): names for group, names in groups.items() if group.startswith(GROUP)}
    return {f"{kind}.{name}" for kind, names in kinds.items() for name in names}


def classes_of(package):
    """Return the conformance classes that the tests of a package define."""
    path = package / "tests" / "test_conformance.py"
    if not path.exists():
        return []
    name = f"conformance_of_{package.name.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [one for one in vars(module).values() if inspect.isclass(one) and issubclass(one, Conformance)]
    return [one for one in found if one.__name__.startswith("Test") and one.plugin]


def label_of(cls):
    name = cls.plugin if isinstance(cls.plugin, str) else f"{cls.plugin.kind}.{cls.plugin.name}"
    return name if name.partition(".")[0] == cls.kind else f"{name} tested as {cls.kind}"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_plugin_of_a_package_has_the_conformance_tests_of_its_kind(package):
    assert {label_of(cls) for cls in classes_of(package)} == registered(package)


def test_every_op_with_undo_or_reconcile_has_an_example_that_succeeds():
    examples = {
        example.name
        for package in PACKAGES
        for cls in classes_of(package)
        if issubclass(cls, OpFamilyConformance)
        for example in cls.examples or ()
        if not example.error
    }
    declared = set()
    for entry_point in find_entry_points("op"):
        if entry_point.distribution.startswith("sideband-"):
            family = importlib.import_module(entry_point.value).sideband_ops()
            declared |= {spec.name for spec in family.ops if spec.undo is not None or spec.reconcile is not None}
    assert declared - examples == set(WITHOUT_EXAMPLE)
