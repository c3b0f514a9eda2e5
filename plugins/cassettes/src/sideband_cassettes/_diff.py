"""The differences between recorded and requested parameters."""

from __future__ import annotations

import json
from difflib import unified_diff
from itertools import islice
from typing import Any

from ._text import encoded

_MOST_LINES, _LONGEST, _MOST_CHARACTERS = 2_000, 120, 1_500


def differences(recorded: Any, requested: Any) -> str:
    r"""Return the lines that differ, with ``-`` before recorded and ``+`` before requested ones, and some around them.

    Example:
        >>> print(differences({"n": 1}, {"n": 2}))
        --- recorded
        +++ requested
        @@ -1,3 +1,3 @@
         {
        -  "n": 1
        +  "n": 2
         }
    """
    lines = unified_diff(_lines(recorded), _lines(requested), "recorded", "requested", n=2, lineterm="")
    shown, size = [], 0
    for line in lines:
        size += len(line) + 1
        if size > _MOST_CHARACTERS:
            shown.append("…")
            break
        shown.append(line)
    return "\n".join(shown)


def _lines(params: Any) -> list[str]:
    if params is None:
        return []
    text = json.dumps(encoded(params), indent=2, sort_keys=True, ensure_ascii=False)
    # A long line is shown in parts, of which only those that differ matter.
    parts = (line[at : at + _LONGEST] for line in text.splitlines() for at in range(0, len(line), _LONGEST))
    return [*islice(parts, _MOST_LINES)]
