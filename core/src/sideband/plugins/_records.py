"""What is known about each plugin, and how it came to be so."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

__all__ = ["PluginRecord", "State", "Transition"]


class State(Enum):
    """How far a plugin has come: found → denied | incompatible | imported → failed | validated → active."""

    FOUND = "found"
    DENIED = "denied"
    INCOMPATIBLE = "incompatible"
    IMPORTED = "imported"
    FAILED = "failed"
    VALIDATED = "validated"
    ACTIVE = "active"

    @property
    def usable(self) -> bool:
        """Whether it is, or can still become, active."""
        return self not in {State.DENIED, State.INCOMPATIBLE, State.FAILED}


class Transition(NamedTuple):
    """One step of a plugin.

    Attributes:
        state: the state that it came to.
        reason: why, in one sentence; empty where the state says it all.
        decided_by: what decided: ``metadata``, a line of the policy, a configuration file, or the plugin itself.
    """

    state: State
    reason: str
    decided_by: str


class PluginRecord:
    """One plugin as the host sees it. Everything but its state comes from metadata, so it is there before any import.

    Attributes:
        kind: ``op``, ``hook``, ….
        name: the entry-point name.
        value: what the entry point names, as written; empty for an inline plugin.
        distribution: the distribution that it comes from; ``inline`` for one that was handed over as an object.
        version: the version of the distribution.
        api: the version of the plugin API that it is written for.
        editable: whether it is installed from a working folder.
        installer: the tool that installed it.
        location: the folder that holds its distribution.
        hashed: whether hashes of its modules were recorded at installation.
        load_ms: milliseconds that its import took; ``None`` before.
        trail: its states in order, each with its reason. The last one is where it is.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        *,
        value: str = "",
        distribution: str = "inline",
        version: str = "0",
        api: int = 1,
        editable: bool = False,
        installer: str = "",
        location: str = "",
        hashed: bool = False,
    ) -> None:
        self.kind = kind
        self.name = name
        self.distribution = distribution
        self.version = version
        self.api = api
        self.value = value
        self.editable = editable
        self.installer = installer
        self.location = location
        self.hashed = hashed
        self.load_ms: float | None = None
        self.trail: tuple[Transition, ...] = (Transition(State.FOUND, "", "metadata"),)

    def __repr__(self) -> str:
        return f"<PluginRecord {self.label} {self.state.value}>"

    @property
    def label(self) -> str:
        """``kind.name``, as policies write it."""
        return f"{self.kind}.{self.name}"

    @property
    def state(self) -> State:
        """Where it is now."""
        return self.trail[-1].state

    @property
    def reason(self) -> str:
        """Why it is where it is; empty where the state says it all."""
        return self.trail[-1].reason

    @property
    def decided_by(self) -> str:
        """What put it where it is."""
        return self.trail[-1].decided_by

    def move(self, state: State, reason: str = "", *, decided_by: str = "plugin") -> None:
        """Record the next step."""
        self.trail = (*self.trail, Transition(state, reason, decided_by))

    def as_dict(self) -> dict[str, Any]:
        """The record as data, for ``plugins list --json`` and ``plugins why --json``."""
        trail = [{**step._asdict(), "state": step.state.value} for step in self.trail]
        return {"kind": self.kind, "name": self.name, **trail[-1], **vars(self), "trail": trail}
