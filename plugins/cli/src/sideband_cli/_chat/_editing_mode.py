"""The keys with which the user edits lines, as the file of the library Readline says, which shells use."""

from __future__ import annotations

import os
import re
from pathlib import Path

_VI = re.compile(r"^[ \t]*set[ \t]+editing-mode[ \t]+(\w+)", re.MULTILINE)
_MAX_BYTES = 1 << 16


def uses_vi_keys() -> bool:
    """Return whether the user edits with the keys of vi: if `editing-mode` is so in ``$INPUTRC`` or ``~/.inputrc``."""
    try:
        with Path(os.environ.get("INPUTRC") or "~/.inputrc").expanduser().open(errors="replace") as file:
            found = _VI.findall(file.read(_MAX_BYTES))
    except (OSError, RuntimeError):
        return False
    return found[-1:] == ["vi"]
