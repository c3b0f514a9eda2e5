"""Secrets in environment variables: the configured ones, and no others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from attrs import define, field

from ._backends import Step, StoredSecret, Summary, is_text
from ._config import EnvironmentSecret
from ._errors import SecretReadOnly


@define
class EnvironmentBackend:
    """Reads the configured variables. See ``Backend``.

    Args:
        secrets: the variable and the origins of each secret, by name.
    """

    secrets: Mapping[str, EnvironmentSecret]
    name: str = field(default="environment", init=False)
    writable: bool = field(default=False, init=False)

    async def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""
        found = self.secrets.get(name)
        return None if found is None else self._stored(name, found)

    async def summaries(self, wanted: Callable[[str], bool]) -> tuple[Summary, ...]:
        """See ``Backend``."""
        found = (self._stored(name, one) for name, one in sorted(self.secrets.items()) if wanted(name))
        return tuple(stored.summary for stored in found if stored is not None)

    async def all(self, *, ask: bool) -> tuple[StoredSecret, ...]:  # noqa: ARG002  never asks
        """See ``Backend``."""
        found = (self._stored(name, one) for name, one in self.secrets.items())
        return tuple(stored for stored in found if stored is not None)

    async def change(self, name: str, step: Step) -> None:  # noqa: ARG002  read-only
        """See ``Backend``."""
        raise SecretReadOnly(name, self.name)

    def variable_of(self, name: str) -> str | None:
        """Return the variable configured for a secret, or ``None``."""
        found = self.secrets.get(name)
        return None if found is None else found.variable

    def _stored(self, name: str, found: EnvironmentSecret) -> StoredSecret | None:
        value = os.environb.get(os.fsencode(found.variable))
        if not value:
            return None
        origins = tuple(dict.fromkeys(found.origins))
        return StoredSecret(name, value, is_text(value), origins, tuple(found.headers.items()))
