"""The entry point of the group `sideband.v1.store`: registers the store `sqlite`."""

from __future__ import annotations

from collections.abc import Sequence

from sideband.store import StoreSpec

from ._store import open_sqlite

__all__ = ["sideband_stores"]


def sideband_stores() -> Sequence[StoreSpec]:
    """Return the stores of this plugin."""
    return [StoreSpec(name="sqlite", open=open_sqlite)]
