"""The fixture `worker`: tools of skills, run in real workers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from textwrap import dedent
from typing import Any

from sideband import CallRequest, CallResult, Host, Plugin

from ._errors import ArgumentInvalid, KitError
from ._hosts import HostFactory

_FIXTURE = "worker"


class SkillWorker:
    """Calls tools of skills in real workers: the fixture ``worker``.

    Each call opens a host with all installed plugins, and closes it. The calls in a block
    ``async with worker.open(folder):`` share one. The host's state is kept until the end of the test. Workers get the
    strongest isolation that the machine offers.

    Args:
        hosts: makes the hosts.
        folder: the folder for skills that the test writes.

    Attributes:
        result: the result of the last call, with its effects, logs and isolation; ``None`` before the first.

    Example:
        >>> async def test_sum(worker):
        ...     folder = worker.skill("sums", "async def add(a: int, b: int) -> int: return a + b")
        ...     assert await worker.call(folder, "add", a=1, b=2) == 3
    """

    def __init__(self, hosts: HostFactory, folder: Path) -> None:
        self.result: CallResult | None = None
        self._hosts, self._folder = hosts, folder
        self._plugins: tuple[Plugin | str, ...] = ()
        self._options: dict[str, Any] = {"installed": True}
        self._host: Host | None = None
        self._has_replayed = False

    def use(self, *plugins: Plugin | str, **options: Any) -> None:
        """Choose the plugins and options of the hosts of further calls.

        Args:
            plugins: plugins as for ``sideband_host``; among them one that loads skills, such as ``"loader.skills"``,
                unless ``installed=True``.
            options: options of ``sideband_host``, such as ``settings``.
        """
        self._plugins, self._options = plugins, options

    def skill(
        self, name: str, source: str, *, capabilities: str = "", description: str = "A skill of a test.", **keys: object
    ) -> Path:
        """Write a skill with one module, and return its folder.

        Args:
            name: the name of the skill and of its folder.
            source: the source of its module, which is dedented.
            capabilities: the capabilities that it requests, separated by spaces.
            description: its description.
            keys: other keys of its metadata, such as ``timeout=5`` for ``sideband.timeout``.
        """
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        metadata = {"capabilities": capabilities, **keys}
        lines = "".join(f"  sideband.{key}: '{value}'\n" for key, value in metadata.items() if value != "")
        table = f"metadata:\n{lines}" if lines else ""
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n{table}---\n")
        (folder / "tools.py").write_text(dedent(source))
        return folder

    @asynccontextmanager
    async def open(self, *folders: Path) -> AsyncIterator[Host]:
        """Open one host for all calls in a block, such as those that share a cassette.

        Args:
            folders: the folders of the skills that are called.

        Raises:
            KitError: if an earlier host of the test has used the cassette.
        """
        if "cassette" in self._options:
            if self._has_replayed:
                raise KitError(
                    "a cassette has the effects of one host, and an earlier call of this test has used it",
                    hint="write `async with worker.open(folder):` around the calls",
                )
            self._has_replayed = True
        async with self._hosts(*self._plugins, skill_dirs=folders, **self._options) as host:
            self._host = host
            try:
                yield host
            finally:
                self._host = None

    async def call(self, folder: Path, tool: str, /, grants: Iterable[str] = (), **arguments: Any) -> Any:
        """Call a tool of a skill and return its result.

        Args:
            folder: the folder of the skill, which contains ``SKILL.md``.
            tool: the name of the tool, without that of the skill.
            grants: the capabilities of the call; by default, none.
            arguments: the arguments of the tool.

        Raises:
            ArgumentInvalid: if the folder is not a skill that can be loaded; the message has the reasons.
            CallError: if the call failed, such as ``SkillFailed``.
            WorkerError: if the worker failed.
        """
        folder = Path(folder)
        if not (folder / "SKILL.md").is_file() and not any(folder.glob("*.*")):
            raise ArgumentInvalid(
                _FIXTURE,
                "folder",
                f"{folder} is not the folder of a skill",
                hint="pass the folder that contains SKILL.md",
            )
        granted = (grants,) if isinstance(grants, str) else tuple(grants)
        async with self.open(folder) if self._host is None else nullcontext(self._host) as host:
            name = await _skill_in(host, folder)
            self.result = await host.run(CallRequest(f"{name}.{tool}", arguments, grants=granted))
            return self.result.output


async def _skill_in(host: Host, folder: Path) -> str:
    """Return the name of the skill in a folder."""
    if not host.plugins.names("loader"):
        raise KitError(
            "no plugin that loads skills is used", hint='pip install sideband-skills, or `worker.use("loader.skills")`'
        )
    loaded = await host.skills()
    for skill in loaded.skills:
        if _is_same(skill.source, folder):
            return skill.name
    reasons = "; ".join(problem.reason for problem in loaded.problems)
    hints = "; ".join(problem.hint for problem in loaded.problems if problem.hint) or "see `sideband skills validate`"
    raise ArgumentInvalid(_FIXTURE, "folder", f"cannot load a skill from {folder}: {reasons}", hint=hints)


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
