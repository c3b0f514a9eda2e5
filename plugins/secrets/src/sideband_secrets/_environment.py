"""Secrets that variables of the environment hold: those that the configuration names, and no others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from attrs import define, field

from ._backends import Step, StoredSecret, Summary, is_text
from ._config import EnvironmentSecret
from ._errors import SecretReadOnly


@define
class EnvironmentBackend:
    """Reads the named variables. See ``Backend``.

    Args:
        secrets: by name, which variable holds it, and where it may go.
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

    async def change(self, name: str, step: Step) -> None:  # noqa: ARG002  nothing is changed
        """See ``Backend``."""
        raise SecretReadOnly(name, self.name)

    def variable_of(self, name: str) -> str | None:
        """The variable that would hold a secret of that name."""
        found = self.secrets.get(name)
        return None if found is None else found.variable

    def _stored(self, name: str, found: EnvironmentSecret) -> StoredSecret | None:
        value = os.environb.get(os.fsencode(found.variable))
        if not value:
            return None
        origins = tuple(dict.fromkeys(found.origins))
        return StoredSecret(name, value, is_text(value), origins, tuple(found.headers.items()))
