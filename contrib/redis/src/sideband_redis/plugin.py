"""The entry point of the group `sideband.v1.store`: registers the store `redis`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sideband.store import StoreSpec

from ._models import Config
from ._store import open_redis

__all__ = ["Config", "sideband_stores"]


def sideband_stores(config: Config) -> Sequence[StoreSpec]:
    """Return the stores of this plugin."""
    return [StoreSpec(name="redis", open=partial(open_redis, config))]
