"""Parameters and results of the ops."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, FiniteFloat, StringConstraints
from sideband.ops import OpParams

_Path = Annotated[str, StringConstraints(min_length=1, max_length=4_096)]
_Requirement = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_Requirements = Annotated[list[_Requirement], Field(max_length=200)]
_Places = Annotated[list[_Path], Field(max_length=100)]
_Argument = Annotated[str, StringConstraints(max_length=100_000)]
_AllowedTool = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class SkillPrepareParams(OpParams):
    """Parameters of `skills.prepare`."""

    folder: _Path = Field(description="the folder of the skill, as an absolute path")
    script: _Path | None = Field(default=None, description="a file of the skill whose packages are determined")
    packages: _Requirements = Field(default=[], description="packages in addition to those that are declared")
    places: _Places = Field(default=[], description="folders that the script may change")
    network: bool = Field(default=False, description="whether the script needs the network")


class SkillPrepareResult(BaseModel):
    """A skill whose files cannot change any more.

    Attributes:
        name: the name of the skill.
        key: its identifier form.
        digest: the digest of its files.
        folder: the snapshot of the skill, a folder whose name is the digest.
        files: the files of the skill.
        requirements: the packages that the script needs, sorted.
        environment: the folder of these packages; null if it needs none.
        installed: whether they are installed.
        capabilities: what running the script requires.
        allowed_tools: the tools that the skill lists as pre-approved, as written.
    """

    name: str
    key: str
    digest: str
    folder: str
    files: list[str]
    requirements: list[str] = []
    environment: str | None = None
    installed: bool = True
    capabilities: list[str] = []
    allowed_tools: list[str] = []


class ScriptRunParams(SkillPrepareParams):
    """Parameters of `skills.run`."""

    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(
        description="the digest of the skill, as of `skills.prepare`"
    )
    script: _Path = Field(description="the script, relative to the folder of the skill")
    arguments: Annotated[list[_Argument], Field(max_length=1_000)] = Field(
        default=[], description="its arguments, one per item"
    )
    input: Annotated[str | None, Field(max_length=1_000_000)] = Field(default=None, description="its standard input")
    timeout: Annotated[FiniteFloat, Field(gt=0, le=3_600)] = Field(
        default=120.0, description="seconds until it is killed"
    )
    keep: _Path | None = Field(
        default=None, description="a folder to which the files in its working directory are moved, or `blobs`"
    )


class SkillFile(BaseModel):
    """A file that a script has written in its working directory.

    Attributes:
        name: its path in that folder.
        size: its size in bytes.
        kept: where it was moved to, or the SHA-256 of its blob; null if it was left there.
        problem: why it could not be kept; null if it was, or was not to be.
    """

    name: str
    size: int
    kept: str | None = None
    problem: str | None = None


class ScriptRunResult(BaseModel):
    """The result of a script.

    Attributes:
        exit_code: the exit code; -1 if a signal killed it.
        signal: the name of that signal.
        stdout, stderr: what it printed, as text or bytes. Long output keeps its beginning and end.
        timed_out: whether it was killed because its timeout expired.
        folder: the folder of the host that was its working directory; null if it was removed.
        files: the files in its working directory.
        more: whether there are more files than listed.
    """

    exit_code: int
    signal: str | None = None
    stdout: str | bytes = ""
    stderr: str | bytes = ""
    timed_out: bool = False
    folder: str | None = None
    files: list[SkillFile] = []
    more: bool = False


class SkillInstallParams(OpParams):
    """Parameters of `skills.install`."""

    requirements: Annotated[_Requirements, Field(min_length=1)] = Field(description="names and versions of packages")


class SkillInstallResult(BaseModel):
    """Installed packages.

    Attributes:
        environment: the folder of the packages.
        packages: the version of each package, by name.
    """

    environment: str
    packages: dict[str, str]


class SkillAllowParams(OpParams):
    """Parameters of `skills.allow`."""

    skill: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(description="the name of the skill")
    tools: Annotated[list[_AllowedTool], Field(min_length=1, max_length=256)] = Field(
        description="tools, such as `edit` or `command(git *)`"
    )


class SkillAllowResult(BaseModel):
    """The tools that run without a question while the skill is active.

    Attributes:
        tools: the tools.
    """

    tools: list[str]


class SkillCheckParams(OpParams):
    """Parameters of `skills.check`."""

    folder: _Path = Field(description="the folder of the skill, which may not exist yet")
    file: _Path = Field(description="the file to write, relative to this folder")
    content: Annotated[str | bytes, Field(max_length=16 << 20)] = Field(description="its new content")


class SkillFinding(BaseModel):
    """A problem of a skill.

    Attributes:
        code: a stable code.
        reason: what is wrong.
        hint: how to correct it.
        fatal: whether the skill, or a tool of it, cannot be loaded.
    """

    code: str
    reason: str
    hint: str = ""
    fatal: bool = False


class SkillCheckResult(BaseModel):
    """The problems that a skill would have.

    Attributes:
        problems: the problems.
    """

    problems: list[SkillFinding]
