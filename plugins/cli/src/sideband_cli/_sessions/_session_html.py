"""A session as one HTML file that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from sideband.rendering import render

from ._session_text import entry_parts

if TYPE_CHECKING:
    from sideband_agent.sessions import Entry, EntryTree

_STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.5; }
body { margin: 0 auto; max-width: 50rem; padding: 1rem; }
section { border-top: 1px solid #8886; padding: 0.5rem 0; }
h2 { color: #777; font-size: 0.9rem; margin: 0.25rem 0; }
pre { font-family: inherit; margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
.tool pre { font-family: ui-monospace, monospace; font-size: 0.85rem; }
"""


def session_html(tree: EntryTree, path: Sequence[Entry]) -> list[str]:
    """Return the lines of the file. All texts of the session are escaped, and no policy of a browser is needed.

    Args:
        tree: the session.
        path: the entries to show.
    """
    title = escape(render(tree.name or tree.id))
    return [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        *(line for entry in path for line in _section(entry)),
        "</body></html>",
    ]


def _section(entry: Entry) -> Iterator[str]:
    parts = entry_parts(entry)
    if parts is None:
        return
    author, text = (escape(render(one, prose=True)) for one in parts)
    kind = "message" if author.startswith(("user", "model")) else "tool"
    yield f'<section class="{kind}"><h2>{author}</h2><pre>{text}</pre></section>'
