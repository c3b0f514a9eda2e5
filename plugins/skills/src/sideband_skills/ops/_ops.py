"""The ops of the family `skills`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from anyio import to_thread
from sideband import SidebandError
from sideband.environments import Environments
from sideband.loading import SkillSources, SkillSpec
from sideband.ops import Level, OpContext, OpError, Recorded, Undo, op
from sideband_skill_packages import PackageSource
from sideband_skill_packages import install as install_packages

from .._config import Config
from .._folder_loader import FolderLoader
from ._errors import PackagesFailed, SkillUnreadable
from ._models import (
    ScriptRunParams,
    ScriptRunResult,
    SkillAllowParams,
    SkillAllowResult,
    SkillCheckParams,
    SkillCheckResult,
    SkillFinding,
    SkillInstallParams,
    SkillInstallResult,
    SkillPrepareParams,
    SkillPrepareResult,
)
from ._running import run_script
from ._scope import SkillsScope
from ._scripts import copied_with, prepared, temporary_folder

_MAXIMUM_SECONDS = 1_800.0
# The maximum timeout of a script, and the installation of its packages.
_MAXIMUM_RUN_SECONDS = 3_600.0 + _MAXIMUM_SECONDS


def _running(params: ScriptRunParams) -> SkillsScope:
    return SkillsScope(script=f"{params.digest}/{params.script}")


def _installing(params: SkillInstallParams) -> Iterable[SkillsScope]:
    return [SkillsScope(package=one) for one in params.requirements]


def _allowing(params: SkillAllowParams) -> Iterable[SkillsScope]:
    return [SkillsScope(allow=one) for one in params.tools]


def _uses_network(params: ScriptRunParams) -> bool:
    return params.network


async def _undo_run(recorded: Recorded, ctx: OpContext) -> Undo:  # noqa: ARG001  fixed signature
    script = recorded.params.get("script", "the script")
    return Undo(remains=(f"the changes made by `{script}` cannot be undone, because they are not recorded",))


async def _described_packages(params: SkillInstallParams, ctx: OpContext) -> str:  # noqa: ARG001  fixed signature
    return f"download and install {', '.join(params.requirements)}"


async def _prepared(params: SkillPrepareParams, ctx: OpContext) -> SkillPrepareResult:
    folder = Path(params.folder)
    loaded = await FolderLoader(ctx.config).load(SkillSources((folder,)))
    if len(loaded.skills) != 1:
        raise SkillUnreadable(params.folder, loaded.problems)
    return await to_thread.run_sync(partial(prepared, loaded.skills[0], params, ctx.home, ctx.config))


async def _described_run(params: ScriptRunParams, ctx: OpContext) -> str:
    skill = await _prepared(params, ctx)
    lines = [f"run {shlex.join([params.script, *params.arguments])} of the skill {skill.name}"]
    lines += [f"in {place}" for place in params.places]
    if params.network:
        lines.append("with the network")
    if skill.requirements:
        lines.append(f"with the packages {', '.join(skill.requirements)}")
    return "\n".join(lines)


@op("skills.prepare", level=Level.SAFE, internal=True, record=("folder", "script", "packages"), egress=False)
async def prepare(params: SkillPrepareParams, ctx: OpContext) -> SkillPrepareResult:
    """Take a snapshot of a skill, whose digest names it, and determine the packages that a script of it needs.

    The packages are those of the script's own `script` block, else those of the skill, else those of the nearest
    `requirements.txt`.

    Args:
        params: `folder` is that of the skill; `script` is a file in it; `packages` are needed in addition.
        ctx: the dispatch.

    Raises:
        SkillUnreadable: if the folder contains no skill that can be loaded.
        SkillFileMissing: if the skill has no such file.
        ScriptRequirements: if the packages are declared wrongly.

    Example:
        ``{"folder": "/srv/skills/report", "script": "scripts/report.py"}``
    """
    return await _prepared(params, ctx)


@op(
    "skills.run",
    requires="skills",
    scope=_running,
    level=Level.RESTRICTED,
    timeout=_MAXIMUM_RUN_SECONDS,
    internal=True,
    record=("folder", "digest", "script", "arguments", "packages", "places", "network", "timeout", "keep"),
    preview=_described_run,
    undo=_undo_run,
    egress=_uses_network,
)
async def run(params: ScriptRunParams, ctx: OpContext) -> ScriptRunResult:
    """Run a script of a skill in the isolation of programs, with the packages that it needs.

    What it does are effects of other ops, with the rights of the caller: `skills.install`, `shell.run`, and those of
    `files` for its working directory.

    Args:
        params: those of `skills.prepare`; `digest` is its result; `arguments` and `input` are for the script; `places`
            are folders that it may change; `network` gives it the network; `timeout` is in seconds; `keep` is where the
            files in its working directory are kept.
        ctx: the dispatch.

    Raises:
        SkillChanged: if the skill was changed since `skills.prepare`.
        SkillsError: for the other errors of this family.

    Example:
        ``{"folder": "/srv/skills/report", "digest": "…", "script": "scripts/report.py"}``
    """
    return await run_script(await _prepared(params, ctx), params, ctx)


@op(
    "skills.install",
    requires="skills",
    scope=_installing,
    level=Level.RESTRICTED,
    timeout=_MAXIMUM_SECONDS,
    idempotent=True,
    internal=True,
    record=("requirements",),
    preview=_described_packages,
    egress=True,
)
async def install(params: SkillInstallParams, ctx: OpContext) -> SkillInstallResult:
    """Install packages into an environment that scripts and skills with the same requirements share.

    Only wheels are installed, so no code of a package runs with the rights of the user.

    Args:
        params: `requirements` are names and versions.
        ctx: the dispatch.

    Raises:
        PackagesFailed: if they cannot be installed.

    Example:
        ``{"requirements": ["pypdf>=5"]}``
    """
    config: Config = ctx.config
    wheels = None if config.wheels is None else Path(os.path.expanduser(config.wheels))  # noqa: PTH111, ASYNC240
    wanted = SkillSpec("script", "script", "", ctx.home, requirements=tuple(params.requirements))
    source = PackageSource(wheels=wheels, offline=config.offline)
    try:
        installed = await install_packages(Environments(ctx.home), wanted, source)
    except OpError:
        raise
    except SidebandError as error:
        raise PackagesFailed(error.message, error.hint) from error
    assert installed is not None  # noqa: S101  there is at least one requirement
    return SkillInstallResult(environment=str(installed.path), packages=dict(installed.packages))


@op(
    "skills.allow",
    requires="skills",
    scope=_allowing,
    level=Level.MONITORED,
    idempotent=True,
    internal=True,
    record=("skill", "tools"),
    egress=False,
)
async def allow(params: SkillAllowParams, ctx: OpContext) -> SkillAllowResult:  # noqa: ARG001  fixed signature
    """Return the tools that run without a question while a skill is active, if the user has granted that.

    Args:
        params: `skill` is the name of the skill; `tools` are those that it lists in `allowed-tools`.
        ctx: the dispatch, with the rights of this version of the skill.

    Example:
        ``{"skill": "release", "tools": ["edit", "command(git *)"]}``
    """
    return SkillAllowResult(tools=params.tools)


@op("skills.check", level=Level.SAFE, internal=True, record=("folder", "file"), egress=False)
async def check(params: SkillCheckParams, ctx: OpContext) -> SkillCheckResult:
    """Return the problems that a skill would have with another content of one file. The skill is not changed.

    Args:
        params: `folder` is that of the skill, which may not exist yet; `file` is relative to it; `content` is new.
        ctx: the dispatch.

    Example:
        ``{"folder": "/srv/skills/report", "file": "SKILL.md", "content": "…"}``
    """
    content = params.content.encode() if isinstance(params.content, str) else params.content
    with temporary_folder(ctx.home) as temporary:
        copy = await to_thread.run_sync(copied_with, Path(params.folder), params.file, content, Path(temporary))
        found = await FolderLoader(ctx.config).validate(copy)
    place = f"{copy}/"
    problems = [
        SkillFinding(
            code=one.code,
            reason=one.reason.replace(place, ""),
            hint=one.hint.replace(place, ""),
            fatal=one.fatal,
        )
        for one in found
    ]
    return SkillCheckResult(problems=problems)
