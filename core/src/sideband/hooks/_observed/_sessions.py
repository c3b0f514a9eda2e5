"""Events of sessions and of what they use."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from .._event import ObserveEvent

__all__ = [
    "ApprovalModeSelect",
    "CompactionEnd",
    "CompactionStart",
    "GoalUpdate",
    "ModelSelect",
    "SessionCompact",
    "SessionShutdown",
    "SessionStart",
    "SessionTree",
    "ThinkingLevelSelect",
    "UserBash",
]


@frozen
class SessionStart(ObserveEvent):
    """A session has become the current one.

    Attributes:
        session: the id of the session.
        reason: ``startup``, ``reload``, ``new``, ``resume`` or ``fork``.
        previous: the id of the previous session, if any.

    Example:
        >>> from sideband.hooks import SessionStart, hookimpl
        >>> current: list[str] = []
        >>> @hookimpl
        ... def session_start(event: SessionStart) -> None:
        ...     current[:] = [event.session]
    """

    session: str
    reason: str = "startup"
    previous: str | None = None


@frozen
class SessionShutdown(ObserveEvent):
    """The current session is about to be closed.

    Attributes:
        session: the id of the session.
        reason: ``quit``, ``reload``, ``new``, ``resume`` or ``fork``.
        target: the id of the next session, if any.

    Example:
        >>> from sideband.hooks import SessionShutdown, hookimpl
        >>> left: list[tuple[str, str]] = []
        >>> @hookimpl
        ... async def session_shutdown(event: SessionShutdown) -> None:
        ...     left.append((event.session, event.reason))
    """

    session: str
    reason: str = "quit"
    target: str | None = None


@frozen
class CompactionStart(ObserveEvent):
    """A conversation is about to be compacted. ``compaction`` follows, and ``compaction_end`` in any case.

    Attributes:
        session: the id of the session.
        reason: ``due`` if the conversation is too long for the model, ``overflow`` if the model rejected it, or
            ``requested`` by the user or a plugin.
        tokens: the estimated size of the conversation.

    Example:
        >>> from sideband.hooks import CompactionStart, hookimpl
        >>> @hookimpl
        ... def compaction_start(event: CompactionStart) -> None:
        ...     print(f"compacting {event.tokens:,} tokens")
        >>> compaction_start(CompactionStart("s1", "due", 190_000))
        compacting 190,000 tokens
    """

    session: str
    reason: str
    tokens: int = 0


@frozen
class CompactionEnd(ObserveEvent):
    """A compaction has ended, whether it succeeded or not.

    Attributes:
        session: the id of the session.
        status: ``completed``, ``denied`` by a plugin, ``aborted`` if it was cancelled, or ``failed``.
        tokens: the estimated size of the conversation now.

    Example:
        >>> from sideband.hooks import CompactionEnd, hookimpl
        >>> unfinished: list[str] = []
        >>> @hookimpl
        ... def compaction_end(event: CompactionEnd) -> None:
        ...     if event.status != "completed":
        ...         unfinished.append(event.session)
    """

    session: str
    status: str
    tokens: int = 0


@frozen
class SessionCompact(ObserveEvent):
    """A session was compacted.

    Attributes:
        session: the id of the session.
        entry: the id of the entry that holds the summary.
        plugin: the plugin that wrote the summary, or ``None`` for the default strategy.

    Example:
        >>> from sideband.hooks import SessionCompact, hookimpl
        >>> @hookimpl
        ... def session_compact(event: SessionCompact) -> None:
        ...     print(f"compacted by {event.plugin or 'the default strategy'}")
        >>> session_compact(SessionCompact("s1", "e9"))
        compacted by the default strategy
    """

    session: str
    entry: str
    plugin: str | None = None


@frozen
class ModelSelect(ObserveEvent):
    """Another model was selected.

    Attributes:
        model: the name of the model.
        previous: the name of the previous model, if any.
        source: ``set``, ``cycle``, ``restore``, or ``fallback`` if the previous model is unavailable.

    Example:
        >>> from sideband.hooks import ModelSelect, hookimpl
        >>> @hookimpl
        ... def model_select(event: ModelSelect) -> None:
        ...     print(f"{event.previous} -> {event.model}")
        >>> model_select(ModelSelect("large", previous="small"))
        small -> large
    """

    model: str
    previous: str | None = None
    source: str = "set"


@frozen
class SessionTree(ObserveEvent):
    """A session was rewound: its next entry follows an earlier one.

    Attributes:
        session: the id of the session.
        new_leaf: the id of the current entry; ``None`` for the beginning.
        old_leaf: the id of the entry that was the current one before.
        summary_entry: the id of the entry that holds the summary of the branch that was left, or ``None``.

    Example:
        >>> from sideband.hooks import SessionTree, hookimpl
        >>> left: list[str] = []
        >>> @hookimpl
        ... def session_tree(event: SessionTree) -> None:
        ...     if event.old_leaf is not None:
        ...         left.append(event.old_leaf)
    """

    session: str
    new_leaf: str | None = None
    old_leaf: str | None = None
    summary_entry: str | None = None


@frozen
class ThinkingLevelSelect(ObserveEvent):
    """Another level of thinking was selected.

    Attributes:
        level: ``off``, ``low``, ``medium``, ``high``, or ``None`` if the provider decides.
        previous: the previous level.
        source: ``set``, ``cycle``, or ``restore`` if another session or entry became the current one, which has its
            own level.

    Example:
        >>> from sideband.hooks import ThinkingLevelSelect, hookimpl
        >>> @hookimpl
        ... def thinking_level_select(event: ThinkingLevelSelect) -> None:
        ...     print(f"{event.previous} -> {event.level}")
        >>> thinking_level_select(ThinkingLevelSelect("high", previous="low"))
        low -> high
    """

    level: str | None
    previous: str | None = None
    source: str = "set"


@frozen
class ApprovalModeSelect(ObserveEvent):
    """Another approval mode was selected for the session. It holds from the next tool call or effect on.

    Each effect is recorded with the mode that it was decided in.

    Attributes:
        session: the id of the session.
        mode: ``manual``, ``assist``, ``semi``, ``full`` or ``plan``.
        previous: the previous mode.
        source: ``set`` by the user, or ``plan`` if the user approved a plan.

    Example:
        >>> from sideband.hooks import ApprovalModeSelect, hookimpl
        >>> @hookimpl
        ... def approval_mode_select(event: ApprovalModeSelect) -> None:
        ...     print(f"{event.previous} -> {event.mode}")
        >>> approval_mode_select(ApprovalModeSelect("s1", "semi", previous="plan"))
        plan -> semi
    """

    session: str
    mode: str
    previous: str | None = None
    source: str = "set"


@frozen
class GoalUpdate(ObserveEvent):
    """The goal of a session was set or has ended, or a session with another goal became the current one.

    Attributes:
        session: the id of the session.
        goal: the goal, or ``None`` if it has ended.
        previous: the previous goal, if any.
        status: ``set``, ``reached``, ``dropped``, or ``restored`` if another session or entry became the current one.

    Example:
        >>> from sideband.hooks import GoalUpdate, hookimpl
        >>> reached: list[str] = []
        >>> @hookimpl
        ... def goal_update(event: GoalUpdate) -> None:
        ...     if event.status == "reached" and event.previous:
        ...         reached.append(event.previous)
    """

    session: str
    goal: str | None
    previous: str | None = None
    status: str = "set"


@frozen
class UserBash(ObserveEvent):
    """The user is about to run a program, such as with ``!git status`` in a chat. No shell interprets the command.

    The effect ``shell.run`` follows, on which guards decide.

    Attributes:
        command: the program and its arguments, quoted for a shell.
        exclude_from_context: whether the model does not see the command and its output.
        folder: the working directory.

    Example:
        >>> from sideband.hooks import UserBash, hookimpl
        >>> @hookimpl
        ... def user_bash(event: UserBash) -> None:
        ...     print(f"$ {event.command}")
        >>> user_bash(UserBash("git status"))
        $ git status
    """

    command: str
    exclude_from_context: bool = False
    folder: Path | None = None
