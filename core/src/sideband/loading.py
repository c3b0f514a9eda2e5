"""What a skill loader promises and produces. Loaders are plugins of the group ``sideband.v1.loader``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attrs import Factory, field, frozen

from .errors import SidebandError

if TYPE_CHECKING:
    from .ops import OpFamily

from .exit_codes import ExitCode

__all__ = [
    "LoadedSkills",
    "SkillError",
    "SkillLoader",
    "SkillPackage",
    "SkillProblem",
    "SkillSources",
    "SkillSpec",
    "ToolSpec",
]


@frozen
class SkillProblem:
    """Something in a skill that was not understood, and what was done about it.

    Args:
        source: the folder, or the folder and file, that it is about.
        code: stable, ``skill.name.folder`` for instance.
        reason: one sentence that names the key and the value.
        hint: the remedy.
        fatal: whether the skill (or this tool of it) could not be loaded because of it.
    """

    source: str
    code: str
    reason: str
    hint: str = ""
    fatal: bool = False


@frozen
class ToolSpec:
    """One typed function of a skill, as found without importing it.

    Args:
        skill: the skill's name, as a name part: ``my_skill``.
        name: the function's name.
        module: path of the file in the skill's folder, with ``/``.
        description: the first paragraph of the docstring.
        parameters: a JSON Schema object for the arguments.
        returns: a JSON Schema for the result, if the annotation could be understood.
        timeout: seconds for one call; ``None`` leaves it to the skill and the host.
        validate: checks and coerces arguments (strings from a command line included), and returns them as plain
            JSON data. Raises ``ValueError`` whose message names each bad argument.
        signature: the signature as text, for people.
    """

    skill: str
    name: str
    module: str
    description: str
    parameters: Mapping[str, Any]
    validate: Callable[[Mapping[str, Any]], dict[str, Any]] = field(repr=False, eq=False)
    returns: Mapping[str, Any] | None = None
    timeout: float | None = None
    signature: str = ""

    @property
    def full_name(self) -> str:
        """``skill.tool``, as people write it."""
        return f"{self.skill}.{self.name}"

    @property
    def model_name(self) -> str:
        """``skill__tool``, as models see it."""
        return f"{self.skill}__{self.name}"


@frozen
class SkillSpec:
    """A skill as loaded: data only; none of its code has run.

    Args:
        name: as the skill calls itself (``github-stars``); ``key`` is its name part (``github_stars``).
        source: the folder that it was read from. Never written to.
        origin: ``folder``, or ``package NAME VERSION``.
        files: what belongs to the skill, relative to ``source``, with ``/``, sorted; this is what is snapshotted.
        capabilities: what it asks for, as written (validated for grammar).
        requirements: what it depends on, as PEP 508 texts; ``sideband skills install`` fetches them.
        requires_python: the versions of Python that it runs on, as a PEP 440 specifier set; empty for any.
        memory: resident bytes that its worker may use; ``None`` leaves it to the policy.
        alone: whether each of its calls gets a worker of its own.
        families: the op families that its code names in imports from ``sideband.skill``; ``None`` if that can't be
            told, which means all.
        instructions: the body of SKILL.md.
        problems: warnings that did not keep it from loading.
    """

    name: str
    key: str
    description: str
    source: Path
    origin: str = "folder"
    files: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    capabilities: tuple[str, ...] = ()
    families: tuple[str, ...] | None = None
    timeout: float | None = None
    requirements: tuple[str, ...] = ()
    requires_python: str = ""
    memory: int | None = None
    alone: bool = False
    connections: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = Factory(dict)
    instructions: str = field(default="", repr=False)
    problems: tuple[SkillProblem, ...] = ()

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of that name, or ``None``."""
        return next((tool for tool in self.tools if tool.name == name), None)


@frozen
class SkillPackage:
    """An installed package that carries a skill: an entry point of the group ``sideband.v1.skill``, located only."""

    name: str
    path: Path
    distribution: str
    version: str


@frozen
class SkillSources:
    """Where to look: folders (each a skill, or a folder of skills) and installed packages."""

    folders: tuple[Path, ...] = ()
    packages: tuple[SkillPackage, ...] = ()


@frozen
class LoadedSkills:
    """What a loader found. What it could not load is in ``problems``, ``fatal``; nothing is dropped silently."""

    skills: tuple[SkillSpec, ...] = ()
    problems: tuple[SkillProblem, ...] = ()


class SkillLoader(Protocol):
    """Finds skills without running them. ``sideband_loaders()`` of the plugin returns its loaders."""

    name: str

    async def load(self, sources: SkillSources) -> LoadedSkills:
        """Read what is there. A bad skill becomes a problem, never an exception."""

    async def validate(self, folder: Path, *, families: Iterable[OpFamily] = ()) -> tuple[SkillProblem, ...]:
        """Everything that is wrong with one skill, for its author: what ``load`` says, and what would fail later.

        Args:
            folder: the skill's folder.
            families: the op families there are, so that what the code uses can be checked; none checks less.

        Returns:
            The problems, in the order in which they were met; empty if there are none.

        Example:
            >>> for problem in await loader.validate(Path("my-skill")):
            ...     print(problem.source, problem.reason, problem.hint)
        """


class SkillError(SidebandError, ValueError):
    """A skill that was asked for by name could not be loaded."""

    code = "skill.invalid"
    exit_code = ExitCode.CONFIGURATION
