"""Programs in the background: each belongs to its owner, and ends with the owner or the host."""

from __future__ import annotations

import logging
from functools import partial
from secrets import token_hex
from typing import Literal

import anyio
from anyio.abc import TaskGroup
from attrs import define, field, frozen
from sideband.ops import OpContext
from sideband.tools import emit_tool_progress
from sideband.workers import ProgramProcess

from ._background_models import ShellProgramState
from ._config import Config
from ._errors import ShellProgramUnknown, ShellTooMany
from ._output_log import OutputLog
from ._program_run import STREAMS, Ended, ProgramRun
from ._result import signal_name

_log = logging.getLogger("sideband.shell")
_EMITTED_AT_ONCE = 65_536


@frozen
class Owner:
    """The owner of a program: only calls with the same values know it.

    Attributes:
        domain: the plugin, or the skill with its rights.
        principal: the principal.
        session: the session of the agent, or the call if there is no agent.
    """

    domain: str
    principal: str
    session: str

    @classmethod
    def of(cls, ctx: OpContext) -> Owner:
        """Return the owner of what a dispatch starts."""
        return cls(ctx.domain, ctx.principal, ctx.origin.session or f"call {ctx.call}")


@define(eq=False)
class BackgroundProgram:
    """One program, which may have ended.

    Args:
        owner: its owner.
        process: the process.
        log: its output.
        started: when it was started, on the clock of anyio.
    """

    owner: Owner
    process: ProgramProcess = field(repr=False)
    log: OutputLog
    started: float
    ended: anyio.Event = field(init=False, factory=anyio.Event, repr=False)
    _end: Ended | None = field(init=False, default=None)
    _stopped: bool = field(init=False, default=False)
    _seconds: float = field(init=False, default=0.0)

    async def run(self, data: bytes | None, seconds: float, total: int) -> None:
        """Read the output until the program ends, and close it."""

        async def take(stream: str, output: bytes) -> None:
            self.log.feed(stream, output)

        try:
            self._end = await ProgramRun(self.process, total, take, lambda _: None).finish(data, seconds)
        except Exception as error:  # noqa: BLE001  it must not end the other programs
            _log.warning("failed to read the output of a program: %s", type(error).__name__)
        finally:
            with anyio.CancelScope(shield=True):
                await self.process.close()
            self._seconds = anyio.current_time() - self.started
            self.log.end()
            self.ended.set()

    async def stop(self, grace: float) -> None:
        """Ask the program to exit, kill it after some seconds, and wait for its end."""
        if self.ended.is_set():
            return
        self._stopped = True
        if grace:
            self.process.terminate()
            with anyio.move_on_after(grace):
                await self.ended.wait()
        self.process.kill()
        await self.ended.wait()

    async def follow(self, offset: int, *, until_end: bool) -> None:
        """Emit the output after an offset, until there is some, or until the end of the program."""
        at = offset
        while True:
            found = self.log.read(at, _EMITTED_AT_ONCE)
            for one in found.parts:
                await emit_tool_progress(one.data.decode("utf-8", "replace"), one.stream)
            at = found.next
            if at < self.log.size and until_end:
                continue
            if self.ended.is_set() or (found.parts and not until_end):
                return
            await self.log.wait()

    @property
    def state(self) -> ShellProgramState:
        """The state of the program."""
        if not self.ended.is_set():
            return ShellProgramState(running=True, seconds=round(anyio.current_time() - self.started, 3))
        code = self._end.code if self._end is not None else None
        killed = code is None or code < 0
        return ShellProgramState(
            running=False,
            exit_code=-1 if code is None or code < 0 else code,
            signal=signal_name(9 if code is None else -code) if killed else None,
            end=self._reason(code),
            seconds=round(self._seconds, 3),
        )

    def _reason(self, code: int | None) -> Literal["exit", "timeout", "output", "stop"]:
        if self._stopped:
            return "stop"
        if self._end is not None and self._end.flooded:
            return "output"
        return "timeout" if code is None else "exit"


@define(eq=False)
class BackgroundPrograms:
    """The programs of one host, by ids that cannot be guessed.

    Args:
        config: the settings.
        tasks: runs the programs.
    """

    config: Config
    tasks: TaskGroup = field(repr=False)
    _programs: dict[str, BackgroundProgram] = field(init=False, factory=dict, repr=False)
    _starting: list[Owner] = field(init=False, factory=list, repr=False)

    def reserve(self, owner: Owner) -> None:
        """Count a program that is about to start. Call ``release`` after it was added.

        Raises:
            ShellTooMany: if too many programs run.
        """
        running = [one.owner for one in self._programs.values() if not one.ended.is_set()] + self._starting
        if running.count(owner) >= self.config.max_background:
            raise ShellTooMany("max_background", self.config.max_background)
        if len(running) >= self.config.max_background_total:
            raise ShellTooMany("max_background_total", self.config.max_background_total)
        self._starting.append(owner)

    def release(self, owner: Owner) -> None:
        """Stop counting a program as about to start."""
        self._starting.remove(owner)

    def add(self, process: ProgramProcess, ctx: OpContext, data: bytes | None, seconds: float) -> str:
        """Take over a started program, and return its id. It ends with the session of its owner."""
        owner = Owner.of(ctx)
        texts = {name: ctx.redacted_text() for name in STREAMS}
        log = OutputLog(self.config.max_background_bytes, texts)
        program = BackgroundProgram(owner, process, log, anyio.current_time())
        self._forget_oldest(owner)
        found = token_hex(16)
        self._programs[found] = program
        self.tasks.start_soon(program.run, data, seconds, self.config.max_total_bytes)
        ctx.on_session_end(partial(self._end, found))
        return found

    def get(self, found: str, owner: Owner) -> BackgroundProgram:
        """Return a program of this owner.

        Raises:
            ShellProgramUnknown: if the id is unknown. The error does not reveal whether others have it.
        """
        program = self._programs.get(found)
        if program is None or program.owner != owner:
            raise ShellProgramUnknown(found)
        return program

    async def _end(self, found: str) -> None:
        program = self._programs.pop(found, None)
        if program is not None:
            await program.stop(0)

    def _forget_oldest(self, owner: Owner) -> None:
        """Forget the ended programs of an owner that are too old, with their output."""
        ended = [name for name, one in self._programs.items() if one.owner == owner and one.ended.is_set()]
        for name in ended[: max(0, len(ended) - self.config.max_background + 1)]:
            del self._programs[name]
