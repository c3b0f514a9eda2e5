"""Programs that the user runs, beside the tool calls of the model."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from attrs import frozen
from sideband.broker import Broker
from sideband.hooks import UserBash
from sideband.messages import UserMessage
from sideband.ops import Capability, Grant, Origin
from sideband.settings import ToolSettings

from ._announcer import Announcer
from ._broker_calls import new_call
from ._tools._tool_progress import ToolProgressEvents, observes_progress
from ._tools._truncation import cut

_OP = "shell.run"
_GRANT = Grant.of([Capability("shell")])


@frozen
class ProgramOutput:
    """The outcome of a program that the user ran.

    Attributes:
        command: the program and its arguments, quoted for a shell, without secrets.
        text: the standard output, then the standard error, without secrets. Long output keeps its beginning and end.
        exit_code: the exit code; -1 if a signal or the timeout killed it.
        timed_out: whether the timeout killed it.
    """

    command: str
    text: str
    exit_code: int
    timed_out: bool = False

    @property
    def outcome(self) -> str:
        """How it ended, in a few words."""
        return "timed out" if self.timed_out else f"exit code {self.exit_code}"

    def message(self) -> UserMessage:
        """Return the message that shows it to the model."""
        output = f"\n\n{self.text}" if self.text else " It printed nothing."
        return UserMessage(content=f"The user ran `{self.command}` ({self.outcome}).{output}", source="program")


async def run_user_program(
    arguments: Sequence[str],
    *,
    broker: Broker,
    announcer: Announcer,
    origin: Origin,
    folder: Path,
    seconds: float,
    tokens: int,
    excluded: bool,
    settings: ToolSettings,
) -> ProgramOutput:
    """Run a program with the rights of the user, as an effect that guards decide on. Its output is progress, too.

    Args:
        arguments: the program and its arguments.
        broker: runs it.
        announcer: emits the event before it.
        origin: the session of the user.
        folder: the working directory, which it may read and change.
        seconds: the timeout in seconds.
        tokens: the maximum length of the output.
        excluded: whether the model does not see it.
        settings: the table ``[tools]``.
    """
    # Quotes may divide a secret, and a space of it may divide arguments.
    command = broker.redactor.text(shlex.join(map(broker.redactor.text, arguments)))
    await announcer.emit_made(UserBash, lambda: UserBash(command, exclude_from_context=excluded, folder=folder))
    place = str(folder)
    params = {"binary": arguments[0], "args": [*arguments[1:]], "cwd": place, "write": [place], "timeout": seconds}
    call = new_call(origin, announcer.hooks, grant=_GRANT)
    observed = observes_progress(announcer.hooks, settings)
    events = ToolProgressEvents.of_call(call.id, _OP, announcer, broker.redactor, settings) if observed else None
    async with events.emitted() if events is not None else nullcontext() as call.progress:
        result = await broker.dispatch(call, _OP, {**params, "stream": True})
    text = "\n".join(filter(None, [_text(result[name]) for name in ("stdout", "stderr")]))
    return ProgramOutput(command, cut(text, tokens).text, result["exit_code"], result["timed_out"])


def _text(output: Any) -> str:
    """Return output as text without the last line end. Output that is not UTF-8 is bytes."""
    return (output if isinstance(output, str) else bytes(output).decode(errors="replace")).rstrip("\n")
