"""The effects that a host has requested, with their answers and their places in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field

if TYPE_CHECKING:
    from sideband.broker import Call

_TEXTS = ("text", "arguments")


@define(eq=False)
class CallScope:
    """A call of a tool, to which its effects belong."""

    step: str
    tool: str
    arguments: Any
    started: float
    is_inner: bool
    name: str = ""


@define(eq=False)
class RequestedEffect:
    """An effect that was requested. It has no answer if it was cancelled."""

    scope: CallScope | None
    step: str
    run: int
    started: float
    op: str
    params: Any
    parts: list[dict[str, Any]] = field(factory=list)
    answer: dict[str, Any] = field(factory=dict)

    @property
    def within(self) -> str:
        """What requested it."""
        return self.scope.name if self.scope is not None else self.step

    @property
    def place(self) -> tuple[int, list[int], float, float]:
        """Its place in the file: steps may run at once, but the effects of one are in order."""
        steps = [int(one) for one in re.findall(r"[0-9]{1,9}", self.step)]
        return self.run, steps, self.scope.started if self.scope else self.started, self.started

    def add(self, part: Mapping[str, Any]) -> None:
        """Add a streamed part. How a text was cut into parts says nothing."""
        last = self.parts[-1] if self.parts else {}
        text = next((one for one in _TEXTS if isinstance(part.get(one), str) and isinstance(last.get(one), str)), None)
        if text is not None and {**last, text: ""} == {**part, text: ""}:
            last[text] += part[text]
        else:
            self.parts.append(dict(part))


def ids_of(call: Call) -> Mapping[str, str]:
    """Return the ids that were made at random for a call, each with its name."""
    origin = call.origin
    outer = (origin.parent or "").partition(":")[0]
    known = {"call": call.id, "run": origin.run, "parent": outer, "session": origin.session}
    return {text: name for name, text in known.items() if text}


def step_of(call: Call) -> str:
    """Return the step of the agent's run, after that of the agent that it works for."""
    outer = (call.origin.parent or "").rpartition(":")[2]
    return "/".join(filter(None, (outer, call.origin.step)))


def sorted_data(value: Any) -> Any:
    """Return data whose keys are sorted."""
    if isinstance(value, dict):
        return {key: sorted_data(value[key]) for key in sorted(value)}
    return [sorted_data(one) for one in value] if isinstance(value, list) else value
