"""Logins that wait for a person."""

from __future__ import annotations

import anyio
from anyio.abc import TaskGroup
from attrs import define, field
from sideband import SidebandError

from .._config import ServerConfig
from .._errors import McpLoginFailed
from ._flow import Authorization
from ._listener import RedirectListener, listening
from ._login import Login
from ._logins import Logins

_SECONDS_FOR_PERSON = 600.0


@define(eq=False)
class PendingLogin:
    """A login that waits for a person, in a task of its own.

    Attributes:
        address: the address for the person; empty until it is known.
        redirect: the address to which the browser is sent.
    """

    server: str
    settings: ServerConfig = field(repr=False)
    logins: Logins = field(repr=False)
    address: str = field(init=False, default="", repr=False)
    redirect: str = field(init=False, default="")
    _listener: RedirectListener | None = field(init=False, default=None, repr=False)
    _login: Login | None = field(init=False, default=None, repr=False)
    _error: SidebandError | None = field(init=False, default=None, repr=False)
    _shown: anyio.Event = field(init=False, factory=anyio.Event, repr=False)
    _ended: anyio.Event = field(init=False, factory=anyio.Event, repr=False)
    _scope: anyio.CancelScope = field(init=False, factory=anyio.CancelScope, repr=False)

    async def run(self) -> None:
        """Authorize the server, for as long as a person may need."""
        try:
            with self._scope, anyio.fail_after(_SECONDS_FOR_PERSON):
                port = None if self.settings.authorization is None else self.settings.authorization.redirect_port
                async with listening(port) as listener:
                    self._listener, self.redirect = listener, listener.address
                    await self._authorize(listener)
        except TimeoutError:
            self._error = McpLoginFailed(self.server, f"you did not answer within {_SECONDS_FOR_PERSON:g} s")
        except OSError as error:
            hint = f"set another `redirect_port` in `[plugins.mcp.servers.{self.server}] oauth`"
            self._error = McpLoginFailed(self.server, f"no port for the browser: {error.strerror}", hint=hint)
        except Exception as error:  # noqa: BLE001  a browser may cause any error of the port, and the host goes on
            self._error = McpLoginFailed(self.server, f"the port for the browser caused {type(error).__name__}")
        finally:
            self._shown.set()
            self._ended.set()

    async def close(self) -> None:
        """End it without a login."""
        self._scope.cancel()
        await self._ended.wait()

    async def shown(self) -> None:
        """Return once the address is known.

        Raises:
            McpLoginFailed: if it is not.
        """
        await self._shown.wait()
        if not self.address:
            self._raise()

    async def login(self, redirect: str | None = None) -> Login:
        """Return the login once the person has authorized it.

        Args:
            redirect: the address to which the browser was sent, if it cannot reach this machine.

        Raises:
            McpLoginFailed: if the person has not authorized it, or the address is wrong, which ends nothing.
        """
        if redirect is not None and self._listener is not None and not self._ended.is_set():
            try:
                self._listener.take(redirect)
            except ValueError as error:
                hint = "paste the whole address to which the browser was sent"
                raise McpLoginFailed(self.server, f"the address is wrong: {error}", hint=hint) from None
        await self._ended.wait()
        if self._login is None:
            self._raise()
        assert self._login is not None  # noqa: S101  otherwise raised
        return self._login

    def _raise(self) -> None:
        raise self._error or McpLoginFailed(self.server, "the login was ended")

    async def _authorize(self, listener: RedirectListener) -> None:
        work = Authorization(self.server, self.settings, self.logins, listener, self._show)
        try:
            self._login = await work.run()
        except SidebandError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001  a server may cause any error of the SDK and its libraries
            self._error = McpLoginFailed(self.server, f"its authorization server caused {type(error).__name__}")

    async def _show(self, url: str) -> None:
        self.address = url
        self._shown.set()


@define(eq=False)
class PendingLogins:
    """The logins of a host that wait for a person: one for each server.

    Args:
        tasks: runs them.
        logins: where tokens are kept.
    """

    tasks: TaskGroup = field(repr=False)
    logins: Logins = field(repr=False)
    _pending: dict[str, PendingLogin] = field(init=False, factory=dict, repr=False)

    async def begin(self, server: str, settings: ServerConfig) -> PendingLogin:
        """Begin a login, which replaces an earlier one that still waits."""
        await self.close(server)
        pending = self._pending[server] = PendingLogin(server, settings, self.logins)
        self.tasks.start_soon(pending.run)
        await pending.shown()
        return pending

    def of(self, server: str) -> PendingLogin:
        """Return the login of a server.

        Raises:
            McpLoginFailed: if none has begun.
        """
        if server not in self._pending:
            raise McpLoginFailed(server, "no login has begun")
        return self._pending[server]

    async def close(self, server: str) -> None:
        """End the login of a server, if one waits. Its port is free after that."""
        if (pending := self._pending.pop(server, None)) is not None:
            await pending.close()
