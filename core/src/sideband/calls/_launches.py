"""How the worker of each skill is started: a copy of the skill, the SDK for it, its packages, and its limits."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from anyio import to_thread

from ..broker import Ops
from ..environments import Environments
from ..loading import SkillSpec
from ..ops import OpFamily, write_sdk
from ..plugins import PluginError, PluginHost
from ..settings import Policy
from ..workers import LaunchRequest, WorkerLimits, runtime_files, snapshot
from ._limits import worker_memory


class SkillLaunches:
    """Finds it out at the first call of a skill; a host that runs on goes on with the skill as it was then.

    Args:
        home: the host's folder.
        plugins: those that may supply op families.
        ops: the op families.
        environments: the packages of skills.
        policy: bounds the limits.
    """

    def __init__(self, home: Path, plugins: PluginHost, ops: Ops, environments: Environments, policy: Policy) -> None:
        self._home = home
        self._plugins = plugins
        self._ops = ops
        self._policy = policy
        self._environments = environments
        self._known: dict[str, LaunchRequest] = {}
        self._sdks: dict[tuple[str, ...], Path] = {}

    async def of(self, skill: SkillSpec) -> LaunchRequest:
        """How to start the skill's worker.

        Raises:
            AboveMaximum: it asks for more memory than the policy allows.
            EnvironmentMissing: its packages are not installed.
            SnapshotFailed: it can't be copied as it is.
        """
        if skill.key not in self._known:
            limits = WorkerLimits(memory=worker_memory(self._policy, skill))
            packages = await to_thread.run_sync(self._environments.require, skill)
            copy = await to_thread.run_sync(snapshot, skill, self._home)
            self._known[skill.key] = LaunchRequest(
                snapshot=copy.path,
                sdk=await self._sdk(skill),
                packages=packages,
                environment=_environment(),
                limits=limits,
            )
        return self._known[skill.key]

    async def _sdk(self, skill: SkillSpec) -> Path:
        """The folder with the SDK for the families that the skill names."""
        names = tuple(sorted(self._plugins.names("op") if skill.families is None else skill.families))
        if names not in self._sdks:
            families: list[OpFamily] = []
            reasons: dict[str, str] = {}
            for name in names:
                try:
                    families.append((await self._ops.plugin(name)).contribution)
                except PluginError as error:
                    reasons[name] = error.message
            write = partial(write_sdk, self._home / "sdk", families, runtime_files(), reasons=reasons)
            self._sdks[names] = await to_thread.run_sync(write)
        return self._sdks[names]


def _environment() -> dict[str, str]:
    """The whole environment of a worker: nothing of the host's but what text and time need."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "LC_CTYPE", "TZ") if name in os.environ}
    return {"PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "2", **kept}
