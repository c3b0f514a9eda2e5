"""Which project a session works in, remembered from the prompt for the tools, which are not told."""

from __future__ import annotations

from pathlib import Path

from attrs import Factory, define

_MOST = 10_000


@define
class Projects:
    """The trusted project of each session. The oldest are forgotten.

    Example:
        >>> projects = Projects()
        >>> projects.remember("s1", Path("/home/ada/ship"))
        >>> projects.of("s1").name
        'ship'
    """

    _by_session: dict[str, Path | None] = Factory(dict)

    def remember(self, session: str, project: Path | None) -> None:
        """Note the project of a session; ``None``: it has none that is trusted."""
        self._by_session.pop(session, None)
        self._by_session[session] = project
        if len(self._by_session) > _MOST:
            del self._by_session[next(iter(self._by_session))]

    def of(self, session: str) -> Path | None:
        """The project of a session.

        The session of a child agent has no prompt of its own. It is taken to work where all others do, if they do
        work in one place; else in none.
        """
        if session in self._by_session:
            return self._by_session[session]
        known = set(self._by_session.values())
        return known.pop() if len(known) == 1 else None
