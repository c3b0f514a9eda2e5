"""The scope of `secrets` capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from sideband.ops import Scope


@attrs.frozen
class SecretsScope(Scope, family="secrets"):
    """The scope of a `secrets` capability: `secrets:name=github`, `secrets:name=github,mode=reveal`.

    Attributes:
        name: the secret's name.
        mode: `use` (send it to its origins without seeing it), `reveal` (read the value), `write` (store, rotate and
            delete) or `rekey` (re-encrypt the whole store; requires a capability without `name`). A capability without
            a mode allows `use` only.
    """

    # a skill that may use a credential must not be able to read or replace it
    defaults: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("use",)}
    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("use", "reveal", "write", "rekey")}

    name: str | None = None
    mode: str | None = None
