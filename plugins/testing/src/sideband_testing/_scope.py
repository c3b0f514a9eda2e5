"""The scope of the family that the fixture `credentials` takes the place of."""

from __future__ import annotations

import attrs
from sideband import Scope


@attrs.frozen
class ChosenSecretsScope(Scope, family="secrets"):
    """The scope of ``secrets``, so that capabilities of it are valid.

    Attributes:
        name: the name of the secret.
        mode: ``reveal`` to read its value.
    """

    name: str | None = None
    mode: str | None = None
