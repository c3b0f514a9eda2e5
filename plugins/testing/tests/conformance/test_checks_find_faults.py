"""For each check of a conformance class there is a plugin with one fault, which exactly this check finds."""

from pathlib import Path

import pytest
from sideband_testing import conformance

KINDS = [path.stem.removeprefix("faults_") for path in sorted(Path(__file__).parent.glob("faults_*.py"))]


class Results:
    """Collects the checks that fail, by class, and the classes with the check that must fail."""

    def __init__(self):
        self.failed = {}
        self.expected = {}
        self.messages = {}

    def pytest_runtest_logreport(self, report):
        if report.failed:
            name, check = report.nodeid.split("::")[1:]
            self.failed.setdefault(name, set()).add(check.partition("[")[0])
            self.messages[name, check] = str(report.longrepr)

    def pytest_collection_modifyitems(self, items):
        self.expected = {item.cls.__name__: {*filter(None, [item.cls.fault])} for item in items}


@pytest.fixture(scope="module")
def covered():
    """The checks that some fault has been found by, by class."""
    return {}


@pytest.mark.parametrize("kind", KINDS)
def test_each_fault_fails_exactly_its_check(pytester, kind, covered):
    results = Results()
    source = Path(__file__).with_name(f"faults_{kind}.py").read_text()
    module = pytester.makepyfile(**{f"test_faults_{kind}": source})
    pytester.makefile(".ini", pytest="[pytest]\nfilterwarnings = error\n")
    pytester.inline_run("-p", "no:cacheprovider", "-p", "no:xdist", "-q", str(module), plugins=[results])
    found = {name: results.failed.get(name, set()) for name in results.expected}
    shown = "\n".join(text for key, text in results.messages.items() if found[key[0]] != results.expected[key[0]])
    assert found == results.expected, shown
    assert all("remedy:" in text for text in results.messages.values()), results.messages
    covered[kind] = set().union(*results.expected.values())


def test_every_check_has_a_fault(covered):
    classes = {
        "commands": conformance.CommandConformance,
        "guards": conformance.GuardConformance,
        "hooks": conformance.HookConformance,
        "loaders": conformance.LoaderConformance,
        "ops": conformance.OpFamilyConformance,
        "providers": conformance.ProviderConformance,
        "sandboxes": conformance.SandboxConformance,
        "secret_sources": conformance.SecretSourceConformance,
        "shared_stores": conformance.SharedStoreConformance,
        "skills": conformance.SkillConformance,
        "stores": conformance.StoreConformance,
        "tool_sources": conformance.ToolSourceConformance,
        "tools": conformance.ToolConformance,
    }
    if len(covered) < len(classes):
        pytest.skip("only some kinds were run")
    shared = {name for name in dir(conformance.Conformance) if name.startswith("test_")}
    missing = {
        kind: {name for name in dir(cls) if name.startswith("test_")}
        - covered[kind]
        - (shared if kind != "ops" else set())
        - (covered["stores"] if kind == "shared_stores" else set())
        for kind, cls in classes.items()
    }
    assert {kind: names for kind, names in missing.items() if names} == {}
