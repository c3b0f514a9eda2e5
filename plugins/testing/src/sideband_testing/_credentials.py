"""The fixture `credentials`: secrets that a test chooses."""

from __future__ import annotations

from types import SimpleNamespace

from sideband import OpContext, OpFamily, Plugin
from sideband.ops import Credential, OpFailed

from ._ops import list_secret_names
from ._scope import ChosenSecretsScope


class Credentials:
    """Secrets that a test chooses, for plugins that use ``ctx.credential``: the fixture ``credentials``.

    Its plugin takes the place of the op family ``secrets``.

    Attributes:
        plugin: what to pass to ``sideband_host``.
        resolved: the handles that plugins asked for, each with its audience.
        failure: an error to raise instead of resolving a handle.

    Example:
        >>> async def test_key_is_sent(sideband_host, credentials, http_server):
        ...     credentials.add("weather", "k3y", http_server.origin)
        ...     async with sideband_host("op.weather", credentials.plugin) as host:
        ...         await host.op("weather.now", {"auth": "weather"})
        ...     assert http_server.requests[0].headers["authorization"] == "Bearer k3y"
    """

    def __init__(self) -> None:
        self.resolved: list[tuple[str, str]] = []
        self.failure: Exception | None = None
        self._held: dict[str, tuple[Credential, str | None]] = {}
        family = OpFamily(name="secrets", ops=(list_secret_names,), scope=ChosenSecretsScope, credentials=self)
        self.plugin = Plugin("op", "secrets", SimpleNamespace(sideband_ops=lambda: family), "sideband-testing")

    def add(self, handle: str, value: str, origin: str | None = None, **headers: str) -> None:
        """Add a secret, or replace it.

        Args:
            handle: the handle.
            value: the value.
            origin: the origin to which it is bound, such as ``https://api.example.com``; ``None`` for any.
            headers: the headers to send instead of ``Authorization: Bearer VALUE``.
        """
        self._held[handle] = Credential(handle=handle, value=value, headers=headers), origin

    async def resolve(self, handle: str, audience: str, ctx: OpContext) -> Credential:  # noqa: ARG002  part of the interface
        """Return a secret, as the op family ``secrets`` does.

        Raises:
            OpFailed: if it is unknown (``secrets.missing``) or bound to another origin (``secrets.audience``).
        """
        self.resolved.append((handle, audience))
        if self.failure is not None:
            raise self.failure
        if handle not in self._held:
            raise OpFailed(f"the secret `{handle}` does not exist", code="secrets.missing")
        credential, origin = self._held[handle]
        if origin not in (None, audience):
            raise OpFailed(f"`{handle}` is bound to {origin}", code="secrets.audience", hint=f"bind it to {audience}")
        return credential
