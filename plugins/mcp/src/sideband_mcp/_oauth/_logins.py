"""Where logins are kept: their tokens as secrets, bound to their origins, and the rest in the store of the host."""

from __future__ import annotations

import json
from typing import Literal

from attrs import field, frozen
from sideband import SidebandError
from sideband.plugins import PluginContext

from ._login import Login, origin_of

_Kind = Literal["access", "refresh", "client"]
_KINDS: tuple[_Kind, ...] = ("access", "refresh", "client")
_ABSENT = frozenset({"secrets.missing", "secrets.audience"})


@frozen
class Logins:
    """The logins of a host.

    Args:
        ctx: the context of the plugin. The tokens are its own: neither a model nor a skill needs a right to them.
    """

    ctx: PluginContext = field(repr=False)

    async def of(self, server: str, url: str) -> Login | None:
        """Return the login to a server, if there is one for this address."""
        found = await self.ctx.store.get(f"login/{server}")
        login = None if found is None else Login.model_validate(found.value)
        return login if login is not None and login.url == url else None

    async def token(self, server: str, kind: _Kind, origin: str) -> str | None:
        """Return a token, if there is one that may be sent to this origin."""
        try:
            return (await self.ctx.credential(_handle(server, kind), origin)).value
        except SidebandError as error:
            if error.code not in _ABSENT:
                raise
            return None

    async def begin(self, server: str, login: Login, *, access: str, refresh: str | None, client: str | None) -> None:
        """Replace the login to a server."""
        await self.forget(server)
        if client is not None:
            await self._set(server, "client", client, login.token_origin)
        await self.renew(server, login, access=access, refresh=refresh)

    async def renew(self, server: str, login: Login, *, access: str, refresh: str | None) -> None:
        """Replace the tokens of a login."""
        # In this order, a host that is killed in between has the new refresh token, and renews again.
        if refresh is not None:
            await self._set(server, "refresh", refresh, login.token_origin)
        await self._set(server, "access", access, origin_of(login.url))
        document = login.model_dump()
        self.ctx.check_egress(None, {"login": json.dumps(document)})
        await self.ctx.store.put(f"login/{server}", document)

    async def forget(self, server: str) -> bool:
        """Delete the login to a server. Return whether there was one."""
        found = await self.ctx.store.delete(f"login/{server}")
        for kind in _KINDS:
            try:
                await self.ctx.dispatch("secrets.delete", {"name": _handle(server, kind)})
            except SidebandError as error:
                if error.code not in _ABSENT:
                    raise
        return found

    async def wanted(self, server: str) -> str:
        """Return the scopes that the server asked for during a call, separated by spaces."""
        found = await self.ctx.store.get(f"scopes/{server}")
        return "" if found is None else str(found.value["scope"])

    async def want(self, server: str, scope: str) -> None:
        """Replace the scopes that the next login asks for in addition."""
        if scope:
            await self.ctx.store.put(f"scopes/{server}", {"scope": scope})
        else:
            await self.ctx.store.delete(f"scopes/{server}")

    async def _set(self, server: str, kind: _Kind, value: str, origin: str) -> None:
        request = {"name": _handle(server, kind), "value": value, "origins": [origin]}
        await self.ctx.dispatch("secrets.set", request)


def _handle(server: str, kind: _Kind) -> str:
    return f"mcp.{server}.{kind}"
