"""Run the conformance classes of an installed plugin or distribution, without tests of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from sideband.plugins import EntryPoint, find_entry_points
from sideband.suggestions import did_you_mean
from sideband.tools import Tool

from .._errors import KitError
from ._failing import CheckFailed
from ._importing import import_alone
from ._subject import resolve

_CLASSES = {
    "command": ("CommandConformance",),
    "guard": ("GuardConformance",),
    "hook": ("HookConformance",),
    "loader": ("LoaderConformance",),
    "op": ("OpFamilyConformance",),
    "provider": ("ProviderConformance",),
    "sandbox": ("SandboxConformance",),
    "secrets": ("SecretSourceConformance",),
    "skill": ("SkillConformance",),
    "store": ("StoreConformance",),
    "tool": ("ToolConformance",),
}
_LOADS = "test_metadata_and_registration_agree"
_OPTIONS = ("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist", "-o", "addopts=", "-c", os.devnull)


class PluginUnknown(KitError, LookupError):
    """No installed plugin or distribution has this name."""

    code = "testing.unknown"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"no installed plugin or distribution is named `{name}`{did_you_mean(name, known)}",
            hint="list them with `sideband plugins list`",
        )


@attrs.frozen
class CheckResult:
    """The result of one check of one plugin.

    Attributes:
        plugin: the plugin, as ``kind.name``.
        check: the name of the standard test, without ``test_``.
        outcome: ``passed``, ``failed`` or ``skipped``.
        expected, happened, remedy: what every plugin does, what this one did, and what its author can do.
        reason: why it was skipped.
    """

    plugin: str
    check: str
    outcome: str
    expected: str = ""
    happened: str = ""
    remedy: str = ""
    reason: str = ""

    @property
    def is_loading(self) -> bool:
        """Whether it checks that a host can use the plugin."""
        return f"test_{self.check}" == _LOADS


def check_installed(name: str) -> tuple[CheckResult, ...]:
    """Run the conformance classes of an installed plugin, or of all plugins of a distribution.

    Args:
        name: ``kind.name``, the name of a plugin, or that of a distribution.

    Raises:
        PluginUnknown: if no plugin or distribution has this name.
    """
    plugins = _named(name)
    results = _Results()
    usable = [one for one in plugins if results.imports(one)]
    with tempfile.TemporaryDirectory(prefix="sideband-check-") as folder:
        module = Path(folder) / "test_conformance.py"
        module.write_text("".join(_module(usable)))
        options = [*_OPTIONS, "--rootdir", folder, "--basetemp", str(Path(folder) / "temporary"), str(module)]
        os.environ.pop("PYTEST_ADDOPTS", None)
        if usable:
            pytest.main(options, plugins=[results])
    return tuple(results.found)


def _named(name: str) -> Sequence[EntryPoint]:
    installed = [one for one in find_entry_points() if one.kind in _CLASSES]
    known = {f"{one.kind}.{one.name}" for one in installed}
    if name in known:
        return [one for one in installed if f"{one.kind}.{one.name}" == name]
    found = [one for one in installed if name in (one.name, one.distribution)]
    if not found:
        raise PluginUnknown(name, sorted(known | {one.distribution for one in installed}))
    return found


def _module(plugins: Sequence[EntryPoint]) -> Iterator[str]:
    """Yield the source of a test module with a class for each plugin."""
    yield "from sideband_testing.conformance import *\n"
    for number, one in enumerate(plugins):
        label = f"{one.kind}.{one.name}"
        for name in _classes(one, label):
            yield f"\n\nclass Test{number}{name}({name}):\n    plugin = {label!r}\n"


def _classes(one: EntryPoint, label: str) -> Sequence[str]:
    if one.kind != "tool":
        return _CLASSES[one.kind]
    try:
        value = resolve(label).value
        found = value if isinstance(value, Tool) else value.sideband_tools()
    except (Exception, pytest.fail.Exception):  # noqa: BLE001  the class reports it
        return _CLASSES["tool"]
    items = found if isinstance(found, list | tuple) else [found]
    tools = ("ToolConformance",) if any(isinstance(item, Tool) for item in items) else ()
    sources = ("ToolSourceConformance",) if not all(isinstance(item, Tool) for item in items) else ()
    return (*tools, *sources)


class _Results:
    """A plugin of pytest, which collects the results."""

    def __init__(self) -> None:
        self.found: list[CheckResult] = []

    def imports(self, one: EntryPoint) -> bool:
        """Return whether a plugin can be imported, which is tried in another process first: it may end it."""
        error = "" if one.kind == "skill" else import_alone(one.value.partition(":")[0]).error
        if error:
            label = f"{one.kind}.{one.name}"
            remedy = "import what it needs itself, and declare its dependencies"
            check = _LOADS.removeprefix("test_")
            self.found.append(CheckResult(label, check, "failed", "a host can load it", error, remedy))
        return not error

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        """Keep the result of a check: that of its call, or of what failed or was skipped before or after it."""
        outcome = yield
        report = outcome.get_result()  # type: ignore[attr-defined]
        if report.when != "call" and report.passed:
            return
        check = str(item.originalname or item.name).removeprefix("test_")
        plugin = item.cls.plugin
        error = call.excinfo.value if call.excinfo is not None else None
        if report.skipped:
            self.found.append(CheckResult(plugin, check, "skipped", reason=str(getattr(error, "msg", error))))
        elif report.passed:
            self.found.append(CheckResult(plugin, check, "passed"))
        elif isinstance(error, CheckFailed):
            self.found.append(CheckResult(plugin, check, "failed", error.expected, error.happened, error.remedy))
        else:
            self._add_crash(plugin, check, error)

    def _add_crash(self, plugin: str, check: str, error: BaseException | None) -> None:
        happened = f"{type(error).__name__}: {error}"
        self.found.append(
            CheckResult(plugin, check, "failed", "the check ends", happened, "correct what the plugin raised")
        )
