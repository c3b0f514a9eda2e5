"""Run the examples of an op family in a host, watched at each suspension."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from sideband import Host, OpFamily, Plugin
from sideband.ops import OpSpec

from ._examples import Example
from ._stepping import Steps
from ._subject import registering, wrapped

_KILLED = -signal.SIGKILL


def watched_family(plugin: Plugin, op: str, steps: Steps) -> Plugin:
    """Return the plugin of an op family, one of whose handlers is watched."""

    def change(family: OpFamily) -> OpFamily:
        return evolve(family, ops=tuple(_watched(spec, steps) if spec.name == op else spec for spec in family.ops))

    return wrapped(plugin, {"sideband_ops": registering(plugin.value.sideband_ops, change)})


def _watched(spec: OpSpec, steps: Steps) -> OpSpec:
    return evolve(spec, handler=steps.watch(spec.handler))


@frozen
class Killed:
    """A host that was killed while it ran an example.

    Attributes:
        step: the number of the suspension after which it was killed; 0 at the start of the handler.
        home: its state folder.
        ended: whether it ended before that.
    """

    step: int
    home: Path
    ended: bool


def kill_at(step: int, home: Path, run: Callable[[Steps], Any]) -> Killed:
    """Run something in a copy of this process, and kill that with SIGKILL when a handler continues at a step.

    Args:
        step: the number of the suspension after which the handler continues; 0 for its start, -1 for its end.
        home: the state folder of the host.
        run: opens the host and runs the example, watched by the given steps.
    """
    child = os.fork()
    if not child:
        try:
            run(Steps(on_resume=lambda number: os.kill(os.getpid(), signal.SIGKILL) if number == step else None))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return Killed(step, home, os.waitstatus_to_exitcode(status) != _KILLED)


async def run_example(host: Host, example: Example, params: dict[str, Any], **options: Any) -> tuple[Any, str]:
    """Run an op, and return its result and the id of its effect."""
    effects: list[str] = []
    result = await host.op(
        example.name,
        params,
        on_effect=lambda report: effects.append(report.id) if report.op == example.name else None,
        **options,
    )
    return result, effects[-1] if effects else ""
