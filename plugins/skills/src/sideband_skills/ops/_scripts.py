"""The snapshot of a skill, and the packages that one of its scripts needs. These functions block on the disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from attrs import evolve
from sideband.environments import Environments
from sideband.loading import SkillError, SkillProblem, SkillSpec
from sideband.workers import snapshot

from .._config import Config
from .._meter import LimitReached, Meter
from .._problems import Problems
from .._requirements import checked_requirements, read_requirements
from .._script_blocks import find_blocks
from ._errors import ScriptRequirements, SkillFileMissing
from ._interpreters import started
from ._models import SkillPrepareParams, SkillPrepareResult
from ._script_rights import capabilities_of

_LARGEST_SCRIPT = 1 << 20
_LISTING = "requirements.txt"


def prepared(skill: SkillSpec, params: SkillPrepareParams, home: Path, limits: Config) -> SkillPrepareResult:
    """Take the snapshot of a skill, and determine the packages of a script.

    Raises:
        SkillFileMissing: if the skill has no such file.
        ScriptRequirements: if its packages are declared wrongly.
        SnapshotFailed: if the skill cannot be copied.
    """
    script = params.script
    if script is not None and script not in skill.files:
        raise SkillFileMissing(skill.name, script, [one for one in skill.files if one != "SKILL.md"])
    taken = snapshot(skill, home)
    environments = Environments(home)
    try:
        wanted = skill if script is None else _with_packages(skill, taken.path, script, params.packages, limits)
        requirements, environment = environments.requirements(wanted), environments.path(wanted)
    except SkillError as error:
        raise ScriptRequirements(skill.name, error.message, error.hint or "") from error
    except LimitReached as limit:
        raise ScriptRequirements(skill.name, limit.reason) from limit
    folder, packages = str(taken.path), None if environment is None else str(environment)
    capabilities = []
    if script is not None:
        program = started(script, folder, packages, ())
        capabilities = capabilities_of(program, taken.digest, folder, requirements, params)
    return SkillPrepareResult(
        name=skill.name,
        key=skill.key,
        digest=taken.digest,
        folder=folder,
        files=list(skill.files),
        requirements=list(requirements),
        environment=packages,
        installed=environment is None or environment.is_dir(),
        capabilities=capabilities,
        allowed_tools=list(skill.allowed_tools),
    )


def copied_with(folder: Path, file: str, content: bytes, into: Path) -> Path:
    """Copy a skill to another folder, with another content of one file."""
    copy = into / folder.name
    if folder.is_dir():
        shutil.copytree(folder, copy, ignore=_left_out)
    target = copy.joinpath(*PurePosixPath(file).parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return copy


def temporary_folder(home: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder on the disk of the host."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=".skill-", dir=home)


def _left_out(folder: str, names: list[str]) -> list[str]:
    """Return what is not copied: hidden files, and links, through which a copy could be written elsewhere."""
    return [one for one in names if one.startswith((".", "__pycache__")) or Path(folder, one).is_symlink()]


def _with_packages(skill: SkillSpec, folder: Path, script: str, packages: Sequence[str], limits: Config) -> SkillSpec:
    """Return the skill with the packages of one script: those of its block, else of the skill, else of a listing."""
    meter = Meter(limits)
    meter.start()
    problems = Problems(skill.name, meter)
    text = _text(folder / script)
    blocks = [*find_blocks(text)] if script.endswith(".py") else []
    requirements, python = skill.requirements, skill.requires_python
    if any(one.kind == "script" for one in blocks):
        found = read_requirements({script: blocks}, "", problems)
        requirements, python = found.packages, found.python
    elif not requirements and (listing := _listing(skill.files, script)) is not None:
        requirements = tuple(checked_requirements(_lines(_text(folder / listing)), listing, listing, problems))
    added = checked_requirements(packages, "packages", "packages", problems)
    written = evolve(skill, requirements=tuple(dict.fromkeys([*requirements, *added])), requires_python=python)
    _raise_fatal(skill.name, problems.found)
    return written


def _raise_fatal(skill: str, problems: Iterable[SkillProblem]) -> None:
    for one in problems:
        if one.fatal:
            raise ScriptRequirements(skill, one.reason, one.hint)


def _listing(files: Sequence[str], script: str) -> str | None:
    """Return the nearest `requirements.txt`, in the folder of the script or in one that contains it."""
    folders = PurePosixPath(script).parents
    return next((name for one in folders if (name := str(one / _LISTING)) in files), None)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        written = line.partition(" #")[0].strip()
        if written and not written.startswith("#"):
            yield written


def _text(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(_LARGEST_SCRIPT).decode(errors="replace")
