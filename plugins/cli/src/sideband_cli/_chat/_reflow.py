"""Erasing the prompt after the terminal has changed its width.

Most terminals break rows that no longer fit, so the prompt takes more rows than were drawn. Others cut them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prompt_toolkit.application import Application

# What these terminals set. Where it is unknown, too few rows are erased rather than too many.
_BREAKING = (
    "TMUX",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "WEZTERM_PANE",
    "WT_SESSION",
    "ALACRITTY_WINDOW_ID",
)
_BREAKING_PROGRAMS = ("Apple_Terminal", "ghostty", "iTerm.app", "tmux", "vscode", "WezTerm")


def breaks_rows(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the terminal breaks rows that no longer fit, as far as its variables say."""
    return environment.get("TERM_PROGRAM") in _BREAKING_PROGRAMS or any(name in environment for name in _BREAKING)


def position_after(widths: Sequence[int], column: int, columns: int) -> tuple[int, int]:
    """Return the row and the column of the cursor in rows that were broken to fit.

    Args:
        widths: the columns that each row above that of the cursor uses.
        column: the column of the cursor.
        columns: the width of the terminal.

    Example:
        >>> position_after([50, 0, 100], 2, 40)
        (6, 2)
    """
    rows = sum(max(1, -(-width // columns)) for width in widths)
    return rows + column // columns, column % columns


def erase_broken_rows(app: Application[Any]) -> None:
    """Make an application erase all its rows when the width of the terminal has changed."""
    redraw = app._on_resize  # noqa: SLF001  it has no public place for this

    def resized() -> None:
        from prompt_toolkit.data_structures import Point

        renderer = app.renderer
        screen, cursor = renderer.last_rendered_screen, renderer._cursor_pos  # noqa: SLF001  as above
        if screen is not None:
            widths = [_width(screen.data_buffer[number]) for number in range(cursor.y)]
            row, column = position_after(widths, cursor.x, max(1, app.output.get_size().columns))
            renderer._cursor_pos = Point(x=column, y=row)  # noqa: SLF001  as above
        redraw()

    app._on_resize = resized  # type: ignore[method-assign]  # noqa: SLF001  as above


def _width(row: Mapping[int, Any]) -> int:
    return max((column + cell.width for column, cell in row.items() if cell.char.strip()), default=0)
