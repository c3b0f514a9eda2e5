"""The fixture `make_plugin`: plugins that are installed for one test."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from textwrap import dedent

import pytest
from sideband import Plugin

from ._errors import ArgumentInvalid, KitError

_FIXTURE = "make_plugin"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_MANIFEST = "SKILL.md"
_SHOWN = 4_000
_numbers = count(1)


class PluginMaker:
    """Installs plugins for one test: the fixture ``make_plugin``.

    Each plugin is a distribution with real metadata in a folder on ``sys.path``, so a host finds, decides and imports
    it like one that pip installed. At the end of the test, the plugins and their modules are removed.

    Args:
        folder: the folder for distributions, which is created and added to ``sys.path``.
        monkeypatch: changes ``sys.path`` until the end of the test.

    Attributes:
        folder: that folder.

    Example:
        >>> async def test_echo(make_plugin, sideband_host):
        ...     made = make_plugin("op", "echo", ECHO)
        ...     async with sideband_host(made.plugin) as host:
        ...         assert await host.op("echo.say", {"text": "hi"}) == "hi"
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._made: list[MadePlugin] = []
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))

    def __call__(
        self,
        kind: str,
        name: str,
        source: str,
        *,
        version: str = "1.0",
        requires: Iterable[str] = (),
        distribution: str | None = None,
        modules: Mapping[str, str] | None = None,
    ) -> MadePlugin:
        """Install a plugin.

        Args:
            kind: the kind, such as ``op`` or ``guard``.
            name: the entry-point name.
            source: the source of its module, which is dedented; for the kind ``skill``, the text of ``SKILL.md``.
            version: the version of the distribution.
            requires: the requirements of the distribution, such as ``sideband-core>=0.1``.
            distribution: the name of the distribution; by default ``made-KIND-NAME``.
            modules: other modules of the package, by name, with their sources; other files, by a name with a suffix.
                The source imports a module ``_helpers`` with ``from . import _helpers``.

        Raises:
            ArgumentInvalid: if the kind is unknown, or a name cannot be written into metadata.
        """
        try:
            Plugin(kind, name, None)
        except ValueError as error:
            raise ArgumentInvalid(_FIXTURE, "kind", str(error), hint="use a kind such as `op` or `hook`") from None
        distribution = f"made-{kind}-{name}" if distribution is None else distribution
        for argument, value in (("name", name), ("distribution", distribution)):
            if not _NAME.match(value):
                problem = f"{value!r} is not a name of letters, digits, `.`, `_` and `-`"
                raise ArgumentInvalid(_FIXTURE, argument, problem, hint="choose another name")
        if taken := [one for one in self._made if one.distribution == distribution and one.info is not None]:
            problem = f"`{distribution}` is already installed, with `{taken[0].plugin}`"
            raise ArgumentInvalid(
                _FIXTURE, "distribution", problem, hint="pass another `distribution`, or upgrade the plugin"
            )
        made = MadePlugin(self.folder, kind, name, distribution, tuple(requires))
        made.upgrade(source, version=version, modules=modules)
        self._made.append(made)
        return made

    def close(self) -> None:
        """Forget the modules of all plugins. Their folder is no longer on ``sys.path`` then."""
        for made in self._made:
            for module in [one for one in sys.modules if one.partition(".")[0] == made.package]:
                del sys.modules[module]


class MadePlugin:
    """A plugin that ``make_plugin`` installed.

    Attributes:
        plugin: ``kind.name``, by which ``sideband_host`` takes it.
        kind: its kind.
        name: its entry-point name.
        distribution: the name of its distribution.
        package: the name of its import package, which no other plugin has. Its module is ``PACKAGE.plugin``.
        path: the folder of the package.
        info: the folder of the metadata, ``….dist-info``; ``None`` if it was removed.

    Example:
        >>> def test_import_has_no_output(make_plugin):
        ...     made = make_plugin("op", "echo", ECHO)
        ...     assert made.run(f"import {made.package}.plugin") == ""
    """

    def __init__(self, site: Path, kind: str, name: str, distribution: str, requires: tuple[str, ...]) -> None:
        self.plugin = f"{kind}.{name}"
        self.kind, self.name, self.distribution = kind, name, distribution
        self.package = re.sub(r"\W", "_", f"made_{kind}_{name}_{next(_numbers)}")
        self.path = site / self.package
        self.info: Path | None = None
        self._site, self._requires = site, requires

    def upgrade(self, source: str, *, version: str = "2.0", modules: Mapping[str, str] | None = None) -> None:
        """Install another version instead, as ``pip install --upgrade`` does.

        An open host keeps the version that it imported, until ``host.reload``. A removed plugin is installed again.

        Args:
            source: the source of the module, or the text of ``SKILL.md``.
            version: the version of the distribution.
            modules: other modules and files of the package; those of the former version are removed.
        """
        self.remove()
        self._write(source, version, modules or {})

    def remove(self) -> None:
        """Remove the distribution, as ``pip uninstall`` does. Imported modules stay imported."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self.info is not None:
            shutil.rmtree(self.info, ignore_errors=True)
        self.info = None
        importlib.invalidate_caches()

    def run(self, code: str, *arguments: str, timeout: float = 60.0) -> str:
        """Run Python code in a process of its own, and return its output.

        The process imports installed packages and this folder, and nothing of the test. It has a home folder of its
        own, and no variables of the user but ``PATH``.

        Args:
            code: the code, which is dedented.
            arguments: its arguments, ``sys.argv[1:]``.
            timeout: the time limit in seconds.

        Raises:
            KitError: if it fails or exceeds the time limit; the message ends with its errors.
        """
        home = self._site.parent / "process-home"
        home.mkdir(exist_ok=True)
        variables = {"HOME": str(home), "SIDEBAND_HOME": str(home / "sideband"), "PYTHONPATH": str(self._site)}
        command = [sys.executable, "-c", dedent(code), *arguments]
        try:
            done = subprocess.run(  # noqa: S603  runs the interpreter on the code of the test
                command,
                capture_output=True,
                text=True,
                check=False,
                cwd=home,
                env={"PATH": os.environ.get("PATH", ""), **variables},
                stdin=subprocess.DEVNULL,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            raise KitError(
                f"the code did not end within {timeout:g} s", hint="end its loops, or pass a longer `timeout`"
            ) from None
        if done.returncode:
            errors = done.stderr.strip()[-_SHOWN:]
            raise KitError(f"the code ended with exit code {done.returncode}", hint=f"correct its errors\n{errors}")
        return done.stdout

    def _write(self, source: str, version: str, modules: Mapping[str, str]) -> None:
        is_skill = self.kind == "skill"
        files = {name if "." in name else f"{name}.py": text for name, text in modules.items()}
        files = {"__init__.py": "", _MANIFEST if is_skill else "plugin.py": source, **files}
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        self.info = self._site / f"{re.sub(r'[-_.]+', '_', self.distribution)}-{version}.dist-info"
        self.info.mkdir()
        requirements = "".join(f"Requires-Dist: {line}\n" for line in self._requires)
        module = self.package if is_skill else f"{self.package}.plugin"
        metadata = {
            "METADATA": f"Metadata-Version: 2.1\nName: {self.distribution}\nVersion: {version}\n{requirements}",
            "INSTALLER": "sideband-testing\n",
            "entry_points.txt": f"[sideband.v1.{self.kind}]\n{self.name} = {module}\n",
        }
        for name, text in metadata.items():
            (self.info / name).write_text(text, encoding="utf-8")
        owned = [*(self.path / name for name in files), *(self.info / name for name in metadata)]
        lines = [f"{_recorded(path, self._site)}\n" for path in owned]
        (self.info / "RECORD").write_text("".join([*lines, f"{self.info.name}/RECORD,,\n"]), encoding="utf-8")
        importlib.invalidate_caches()


def _recorded(path: Path, site: Path) -> str:
    content = path.read_bytes()
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{path.relative_to(site).as_posix()},sha256={digest},{len(content)}"
