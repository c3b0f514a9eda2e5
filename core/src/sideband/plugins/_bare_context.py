"""The context of plugins in a plugin host without a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import define, field

from ..contexts import SkillUses
from ..messages import JsonPieces
from ..ops import Credential
from ..store import Store
from ._errors import PluginError


@define
class BareContext:
    """A ``PluginContext`` without a store that cannot cause effects: there is no broker to check and record them."""

    plugin: str
    config: Any
    home: Path
    principal: str = "user"
    state: Any = field(default=None, repr=False)

    @property
    def store(self) -> Store:
        """Raise ``PluginError``."""
        raise self._refusal("use the store", "store")

    def now(self) -> datetime:
        """Return the time."""
        return datetime.now().astimezone()

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],  # noqa: ARG002  implements the protocol
        *,
        capabilities: Iterable[str] | None = None,  # noqa: ARG002  as above
        key: str | None = None,  # noqa: ARG002  as above
        uses: Iterable[str] | None = None,  # noqa: ARG002  as above
    ) -> Any:
        """Raise ``PluginError``."""
        raise self._refusal(f"run `{op}`")

    async def is_granted(self, uses: SkillUses) -> bool:  # noqa: ARG002  as above
        """Return ``False``: without a broker, nothing is granted."""
        return False

    async def credential(self, handle: str, audience: str) -> Credential:  # noqa: ARG002  as above
        """Raise ``PluginError``."""
        raise self._refusal(f"get the credential `{handle}`")

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """Do nothing: without a broker, nothing is recorded."""

    def check_egress(self, audience: str | None, parts: Mapping[str, str | bytes | JsonPieces]) -> None:
        """Do nothing: without a broker, no secrets are known."""

    def _refusal(self, action: str, missing: str = "broker") -> PluginError:
        return PluginError(
            f"the plugin `{self.plugin}` cannot {action}: its plugin host has no {missing}",
            name=self.plugin,
            hint="use `sideband.Host`",
        )
