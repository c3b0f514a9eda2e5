"""Events of the kind `decide`, which implementations may deny before they happen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from attrs import evolve, field, frozen

from ..ops import Level, Origin
from ..store import Reservation
from ._event import DecideEvent, Failure
from ._frozen import as_tuple, freeze
from ._results import Allow, Ask, Cancel, Deny, Replace

__all__ = [
    "OpCall",
    "SessionBeforeFork",
    "SessionBeforeSwitch",
    "SessionBeforeTree",
    "ToolCall",
]


@frozen
class ToolCall(DecideEvent):
    """A model requests a tool call with valid arguments. Decide whether it may run, and with which arguments.

    Reserved for guards: the host refuses any other plugin that implements it.

    The first ``Deny`` wins, then ``Ask``. After a ``Replace`` the new arguments are validated, and implementations
    that have already answered are called again, so that each has seen the final arguments. A failing implementation
    denies.

    Attributes:
        id: the id of the call.
        tool: the name of the tool, such as ``github.stars``.
        arguments: the arguments, by name.
        level: the highest level that the tool's grant covers.
        read_only: whether the tool declares that it has no side effects.
        indirect: whether it only causes effects about which guards decide too, such as a tool of a skill.

    Example:
        >>> from sideband.hooks import Ask, Deny, Replace, ToolCall, hookimpl
        >>> @hookimpl
        ... async def tool_call(event: ToolCall) -> Ask | Deny | Replace | None:
        ...     if event.tool == "notes.delete":
        ...         return Ask(f"Delete {event.arguments['path']}?")
        ...     if event.tool == "notes.list" and event.arguments.get("limit", 0) > 100:
        ...         return Replace({**event.arguments, "limit": 100})
        ...     return None
    """

    may_return = (Allow, Deny, Replace, Ask)
    on_failure = Failure.DENY
    deadline = 60
    replaceable = "arguments"

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(converter=freeze)
    level: Level = Level.MONITORED
    read_only: bool = False
    indirect: bool = False


@frozen
class OpCall(DecideEvent):
    """An effect that the grant covers is about to happen. Decide whether it may happen.

    Reserved for guards. The rules are those of ``tool_call``. If an implementation dispatches an op itself, that op
    causes another ``op_call``, which the implementation must allow.

    Attributes:
        effect: the id of the effect in the ledger.
        op: the name of the op, such as ``http.get``.
        params: the validated parameters, by name.
        level: the level of the effect, which depends on the grant and on the parameters.
        origin: the caller as recorded by the host, not as claimed by a worker.
        grant: the capabilities of the call, as text.
        idempotent: whether repeating the op has no further effect.
        indirect: whether it only causes other effects, about which guards decide too, such as the call of a skill.
        within: the id of the effect whose op dispatches it; ``None`` if no op does.
        key: the idempotency key, if any.
        preview: a function that describes what the op would do with given parameters, without doing it; ``None`` if
            the op has no preview.
        egress: whether the effect may send data to another machine itself, as its op declares; its child effects have
            events of their own. It is true if the op does not declare it.
        level_of: a function that returns the level with given parameters; ``None`` if it does not depend on them.
        egress_of: the same for ``egress``.
        reserved: what guards have reserved for this effect, each under the name of its plugin. The host gives it back
            if the effect does not begin: because of another guard or the user, because the host could not record it or
            was asked to cancel it, or because the answer of an earlier effect is used again.

    Example:
        >>> from sideband.hooks import Allow, Deny, OpCall, hookimpl
        >>> from sideband.ops import Level
        >>> @hookimpl
        ... def op_call(event: OpCall) -> Allow | Deny:
        ...     if event.level >= Level.RESTRICTED and event.origin.principal != "user":
        ...         return Deny("only the user may do what cannot be undone")
        ...     return Allow("within the rules for guests")
    """

    may_return = (Allow, Deny, Replace, Ask)
    on_failure = Failure.DENY
    deadline = 60
    replaceable = "params"

    effect: str
    op: str
    params: Mapping[str, Any] = field(converter=freeze)
    level: Level
    origin: Origin
    grant: tuple[str, ...] = field(default=(), converter=as_tuple)
    idempotent: bool = False
    indirect: bool = False
    within: str | None = None
    key: str | None = None
    preview: Callable[[Mapping[str, Any]], Awaitable[str]] | None = field(default=None, repr=False, eq=False)
    egress: bool = True
    level_of: Callable[[Mapping[str, Any]], Level] | None = field(default=None, repr=False, eq=False)
    egress_of: Callable[[Mapping[str, Any]], bool] | None = field(default=None, repr=False, eq=False)
    reserved: dict[str, Reservation] = field(factory=dict, repr=False, eq=False)

    def with_arguments(self, arguments: Mapping[str, Any]) -> Self:
        """Return a copy of the event with other parameters, and with the level and egress of the effect with these."""
        level = self.level if self.level_of is None else self.level_of(arguments)
        egress = self.egress if self.egress_of is None else self.egress_of(arguments)
        return evolve(self, params=arguments, level=level, egress=egress)


@frozen
class SessionBeforeSwitch(DecideEvent):
    """The agent is about to switch to another session. ``Cancel`` prevents it; a failing plugin does not.

    Attributes:
        reason: ``new`` or ``resume``.
        target: the id of the other session, or ``None`` for a new one.

    Example:
        >>> from sideband.hooks import Cancel, SessionBeforeSwitch, hookimpl
        >>> unsaved = ["draft.md"]
        >>> @hookimpl
        ... def session_before_switch(event: SessionBeforeSwitch) -> Cancel | None:
        ...     return Cancel(f"{unsaved[0]} is not saved") if unsaved else None
    """

    may_return = (Cancel,)
    on_failure = Failure.REPORT
    deadline = 30

    reason: str
    target: str | None = None


@frozen
class SessionBeforeFork(DecideEvent):
    """A session is about to be forked. ``Cancel`` prevents it; a failing plugin does not.

    Attributes:
        session: the id of the session.
        entry: the id of the entry to fork from.
        position: ``before`` to exclude the entry from the fork, ``at`` to include it.

    Example:
        >>> from sideband.hooks import Cancel, SessionBeforeFork, hookimpl
        >>> @hookimpl
        ... def session_before_fork(event: SessionBeforeFork) -> Cancel | None:
        ...     return Cancel("cannot fork before the first entry") if event.position == "before" else None
    """

    may_return = (Cancel,)
    on_failure = Failure.REPORT
    deadline = 30

    session: str
    entry: str
    position: str = "at"


@frozen
class SessionBeforeTree(DecideEvent):
    """A session is about to be rewound to another entry. ``Cancel`` prevents it; a failing plugin does not.

    Attributes:
        session: the id of the session.
        target: the id of the entry that the next one will follow; ``None`` for the beginning.
        old_leaf: the id of the current entry.
        common_ancestor: the last entry that the current branch and that of the target share; ``None`` for the
            beginning.
        entries: the ids of the entries that are left, oldest first. They remain as a branch of the tree, and
            ``ctx.session.tree.entry(id)`` returns them.
        summary: the summary of these entries for the model; empty without one.

    Example:
        >>> from sideband.hooks import Cancel, SessionBeforeTree, hookimpl
        >>> @hookimpl
        ... def session_before_tree(event: SessionBeforeTree) -> Cancel | None:
        ...     if len(event.entries) > 100 and not event.summary:
        ...         return Cancel("write a summary of what is left")
        ...     return None
    """

    may_return = (Cancel,)
    on_failure = Failure.REPORT
    deadline = 30

    session: str
    target: str | None = None
    old_leaf: str | None = None
    common_ancestor: str | None = None
    entries: tuple[str, ...] = field(default=(), converter=as_tuple)
    summary: str = ""
