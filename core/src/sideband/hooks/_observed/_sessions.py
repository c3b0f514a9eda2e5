"""Events of sessions and of what they use."""

from __future__ import annotations

from attrs import frozen

from .._event import ObserveEvent

__all__ = [
    "CompactionEnd",
    "CompactionStart",
    "ModelSelect",
    "SessionCompact",
    "SessionShutdown",
    "SessionStart",
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
