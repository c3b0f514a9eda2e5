"""The last sections: how answers are displayed, and the environment of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

from sideband.hooks import Sections

from ._prompt_levels import own_folder
from ._text import one_line, quoted

_PLATFORMS = {
    "cli": "Your answers are shown in a terminal that may be 80 columns wide. Markdown is not rendered: write plain "
    "text with short paragraphs and lists, commands and code on lines of their own, no wide tables and no images.",
    "server": "Your answers are shown in clients that may render Markdown. Use it lightly: lists, code blocks with a "
    "language, small tables. No HTML, which is not rendered.",
}
_ELSEWHERE = "It is unknown how your answers are displayed: write plain text that reads well without Markdown."


def platform(channel: str, configured: Mapping[str, str]) -> str:
    """Return how answers are displayed in a channel."""
    return configured.get(channel) or _PLATFORMS.get(channel, _ELSEWHERE)


def footer(event: Sections, home: Path, profile: str | None, today: date) -> str:
    """Return date, folders and session. Constant for a day, so that the provider's cache stays valid."""
    lines = [
        f"date: {today.isoformat()}",
        f"working directory: {_line(event.folder)}" if event.folder else None,
        f"trusted project: {_line(event.project)}" if event.project else None,
        f"global folder: {_line(own_folder(home, None))}",
        _profile(home, profile) if profile else None,
        f"session: {_line(event.session)}" if event.session else None,
    ]
    return "\n".join(["<environment>", *filter(None, lines), "</environment>"])


def _profile(home: Path, profile: str) -> str:
    folder = own_folder(home, profile)
    return f"profile: {profile}, in {_line(folder)}{'' if folder.is_dir() else ' (does not exist)'}"


def _line(value: object) -> str:
    return quoted(one_line(str(value)))
