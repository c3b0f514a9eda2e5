"""Events of sessions and of what they use."""

from __future__ import annotations

from attrs import frozen

from .._event import ObserveEvent

__all__ = [
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
