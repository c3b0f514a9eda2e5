"""The scope that capabilities of the family use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from sideband.ops import Scope


@attrs.frozen
class SecretsScope(Scope, family="secrets"):
    """What a capability of `secrets` may limit: `secrets:name=github`, `secrets:name=github,mode=reveal`.

    Attributes:
        name: the secret's name.
        mode: `use` (send it where it is bound to, without seeing it), `reveal` (see the value), `write` (store,
            rotate and delete) or `rekey` (give the whole store a new key; needs a capability without `name`). A
            capability that names no mode allows `use` only.
    """

    # a skill that may use a credential must not thereby see it, or replace it by one of its own
    defaults: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("use",)}

    name: str | None = None
    mode: str | None = None
