"""Which rights of their own plugins were given, for ``sideband plugins list``. It imports no plugin.

They are only shown. The host reads them again for each effect that uses them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ._policy import PluginPolicy
from ._records import PluginRecord

__all__ = ["note_rights"]


def note_rights(home: str | os.PathLike[str], policy: PluginPolicy, records: Iterable[PluginRecord]) -> None:
    """Set the ``rights`` of op plugins: those that the configuration gives, and those that a person gave."""
    remembered = _remembered(os.path.join(home, "grants.toml"))  # noqa: PTH118  pathlib is slow to import
    for record in records:
        if record.kind == "op":
            given = {"remembered": remembered.get(record.holder.removeprefix("plugin:"), ())}
            given["policy"] = policy.rights.get(f"plugin:{record.name}", ())
            found = {capability: source for source, texts in given.items() for capability in texts}
            record.rights = tuple({"capability": one, "given_by": found[one]} for one in sorted(found))


def _remembered(path: str) -> Mapping[str, tuple[str, ...]]:
    """Return the capabilities in ``grants.toml`` by plugin; nothing if it cannot be read, as a host reports."""
    if not os.path.exists(path):  # noqa: PTH110  as above
        return {}
    import tomllib

    try:
        with open(path, "rb") as file:  # noqa: PTH123  as above
            entries: Any = tomllib.load(file).get("plugins", {})
        return {name: tuple(map(str, entry["capabilities"])) for name, entry in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
