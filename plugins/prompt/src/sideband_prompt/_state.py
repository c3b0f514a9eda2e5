"""The project of each session, stored by the hook for the tools, which do not receive it."""

from __future__ import annotations

from pathlib import Path

from attrs import Factory, define

_MAX = 10_000


@define
class Projects:
    """The trusted project of each session. The oldest are evicted.

    Example:
        >>> projects = Projects()
        >>> projects.remember("s1", Path("/home/ada/ship"))
        >>> projects.of("s1").name
        'ship'
    """

    _by_session: dict[str, Path | None] = Factory(dict)

    def remember(self, session: str, project: Path | None) -> None:
        """Store the trusted project of a session, or ``None``."""
        self._by_session.pop(session, None)
        self._by_session[session] = project
        if len(self._by_session) > _MAX:
            del self._by_session[next(iter(self._by_session))]

    def of(self, session: str) -> Path | None:
        """Return the project of a session, or ``None``.

        The session of a child agent has no prompt of its own. It gets the project of all other sessions if they have
        the same one, otherwise ``None``.
        """
        if session in self._by_session:
            return self._by_session[session]
        known = set(self._by_session.values())
        return known.pop() if len(known) == 1 else None
