"""Run uv, which resolves, builds and installs packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import field, frozen
from packaging.specifiers import SpecifierSet
from sideband.settings import DistSettings
from sideband_skill_packages import find_uv, uv_environment

from ._errors import InstallFailed
from ._model import DistLockTable

_SOURCES = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX")
_LONGEST = 1_500
# So that building the same source again results in the same wheel.
_TIME = "315532800"


@frozen
class PackageSources:
    """Where packages come from.

    Args:
        indexes: the package indexes, which are searched first.
        default_index: whether the index that uv is configured with is used for what they do not have.
        wheels: folders of wheels.
        offline: whether only these folders are used.
        cached: whether nothing is downloaded that is not in the cache of uv.
    """

    indexes: tuple[str, ...] = ()
    wheels: tuple[Path, ...] = ()
    offline: bool = False
    default_index: bool = True
    cached: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls, dist: DistSettings | DistLockTable, folder: Path, *, more: Iterable[Path] = (), cached: bool = False
    ) -> PackageSources:
        """Return the sources that a team configured, relative to the folder of its file."""
        indexes = tuple(one if "://" in one else str(folder / one) for one in dist.indexes)
        wheels = (*(folder / one for one in dist.wheels), *more)
        return cls(indexes, wheels, dist.offline, dist.default_index, cached=cached)

    def words(self) -> list[str]:
        """Return the options of uv."""
        words = [word for folder in self.wheels for word in ("--find-links", str(folder))]
        if self.offline:
            return [*words, "--no-index", "--no-config"]
        first = list(self.indexes)
        if first and not self.default_index:
            words += ["--default-index", first.pop(), "--no-config"]
        words += [word for one in first for word in ("--index", one)]
        return [*words, "--offline"] if self.cached else words

    def environment(self) -> dict[str, str]:
        """Return the variables of uv."""
        without = () if self.default_index and not self.offline else _SOURCES
        return {name: value for name, value in uv_environment().items() if name not in without}


def resolve(requirements: str, sources: PackageSources, python: str, folder: Path) -> str:
    """Return the exact versions and hashes, for all platforms, as the text of a ``pylock.toml``.

    Args:
        requirements: one requirement in each line.
        sources: where packages come from.
        python: the versions of Python, such as ``>=3.11``.
        folder: a temporary folder. Versions in its ``pylock.toml`` are kept where they fit.

    Raises:
        InstallFailed: if there is no solution.
    """
    given, found = folder / "requirements.in", folder / "pylock.toml"
    given.write_text(requirements, encoding="utf-8")
    words = ["--universal", "--python-version", _oldest(python), "--generate-hashes", "--only-binary", ":all:"]
    words += ["--format", "pylock.toml", "--output-file", str(found), str(given)]
    _run("resolve the packages", ["pip", "compile", *words, "--python", sys.executable], sources)
    return found.read_text(encoding="utf-8")


def build_wheel(source: Path, out: Path, sources: PackageSources, *, isolated: bool = True) -> Path:
    """Build the wheel of a folder, which runs its code, and return its path.

    Raises:
        InstallFailed: if that fails.
    """
    out.mkdir(parents=True)
    isolation = [] if isolated else ["--no-build-isolation"]
    words = ["build", "--wheel", "--no-sources", "--out-dir", str(out), "--python", sys.executable, *isolation]
    variables = {"SOURCE_DATE_EPOCH": _TIME}
    _run(f"build {source}", [*words, str(source)], sources, variables)
    return next(out.glob("*.whl"))


def create_environment(folder: Path, sources: PackageSources, python: str | None = None) -> None:
    """Create an environment that can be moved.

    Raises:
        InstallFailed: if that fails.
    """
    base = python or getattr(sys, "_base_executable", "") or sys.executable
    words = ["venv", "--relocatable", "--no-project", "--python", base, str(folder)]
    _run("create an environment", words, PackageSources(offline=sources.offline))


def install(environment: Path, requirements: str, sources: PackageSources, folder: Path) -> None:
    """Install exactly these requirements, which have hashes, from wheels only.

    Raises:
        InstallFailed: if that fails.
    """
    file = folder / "requirements.txt"
    file.write_text(requirements, encoding="utf-8")
    words = ["pip", "sync", "--require-hashes", "--only-binary", ":all:", "--allow-empty-requirements"]
    words += ["--python", str(environment), str(file)]
    _run("install the packages", words, sources)


def _oldest(python: str) -> str:
    """Return the oldest version of Python that a specifier names, or this one."""
    named = [one.version for one in SpecifierSet(python) if one.operator in (">=", "~=", "==", "===")]
    return min(named, key=_numbers).removesuffix(".*") if named else f"{sys.version_info[0]}.{sys.version_info[1]}"


def _numbers(version: str) -> list[int]:
    return [int(one) for one in version.split(".") if one.isdigit()]


def _run(what: str, words: list[str], sources: PackageSources, variables: Mapping[str, str] | None = None) -> None:
    options = sources.words() if words[0] != "venv" else []
    command = [str(find_uv()), *words, *options, "--quiet", "--color", "never"]
    done = subprocess.run(  # noqa: S603  its own arguments
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd="/",  # uv reads settings in the working directory and its parents
        env={**sources.environment(), **(variables or {})},
    )
    if done.returncode:
        output = " ".join((done.stderr or done.stdout).split())
        raise InstallFailed(what, output[-_LONGEST:] or f"it exited with {done.returncode}")
