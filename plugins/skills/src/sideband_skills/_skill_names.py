"""Names of skills, and the name parts derived from them."""

from __future__ import annotations

import hashlib
import re
import unicodedata

MAXIMUM_MODEL_NAME = 64
NAME_PART = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
FORMAT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")


def key_of(name: str) -> str:
    """Return the name part for a name: `My Skill!` gives `my_skill`. It is deterministic and never empty.

    For a name without Latin letters and digits, it is derived from the name's hash.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    key = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    if not key:
        return f"skill_{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"
    return key if key[0].isalpha() else f"skill_{key}"
