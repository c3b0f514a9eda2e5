"""The conformance class of sandboxes."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from sideband import Host
from sideband.sandboxing import Isolation, Probe, Sandbox

from ._base import Conformance
from ._failing import fail
from ._leftovers import held, left_since

_SKILL = """
import inspect
import os
import socket
from sideband.skill import tool


@tool
async def environment() -> list[str]:
    \"\"\"Return the names of the environment variables.\"\"\"
    return sorted(os.environ)


@tool
async def attempts(secret: str) -> list[str]:
    \"\"\"Return what is possible that should not be.\"\"\"
    done = []
    try:
        open(secret).read()
        done.append("read a file of the user")
    except OSError:
        pass
    try:
        socket.create_connection(("127.0.0.1", 9), timeout=1)
        done.append("connect to this machine")
    except PermissionError:
        pass
    except OSError as error:
        if error.errno in (61, 111):
            done.append("connect to this machine")
    try:
        os.fork() or os._exit(0)
        done.append("start a process")
    except OSError:
        pass
    return done
"""


class SandboxConformance(Conformance):
    """The tests of a sandbox: a plugin in the group ``sideband.v1.sandbox``.

    Attributes:
        expects: the label of the tier that it must reach on this machine; empty for any.

    Example:
        >>> class TestSandbox(SandboxConformance):
        ...     plugin = "sandbox.sandbox"
    """

    kind = "sandbox"
    also = ("loader.skills",)
    expects: ClassVar[str] = ""

    def test_probe_claims_what_it_proved(self) -> None:
        """Check that ``probe`` names a tier, what a worker tried in vain, and what is missing; twice the same."""

        async def check() -> None:
            async with self._opened() as sandbox:
                first = await sandbox.probe()
                if not isinstance(first, Probe):
                    self._wrong("`probe` returns a `Probe`", f"a {type(first).__name__}", "return a `Probe`")
                if first.isolation > Isolation.NONE and not first.proofs:
                    self._wrong(
                        f"it claims `{first.isolation.label}` with what a throw-away worker tried in vain",
                        "its `proofs` are empty",
                        "claim only what a worker has just proved",
                    )
                if self.expects and first.isolation.label != self.expects:
                    shown = f"{first.isolation.label}: {'; '.join(first.gaps)}"
                    self._wrong(f"the tier `{self.expects}`", shown, "; ".join(first.hints) or "see `sideband doctor`")
                second = await sandbox.probe()
                if second.isolation != first.isolation:
                    self._wrong("two probes find the same tier", f"then {second.isolation.label}", "find the cause")

        self.run(check)

    def test_workers_run_tools_without_the_variables_of_the_host(self) -> None:
        """Check that a worker runs a tool, and does not have the environment variables of the host."""
        os.environ["SIDEBAND_CONFORMANCE"] = "secret"
        try:
            found = self._call("environment")
        finally:
            del os.environ["SIDEBAND_CONFORMANCE"]
        if "SIDEBAND_CONFORMANCE" in found:
            self._wrong(
                "a worker has the variables of its request only",
                "it has those of the host",
                "pass `request.environment`, and nothing else",
            )

    def test_workers_cannot_do_what_the_tier_forbids(self) -> None:
        """Check that with a tier above ``none``, a worker cannot read the user's files, connect, or start a process."""
        secret = self._root / "secret.txt"
        secret.write_text("of the user")

        async def tier() -> Isolation:
            async with self._opened() as sandbox:
                return (await sandbox.probe()).isolation

        claimed = self.run(tier)
        if claimed == Isolation.NONE:
            return
        done = self._call("attempts", secret=str(secret))
        if done:
            self._wrong(
                f"a worker of the tier `{claimed.label}` cannot leave it",
                f"it could {', '.join(done)}",
                "apply the lockdown before the worker reads its first message",
            )

    def test_close_releases_everything(self) -> None:
        """Check that ``close`` may be called twice, leaves nothing, and ``probe`` works afterwards."""

        async def check() -> None:
            before = held()
            async with self._opened() as sandbox:
                await sandbox.probe()
                await sandbox.close()
                await sandbox.close()
                if left := await left_since(before):
                    self._wrong("a closed sandbox leaves nothing", f"it leaves {', '.join(left)}", "release it")
                await sandbox.probe()

        self.run(check)

    async def exercise(self, host: Host) -> None:
        """Call a tool in a worker."""
        await host.call("probe.environment")

    def _call(self, tool: str, **arguments: Any) -> Any:
        async def call() -> Any:
            async with self.open_host() as host:
                return await host.call(f"probe.{tool}", **arguments)

        return self.run(call)

    def _host_options(self, home: Path | None) -> dict[str, Any]:
        options = super()._host_options(home)
        folder = self._root / "skills" / "probe"
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text("---\nname: probe\ndescription: Tries what a worker can do.\n---\n")
            (folder / "tools.py").write_text(_SKILL)
        policy = {"isolation": "none", **options["settings"].get("policy", {})}
        return {
            **options,
            "skill_dirs": [folder.parent],
            "settings": {**options["settings"], "policy": policy},
        }

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Sandbox]:
        register = self.subject.value.sideband_sandboxes
        configured = inspect.signature(register).parameters  # as a host passes the configuration
        arguments = [self.subject.value.Config.model_validate(self.fill(self.config))] if configured else []
        found = [one for one in register(*arguments) if one.name == self.subject.name]
        if not found:
            self._wrong(f"a sandbox `{self.subject.name}`", "it does not exist", "name it like its entry point")
        sandbox: Sandbox = found[0]
        try:
            yield sandbox
        finally:
            await sandbox.close()

    def _wrong(self, expected: str, happened: str, remedy: str) -> Any:
        fail(self.label, expected=expected, happened=happened, remedy=remedy)
