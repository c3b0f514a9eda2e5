"""The records of the plugins that a host loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from ..ledger import Ledger
from ..plugins import PluginLoad, PluginRecord

_PRINCIPAL = "user"
"""Plugins have the rights of the host's user, on whose behalf they are loaded."""
_MAX_LENGTH = 500


@define(eq=False)
class LoadRecords:
    """Records each load of a plugin in the ledger before its code is imported, and each failure.

    The store is loaded before there is a ledger. Failures wait until the secrets are known that they may quote.

    Args:
        redact: redacts the known secrets in a text.
        now: whether to record each at once, or only before the first other entry of the host.
    """

    _redact: Callable[[str], str]
    _now: bool
    _ledger: Ledger | None = field(default=None, init=False)
    _early: list[Mapping[str, Any]] = field(factory=list, init=False)
    _failures: list[PluginLoad] | None = field(factory=list, init=False)

    async def take(self, load: PluginLoad) -> None:
        """Record a load."""
        if load.error is None:
            await self._write({**_fields(load.record), "status": "begun", **_replaced(load)})
        elif self._failures is not None:
            self._failures.append(load)
        else:
            await self._write_failure(load)

    async def begin(self, ledger: Ledger) -> None:
        """Record what was loaded before there was a ledger, and from now on write to it."""
        self._ledger = ledger
        for fields in self._early:
            await ledger.load(fields, now=self._now)
        self._early.clear()

    async def begin_failures(self) -> None:
        """Record the failures until now, and from now on record each at once."""
        waiting, self._failures = self._failures or [], None
        for load in waiting:
            await self._write_failure(load)

    async def _write_failure(self, load: PluginLoad) -> None:
        assert load.error is not None  # noqa: S101  the callers check it
        error = {"code": load.error.code, "message": self._redact(load.error.message)[:_MAX_LENGTH]}
        await self._write({**_fields(load.record), "status": "failed", "error": error, **_replaced(load)})

    async def _write(self, fields: Mapping[str, Any]) -> None:
        # Metadata is the word of the package, of any length.
        texts = {name: self._redact(text)[:_MAX_LENGTH] for name, text in fields.items() if isinstance(text, str)}
        fields = {**fields, **texts}
        if self._ledger is None:
            self._early.append(fields)
        else:
            await self._ledger.load(fields, now=self._now)


def _fields(record: PluginRecord) -> dict[str, Any]:
    fields = {
        "plugin": record.label,
        "distribution": record.distribution,
        "version": record.version,
        "value": record.value,
        "digest": record.digest,
        "editable": record.editable,
        "installer": record.installer,
        "location": record.file or record.location,
        "source": record.url,
        "principal": _PRINCIPAL,
    }
    return {name: value for name, value in fields.items() if value}


def _replaced(load: PluginLoad) -> dict[str, str]:
    return {"replaces": load.replaces} if load.replaces else {}
