"""The scope of a ``checkpoint`` capability."""

from __future__ import annotations

import attrs
from sideband.ops import Scope


@attrs.frozen
class CheckpointScope(Scope, family="checkpoint"):
    """The fields of a ``checkpoint`` capability.

    Args:
        name: the name of the checkpoint.
    """

    name: str | None = None
