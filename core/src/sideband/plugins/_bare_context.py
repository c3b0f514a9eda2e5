"""The context of plugins in a plugin host that stands alone, without a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from ..ops import Credential
from ._errors import PluginError


@define
class BareContext:
    """A ``PluginContext`` that can cause no effect: there is nothing that would gate and record it."""

    plugin: str
    config: Any
    home: Path
    principal: str = "user"
    state: Any = field(default=None, repr=False)

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],  # noqa: ARG002  the signature is the protocol's
        *,
        capabilities: Iterable[str] | None = None,  # noqa: ARG002  as above
        key: str | None = None,  # noqa: ARG002  as above
    ) -> Any:
        """Refuse."""
        raise self._refusal(f"run `{op}`")

    async def credential(self, handle: str, audience: str) -> Credential:  # noqa: ARG002  as above
        """Refuse."""
        raise self._refusal(f"get the credential `{handle}`")

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """Do nothing: nothing of it is recorded anywhere."""

    def _refusal(self, wish: str) -> PluginError:
        return PluginError(
            f"the plugin `{self.plugin}` can't {wish}: its plugin host stands alone, without a broker",
            name=self.plugin,
            hint="use `sideband.Host`",
        )
