"""Records of plugins and their state transitions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

__all__ = ["PluginRecord", "State", "Transition"]


class State(Enum):
    """The state of a plugin: found → denied | incompatible | imported → failed | validated → active."""

    FOUND = "found"
    DENIED = "denied"
    INCOMPATIBLE = "incompatible"
    IMPORTED = "imported"
    FAILED = "failed"
    VALIDATED = "validated"
    ACTIVE = "active"

    @property
    def usable(self) -> bool:
        """Whether the plugin is active or may still become active."""
        return self is not State.DENIED and not self.broken

    @property
    def broken(self) -> bool:
        """Whether the plugin is unusable although the policy allows it."""
        return self in {State.INCOMPATIBLE, State.FAILED}


class Transition(NamedTuple):
    """One state transition of a plugin.

    Attributes:
        state: the new state.
        reason: the reason, in one sentence; empty if the state needs no explanation.
        decided_by: the cause: ``metadata``, a key of the policy, a configuration file, or the plugin itself.
    """

    state: State
    reason: str
    decided_by: str


class PluginRecord:
    """The host's record of one plugin. All fields except its state come from metadata and need no import.

    Attributes:
        kind: the kind, such as ``op`` or ``hook``.
        name: the entry-point name.
        value: the value of the entry point, or the name of the module of a local file; empty for an inline plugin.
        distribution: the distribution that provides it; by default ``inline`` for an inline plugin.
        version: the version of the distribution.
        api: the version of the plugin API that it uses.
        editable: whether it is an editable installation.
        installer: the tool that installed it.
        location: the folder that contains its distribution.
        hashed: whether hashes of its modules were recorded at installation.
        file: the path of a local file that is the plugin, which is also its ``distribution``; empty for all others.
        locked: whether the lock of the environment contains it. Its files are then compared with it before the import.
        digest: the SHA-256 of that file, with which it is trusted, or of the record of the hashes of an installed
            package; empty if it is unknown.
        url: the address that it was installed from, without credentials; empty if it came from a package index.
        rights: the rights of its own that it was given, each with ``capability`` and ``given_by``, as
            ``sideband plugins list`` shows them. Of these, it has those that its family declares in ``uses``.
        load_ms: the duration of its import in milliseconds; ``None`` before the import.
        trail: its state transitions in order, the last of which is the current state.
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
        file: str = "",
        digest: str = "",
        locked: bool = False,
        url: str = "",
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
        self.file = file
        self.digest = digest
        self.locked = locked
        self.url = url
        self.rights: tuple[Mapping[str, str], ...] = ()
        self.load_ms: float | None = None
        self.trail: tuple[Transition, ...] = (Transition(State.FOUND, "", "metadata"),)

    def __repr__(self) -> str:
        return f"<PluginRecord {self.label} {self.state.value}>"

    @property
    def label(self) -> str:
        """``kind.name``, as used in policies."""
        return f"{self.kind}.{self.name}"

    @property
    def package(self) -> str:
        """The distribution and its version, such as ``sideband-http 1.2``, for messages.

        It is empty for a plugin that was passed to the host without a distribution.
        """
        return "" if self.distribution == "inline" else f"{self.distribution} {self.version}"

    @property
    def claim(self) -> str:
        """The package that claims the name: its version, the object it names, its installer and its location."""
        if self.file:
            return f"the file {self.file}"
        if not self.location:
            return f"{self.package or 'the plugin that is passed to the host'} (in memory)"
        how = "editable" if self.editable else f"installed by {self.installer or 'an unknown tool'}"
        return f"{self.package} (`{self.value}`, {how}, in {self.location})"

    @property
    def holder(self) -> str:
        """The name under which rights are remembered for it. Another package with the same plugin gets none of them."""
        return f"plugin:{self.name}:{self.distribution}"

    @property
    def state(self) -> State:
        """The current state."""
        return self.trail[-1].state

    @property
    def reason(self) -> str:
        """The reason of the current state; empty if it needs no explanation."""
        return self.trail[-1].reason

    @property
    def decided_by(self) -> str:
        """The cause of the current state."""
        return self.trail[-1].decided_by

    def move(self, state: State, reason: str = "", *, decided_by: str = "plugin") -> None:
        """Record a state transition."""
        self.trail = (*self.trail, Transition(state, reason, decided_by))

    def as_dict(self) -> dict[str, Any]:
        """Return the record as data, for ``plugins list --json`` and ``plugins why --json``."""
        trail = [{**step._asdict(), "state": step.state.value} for step in self.trail]
        return {"kind": self.kind, "name": self.name, **trail[-1], **vars(self), "trail": trail}
