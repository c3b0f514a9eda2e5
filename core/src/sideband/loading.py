"""The protocol of skill loaders, which are plugins in the group ``sideband.v1.loader``, and the data they return."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from attrs import Factory, field, frozen

from ._from_host import FromHost
from .errors import SidebandError

if TYPE_CHECKING:
    from .ops import OpFamily

from .exit_codes import ExitCode

__all__ = [
    "STRICTER",
    "UNUSABLE_MODULES",
    "LoadedSkills",
    "PluginFolder",
    "Resume",
    "SkillBundle",
    "SkillCopy",
    "SkillError",
    "SkillLoader",
    "SkillPackage",
    "SkillProblem",
    "SkillSources",
    "SkillSpec",
    "ToolSpec",
    "strictest",
]

UNUSABLE_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("aiohttp", "ftplib", "http.client", "httplib2", "httpx", "requests", "socket"), "http"),
    **dict.fromkeys(("urllib.request", "urllib3", "webbrowser"), "http"),
    **dict.fromkeys(("os.system", "pty", "subprocess"), "shell"),
    **dict.fromkeys(("asyncpg", "psycopg", "psycopg2", "pymysql", "sqlite3"), "sql"),
    **dict.fromkeys(("ctypes", "multiprocessing", "smtplib"), ""),
    "keyring": "secrets",
}
"""Modules and functions that do not work in a worker, and the op family to use instead, or an empty string."""


Resume = Literal["replay", "ask", "never"]
"""What happens to a call that its host's death interrupted: it runs again, after a question, or never."""

STRICTER: tuple[Resume, ...] = ("replay", "ask", "never")
"""The values of ``resume``, each followed by the stricter ones."""


def strictest(*values: Resume) -> Resume:
    """Return the strictest of several values of ``resume``.

    Example:
        >>> strictest("replay", "ask")
        'ask'
    """
    return max(values, key=STRICTER.index)


@frozen
class SkillProblem:
    """A problem that a loader found in a skill.

    Args:
        source: the folder, or the file in it, that has the problem.
        code: a stable code, such as ``skill.name.folder``.
        reason: one sentence that names the key and the value.
        hint: how to fix the problem.
        fatal: whether the problem prevented the skill, or this tool of it, from being loaded.
    """

    source: str
    code: str
    reason: str
    hint: str = ""
    fatal: bool = False


@frozen
class ToolSpec:
    """One typed function of a skill, found without importing its module.

    Args:
        skill: the skill's name in its identifier form, such as ``my_skill``.
        name: the function's name.
        module: the path of the file relative to the skill's folder, with ``/``.
        description: the first paragraph of the docstring.
        parameters: a JSON Schema object for the arguments.
        returns: a JSON Schema for the result, or ``None`` if the annotation is missing or not supported.
        timeout: the maximum duration of one call in seconds, or ``None`` for the default of the skill or the host.
        validate: a function that validates and coerces arguments, including strings from a command line, and returns
            them as plain JSON data. It raises a ``ValueError`` whose message names each invalid argument.
        from_host: the parameters that the host fills in, each with the name of its value (``FromHost``). They are not
            part of ``parameters``; ``validate`` accepts them.
        validate_result: a function that raises a ``ValueError`` if a result does not match ``returns``, or ``None`` for
            no check. The result is plain JSON data and ``bytes``.
        signature: the signature as text, for display.
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
    validate_result: Callable[[Any], None] | None = field(default=None, repr=False, eq=False)
    from_host: Mapping[str, str] = Factory(dict)

    def __attrs_post_init__(self) -> None:
        if unknown := sorted({*self.from_host.values()}.difference(FromHost.values)):
            raise ValueError(f"tool `{self.full_name}`: unknown host value {unknown[0]!r}")

    @property
    def full_name(self) -> str:
        """The name that users write: ``skill.tool``."""
        return f"{self.skill}.{self.name}"

    @property
    def model_name(self) -> str:
        """The name that models see: ``skill__tool``."""
        return f"{self.skill}__{self.name}"


@frozen
class SkillSpec:
    """A loaded skill. It is plain data: none of the skill's code has run.

    Args:
        name: the name in SKILL.md, such as ``github-stars``.
        key: its identifier form, ``github_stars``.
        description: what the skill does, and when to use it.
        source: the folder that the skill was read from. It is never written to.
        origin: ``folder``, ``project`` for a folder of the project, ``package NAME VERSION``, ``plugin NAME`` for a
            folder that this plugin returned, or ``loader NAME`` for files that the loader of that plugin returned.
        files: the files of the skill, relative to ``source``, with ``/``, sorted. Snapshots contain these files.
        tools: the tools of the skill.
        capabilities: the requested capabilities, as written. Their syntax is valid.
        timeout: the timeout of its calls in seconds, or ``None`` for that of the policy.
        requirements: the dependencies as PEP 508 strings. ``sideband skills install`` installs them.
        requires_python: the supported Python versions as a PEP 440 specifier set. Empty means any version.
        memory: the maximum resident memory of the skill's worker in bytes, or ``None`` for the limit of the policy.
        alone: whether each call of the skill gets its own worker.
        resume: what happens to an interrupted call, unless the policy is stricter.
        families: the op families that the code imports from ``sideband.skill``, or ``None`` if they cannot be
            determined, which means all families.
        provides: the services that the skill provides: the name of a tool for each name of a service.
        connections: reserved; not used yet.
        allowed_tools: the tools that SKILL.md lists as pre-approved.
        license, compatibility: texts of SKILL.md for users.
        metadata: all metadata of SKILL.md.
        instructions: the body of SKILL.md.
        problems: warnings. They did not prevent the skill from being loaded.
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
    resume: Resume = "replay"
    provides: Mapping[str, str] = Factory(dict)
    connections: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = Factory(dict)
    instructions: str = field(default="", repr=False)
    problems: tuple[SkillProblem, ...] = ()

    @property
    def of_project(self) -> bool:
        """Whether the skill is from a project. The user's grants by name are for other skills."""
        return self.origin == "project"

    def tool(self, name: str) -> ToolSpec | None:
        """Return the tool with that name, or ``None``."""
        return next((tool for tool in self.tools if tool.name == name), None)


@frozen
class SkillPackage:
    """An installed package with a skill: an entry point in the group ``sideband.v1.skill``. It is not imported.

    Attributes:
        name: the entry-point name.
        path: the folder of the package.
        distribution, version: the distribution that provides it.
    """

    name: str
    path: Path
    distribution: str
    version: str


@frozen
class SkillBundle:
    r"""The files of one skill in memory, such as those that a loader has fetched.

    The host copies them to ``$SIDEBAND_HOME/skills/<digest>``, and the other loaders read the copy like a folder. The
    digest depends on nothing but the names and contents, so equal files are one copy wherever they come from.

    Args:
        name: the expected name of the skill.
        files: the content of each file by its path: relative, with ``/``, without ``.`` and ``..``.
        place: where they come from, such as an address, for messages.

    Example:
        >>> SkillBundle("hello", {"SKILL.md": b"---\nname: hello\ndescription: Says hello.\n---\n"}).name
        'hello'
    """

    name: str
    files: Mapping[str, bytes] = field(repr=False)
    place: str = ""


@frozen
class SkillCopy:
    """The copy of a skill whose files a loader returned. It never changes.

    Attributes:
        name: the expected name of the skill, as its loader knows it.
        path: the folder, named by the digest of its content.
        origin: ``loader NAME``.
    """

    name: str
    path: Path
    origin: str


@frozen
class PluginFolder:
    """A folder that a plugin returned from the hook ``resources_discover``.

    Attributes:
        path: the folder, which is a skill or contains skills.
        plugin: the entry-point name of the plugin.
    """

    path: Path
    plugin: str

    @property
    def origin(self) -> str:
        """The ``origin`` of the skills in it: ``plugin NAME``."""
        return f"plugin {self.plugin}"


@frozen
class SkillSources:
    """The places to search for skills, in this order. Of several skills with the same name, the first is loaded.

    Attributes:
        folders: folders of the user, each of which is a skill or contains skills.
        packages: installed packages.
        project_folders: folders of the trusted project. The ``origin`` of a skill in them must be ``project``.
        copies: the files that other loaders returned. A loader that reads them sets the ``origin`` and ``source`` of
            the skill to those of the copy. They are the only sources of a second call of ``load``.
        home: the host's state folder, in whose ``cache`` a loader may store what it derives from the skills; ``None``
            for no cache.
        plugin_folders: folders that plugins returned, searched after packages and before the folders of the project.
            A loader that reads them sets the ``origin`` of their skills.
    """

    folders: tuple[Path, ...] = ()
    packages: tuple[SkillPackage, ...] = ()
    project_folders: tuple[Path, ...] = ()
    home: Path | None = None
    copies: tuple[SkillCopy, ...] = ()
    plugin_folders: tuple[PluginFolder, ...] = ()


@frozen
class LoadedSkills:
    """The result of a loader.

    Attributes:
        skills: the loaded skills.
        problems: their problems. Each skill that could not be loaded has one with ``fatal=True``.
        files: skills as files in memory, which the other loaders read. A skill that the user, a package or the project
            has under the same name is used instead.
    """

    skills: tuple[SkillSpec, ...] = ()
    problems: tuple[SkillProblem, ...] = ()
    files: tuple[SkillBundle, ...] = ()


class SkillLoader(Protocol):
    """A loader, which finds skills without running them. ``sideband_loaders()`` of a plugin returns its loaders.

    Attributes:
        name: the name of the loader, for messages.
    """

    name: str

    def load(self, sources: SkillSources, *args: Any, **kwargs: Any) -> LoadedSkills | Awaitable[LoadedSkills]:
        """Load all skills in ``sources``. An invalid skill is reported as a problem, never as an exception.

        It is ``async def load(self, sources)`` or ``async def load(self, sources, ctx)``. Without ``async`` it runs in
        a thread. ``ctx`` is the ``PluginContext`` of the plugin: with ``await ctx.dispatch(…)`` a loader causes
        effects, such as requests to a server. A loader that does not return in time fails; the others are not affected.

        A warning ``skill.manifest.missing`` or ``skill.source.empty`` about a folder is dropped if another loader finds
        a skill in it.
        """

    async def validate(self, folder: Path, *, families: Iterable[OpFamily] = ()) -> tuple[SkillProblem, ...]:
        """Return all problems of one skill, for its author, including those that ``load`` does not check.

        A loader of another format than folders need not have it.

        If the folder is not a skill in this loader's format, return one problem with the code
        ``skill.manifest.missing``. It is shown only if no other loader recognizes the folder.

        Args:
            folder: the skill's folder.
            families: the available op families, to check the ops that the code uses. Without families, ops are not
                checked.

        Returns:
            The problems in the order in which they were found.

        Example:
            >>> for problem in await loader.validate(Path("my-skill")):
            ...     print(problem.source, problem.reason, problem.hint)
        """


class SkillError(SidebandError, ValueError):
    """A skill that was requested by name could not be loaded."""

    code = "skill.invalid"
    exit_code = ExitCode.CONFIGURATION
