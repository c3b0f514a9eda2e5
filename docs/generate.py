"""Generate ``docs/reference`` and ``docs/schemas`` from the code: ``python docs/generate.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from _pages.api import API_PAGES
from _pages.capabilities import capabilities_page
from _pages.commands import commands_page
from _pages.errors import errors_page
from _pages.events import events_page
from _pages.hooks import hooks_page
from _pages.ledger import ledger_page
from _pages.levels import levels_page
from _pages.limits import limits_page
from _pages.ops import ops_page
from _pages.settings import settings_page
from _pages.wire import wire_page
from sideband_dist import schema

FOLDER = Path(__file__).parent / "reference"
SCHEMA = Path(__file__).parent / "schemas" / "sideband.json"
NOTE = "<!-- generated from the code by docs/generate.py; do not edit -->\n\n"
PAGES = {
    **API_PAGES,
    "capabilities.md": capabilities_page,
    "commands.md": commands_page,
    "errors.md": errors_page,
    "events.md": events_page,
    "hooks.md": hooks_page,
    "ledger.md": ledger_page,
    "levels.md": levels_page,
    "limits.md": limits_page,
    "ops.md": ops_page,
    "settings.md": settings_page,
    "wire.md": wire_page,
}


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    return {name: NOTE + "\n".join(page()) + "\n" for name, page in PAGES.items()}


def main() -> int:
    """Write all pages, and delete those that are no longer generated."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        if path.name not in PAGES:
            path.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    SCHEMA.write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
