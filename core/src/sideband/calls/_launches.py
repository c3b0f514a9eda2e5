"""Prepare the launch of a skill's worker: a snapshot of the skill, its SDK, its packages and its limits."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from anyio import to_thread

from ..broker import Ops
from ..environments import Environments
from ..loading import SkillSpec
from ..ops import OpFamily
from ..plugins import PluginError, PluginHost
from ..settings import Policy
from ..workers import LaunchRequest, WorkerLimits, runtime_files, snapshot
from ._limits import worker_memory


class SkillLaunches:
    """Launch requests of skills, created at the first call of a loaded skill and used until a reload.

    Args:
        home: the host's state folder.
        plugins: the plugin host, for the names of op families.
        ops: the op families.
        environments: the environments of skills.
        policy: the policy, for the limits.
    """

    def __init__(self, home: Path, plugins: PluginHost, ops: Ops, environments: Environments, policy: Policy) -> None:
        self._home = home
        self._plugins = plugins
        self._ops = ops
        self._policy = policy
        self._environments = environments
        self._known: dict[str, tuple[SkillSpec, LaunchRequest]] = {}
        self._sdks: dict[tuple[str, ...], Path] = {}

    @property
    def families(self) -> tuple[str, ...]:
        """The names of the installed op families."""
        return self._plugins.names("op")

    async def of(self, skill: SkillSpec) -> LaunchRequest:
        """Return the launch request of the skill's worker.

        Raises:
            AboveMaximum: if the skill requests more memory than the policy allows.
            EnvironmentMissing: if its packages are not installed.
            SnapshotFailed: if it cannot be copied.
        """
        launches = self._known
        spec, launch = launches.get(skill.key, (None, None))
        # Another skill may have got the name since. Its rights are not for the snapshot of this one.
        if launch is None or spec is not skill:
            limits = WorkerLimits(memory=worker_memory(self._policy, skill))
            packages = await to_thread.run_sync(self._environments.require, skill)
            copy = await to_thread.run_sync(snapshot, skill, self._home)
            launch = LaunchRequest(
                snapshot=copy.path,
                sdk=await self._sdk(skill),
                packages=packages,
                environment=_environment(),
                limits=limits,
            )
            launches[skill.key] = skill, launch
        return launch

    def forget(self) -> None:
        """Prepare launches again on the next call, since the op families have changed."""
        # Not `clear`: a launch that is being prepared now must not be found again.
        self._known, self._sdks = {}, {}

    async def _sdk(self, skill: SkillSpec) -> Path:
        """Return the folder with the SDK for the families that the skill uses."""
        names = tuple(sorted(self._plugins.names("op") if skill.families is None else skill.families))
        sdks = self._sdks
        if names not in sdks:
            from ..ops import write_sdk  # noqa: PLC0415  many programs run no skill

            families: list[OpFamily] = []
            reasons: dict[str, str] = {}
            for name in names:
                try:
                    families.append((await self._ops.plugin(name)).contribution)
                except PluginError as error:
                    reasons[name] = error.message
            write = partial(write_sdk, self._home / "sdk", families, runtime_files(), reasons=reasons)
            sdks[names] = await to_thread.run_sync(write)
        return sdks[names]


def _environment() -> dict[str, str]:
    """Return the environment of a worker, which inherits only locale and time zone from the host."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "LC_CTYPE", "TZ") if name in os.environ}
    return {"PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "2", **kept}
