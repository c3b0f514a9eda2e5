"""One server: what it offers, and its calls."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import anyio
from anyio.abc import TaskGroup
from attrs import define, field, frozen
from mcp_types import PromptMessage, TextResourceContents
from sideband.messages import TextPart
from sideband.ops import OpContext
from sideband.plugins import PluginContext

from .._catalog import definitions_of
from .._config import Config, ServerConfig
from .._errors import McpInterrupted, McpInvalid, McpTimeout, McpTooLarge
from .._models import (
    ListedPrompt,
    ListedResource,
    McpAsk,
    McpCallResult,
    McpContent,
    PromptArgument,
    ToolDefinition,
    digest_of,
)
from .._oauth._access import Access
from .._oauth._logins import Logins
from .._output import part_of
from ._connection import ServerConnection
from ._exchange import Exchange, ServerAnswer
from ._pool import ConnectionPool

_Found = TypeVar("_Found")
_LONGEST_SOFTWARE = 200


@frozen
class ServerOffer:
    """What a server offers.

    Attributes:
        tools: the definitions of its tools.
        features: what it offers besides tools, of ``resources`` and ``prompts``.
        problems: the tools that were left out, and why.
        software: the name and version of the server, as it says them.
        protocol: the version of the protocol that it speaks.
    """

    tools: Sequence[ToolDefinition] = ()
    features: Sequence[str] = ()
    problems: Sequence[str] = ()
    software: str = ""
    protocol: str = ""

    @property
    def digest(self) -> str:
        """The digest of all that it offers."""
        return digest_of([list(self.features), *(one.digest for one in self.tools)])


@define(eq=False)
class Server:
    """One server.

    Args:
        name: its name.
        settings: its table.
        config: the limits of connections.
        tasks: runs the connections and calls.
        own: the context of the plugin, which resolves secrets.

    Attributes:
        access: its token, if a person authorizes it.
        pool: its connections.
    """

    name: str
    settings: ServerConfig = field(repr=False)
    config: Config = field(repr=False)
    tasks: TaskGroup = field(repr=False)
    own: PluginContext = field(repr=False)
    access: Access = field(init=False, repr=False)
    pool: ConnectionPool = field(init=False, repr=False)
    _exchanges: dict[str, Exchange] = field(init=False, factory=dict, repr=False)
    _offer: ServerOffer | None = field(init=False, default=None, repr=False)
    _changed: anyio.Event = field(init=False, factory=anyio.Event, repr=False)

    @pool.default
    def _make_pool(self) -> ConnectionPool:
        return ConnectionPool(self.name, self.settings, self.config, self.tasks, self._announce, self.own, self.access)

    @access.default
    def _make_access(self) -> Access:
        return Access(self.name, self.settings, Logins(self.own))

    @property
    def origin(self) -> str | None:
        """The origin to which secrets may be sent; ``None`` for a program."""
        return self.settings.origin

    async def reopen(self) -> None:
        """Close the connections, so that further requests open others, with the login that there is now."""
        self.pool.renew()
        self._announce()

    async def offer(self, ctx: OpContext) -> ServerOffer:
        """Return what the server offers. It is asked again only after it has announced a change."""
        while self._offer is None:
            async with self.pool.lend(ctx) as connection:
                connection.listing()
                changed = self._changed  # a new connection counts as a change
                found = await self._listed(connection)
            if changed is self._changed:
                self._offer = found
        return self._offer

    async def changed(self, digest: str, ctx: OpContext) -> None:
        """Return when the server offers something else than what has this digest."""
        while True:
            changed = self._changed
            if (await self.offer(ctx)).digest != digest:
                return
            await changed.wait()

    async def call(self, tool: str, arguments: dict[str, Any], ctx: OpContext) -> McpCallResult:
        """Call a tool once, and return its result, or what the server asks first.

        A call is never repeated, because the server may have done the work.
        """
        exchange = Exchange.of(self.name, ctx)
        self._exchanges[exchange.id] = exchange
        self.tasks.start_soon(exchange.run, partial(self._call, exchange, tool, arguments, ctx))
        return await self._next(exchange, ctx)

    async def answer(self, exchange: str, ask: str, answer: ServerAnswer, ctx: OpContext) -> McpCallResult:
        """Answer what the server asked during a call, and return its result, or what the server asks next.

        Raises:
            McpInterrupted: if the call has ended.
        """
        found = self._found(exchange, ctx)
        if not found.answer(ask, answer) and not found.has_ended:
            raise McpInterrupted(self.name, "it no longer waits for this answer")
        return await self._next(found, ctx)

    async def abandon(self, exchange: str, ctx: OpContext) -> None:
        """End a call whose caller does not answer."""
        await self._end(self._found(exchange, ctx))

    async def _end(self, exchange: Exchange) -> None:
        await exchange.close()
        self._exchanges.pop(exchange.id, None)

    def _found(self, exchange: str, ctx: OpContext) -> Exchange:
        found = self._exchanges.get(exchange)
        if found is None or not found.belongs_to(ctx):
            raise McpInterrupted(self.name, "it no longer waits for an answer")
        return found

    async def _next(self, exchange: Exchange, ctx: OpContext) -> McpCallResult:
        try:
            found = await exchange.next(ctx)
        except BaseException:
            self._exchanges.pop(exchange.id, None)
            raise
        if isinstance(found, McpAsk):
            if not exchange.is_shared:  # no op waits for it any more
                exchange.is_shared = True
                ctx.on_session_end(partial(self._end, exchange))
            return McpCallResult(ask=found, exchange=exchange.id)
        self._exchanges.pop(exchange.id, None)
        if found is None:
            raise McpTimeout(self.name, "a call", self.settings.call_seconds, "call_seconds")
        return cast("McpCallResult", found)

    async def _call(self, exchange: Exchange, tool: str, arguments: dict[str, Any], ctx: OpContext) -> McpCallResult:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            stall.deadline = anyio.current_time() + self.config.stall_seconds
            if exchange.ctx is not None:
                await exchange.ctx.progress(current=progress, total=total, message=message)

        async with self.pool.lend(ctx) as connection, anyio.create_task_group() as tasks:
            stall = anyio.CancelScope(deadline=anyio.current_time() + self.config.stall_seconds)
            tasks.start_soon(self._warn, stall, exchange)
            exchange.scope.deadline = anyio.current_time() + self.settings.call_seconds
            connection.exchanges.append(exchange)
            try:
                asking = partial(connection.client.call_tool, tool, arguments, progress_callback=report)
                found = await self.pool.ask(connection, asking)
            finally:
                connection.exchanges.remove(exchange)
                tasks.cancel_scope.cancel()
        parts = tuple(one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in found.content)
        return McpCallResult(content=parts, structured=found.structured_content, is_error=bool(found.is_error))

    async def _warn(self, stall: anyio.CancelScope, exchange: Exchange) -> None:
        """Report once that a call is silent."""
        with stall:
            await anyio.sleep_forever()
        if exchange.ctx is not None:
            silent = self.config.stall_seconds
            await exchange.ctx.progress(message=f"the MCP server `{self.name}` has been silent for {silent:g} s")

    async def resources(self, ctx: OpContext) -> list[ListedResource]:
        """Return its resources, and the templates of further ones."""
        async with self.pool.lend(ctx) as connection:
            client = connection.client
            listed = await self._pages(connection, client.list_resources, "resources")
            templates = await self._pages(connection, client.list_resource_templates, "resource_templates")
        found = [_resource(one, one.uri) for one in listed]
        return found + [_resource(one, one.uri_template, is_template=True) for one in templates]

    async def read(self, uri: str, ctx: OpContext) -> list[McpContent]:
        """Return the parts of a resource."""
        async with self.pool.lend(ctx) as connection:
            found = await self._within(connection, partial(connection.client.read_resource, uri))
        return [
            McpContent(uri=one.uri, type=one.mime_type or "", text=one.text)
            if isinstance(one, TextResourceContents)
            else McpContent(uri=one.uri, type=one.mime_type or "", data=_decoded(self.name, one.blob))
            for one in found.contents
        ]

    async def prompts(self, ctx: OpContext) -> list[ListedPrompt]:
        """Return its prompts."""
        async with self.pool.lend(ctx) as connection:
            listed = await self._pages(connection, connection.client.list_prompts, "prompts")
        return [
            ListedPrompt(
                name=one.name,
                description=one.description or one.title or "",
                arguments=tuple(
                    PromptArgument(name=each.name, description=each.description or "", required=bool(each.required))
                    for each in one.arguments or ()
                ),
            )
            for one in listed
        ]

    async def prompt(self, name: str, arguments: dict[str, str], ctx: OpContext) -> str:
        """Return the text of a prompt."""
        async with self.pool.lend(ctx) as connection:
            found = await self._within(connection, partial(connection.client.get_prompt, name, arguments))
        return "\n\n".join(_message(one) for one in found.messages)

    async def _listed(self, connection: ServerConnection) -> ServerOffer:
        has = connection.client.server_capabilities
        found = await self._pages(connection, connection.client.list_tools, "tools") if has.tools else []
        info, protocol = connection.client.server_info, connection.client.protocol_version
        software = "" if info is None else f"{info.name} {info.version}".strip()[:_LONGEST_SOFTWARE]
        tools, problems = definitions_of(one for one in found if self.settings.offers(one.name))
        features = [name for name in ("prompts", "resources") if getattr(has, name) is not None]
        return ServerOffer(tools, features, problems, software, protocol)

    async def _pages(self, connection: ServerConnection, page: Callable[..., Awaitable[Any]], kind: str) -> list[Any]:
        """Return all pages of a list. Its size and the time are limited."""
        found: list[Any] = []
        size, what = 0, f"a list of {kind.replace('_', ' ')}"
        cursor: str | None = None
        with anyio.move_on_after(self.config.list_seconds) as scope:
            while True:
                one = await self.pool.ask(connection, partial(page, cursor=cursor))
                added = getattr(one, kind)
                found += added
                if len(found) > self.config.max_listed:
                    raise McpTooLarge(self.name, what, self.config.max_listed, "max_listed")
                size += sum(len(each.model_dump_json()) for each in added)
                if size > self.config.max_message_bytes:  # of all pages together
                    raise McpTooLarge(self.name, what, self.config.max_message_bytes, "max_message_bytes")
                if one.next_cursor is None or one.next_cursor == cursor or not added:
                    break
                cursor = one.next_cursor
        if scope.cancelled_caught:
            raise McpTimeout(self.name, "a listing", self.config.list_seconds, "list_seconds")
        return found

    async def _within(self, connection: ServerConnection, request: Callable[[], Awaitable[_Found]]) -> _Found:
        """Send a request with the timeout of calls."""
        with anyio.move_on_after(self.settings.call_seconds):
            return await self.pool.ask(connection, request)
        raise McpTimeout(self.name, "a request", self.settings.call_seconds, "call_seconds")

    def _announce(self) -> None:
        """Note that the tools may have changed."""
        self._offer = None
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


def _resource(one: Any, uri: str, *, is_template: bool = False) -> ListedResource:
    described = one.description or one.title or ""
    return ListedResource(
        uri=uri, name=one.name, description=described, type=one.mime_type or "", is_template=is_template
    )


def _decoded(server: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise McpInvalid(server, "a resource is not valid base64") from error


def _message(one: PromptMessage) -> str:
    shown = part_of(one.content.model_dump(mode="json", by_alias=True, exclude_none=True))
    text = shown.text if isinstance(shown, TextPart) else "[an image is not shown]"
    return text if one.role == "user" else f"[assistant] {text}"
