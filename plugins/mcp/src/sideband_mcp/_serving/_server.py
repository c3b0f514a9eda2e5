"""The server: what it answers to the requests of clients, in both eras of the protocol."""

# ruff: noqa: ARG002  the SDK calls each handler with the same arguments

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from attrs import define, field
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from sideband.errors import SidebandError
from sideband.messages import ToolResultMessage
from sideband.rendering import render

from .._version import __version__
from ._client_session import ClientSession, TooManyCalls
from ._client_sessions import ClientSessions, TooManySessions
from ._held_calls import ClientQuestion, HeldCall
from ._result_content import error_result, result_of
from ._skill_texts import SkillText, SkillTexts, encoded

DISCONNECTED = "sideband.disconnected"
"""The event in the scope of an HTTP request that is set once its client has left."""

_NAME = "sideband"
_INSTRUCTIONS = (
    "Each tool call is checked, may need the approval of the user, and is recorded. The result says under "
    "`sideband/effect` which record it has."
)
_BUSY = -32_000
_MAX_NAME = 80

_Context = ServerRequestContext[Any, Any]


def make_server(sessions: ClientSessions) -> Server[Any]:
    """Return the server of the clients with these sessions."""
    requests = _Requests(sessions, SkillTexts(sessions.host, sessions.offer))
    server: Server[Any] = Server(
        _NAME,
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=requests.list_tools,
        on_call_tool=requests.call_tool,
        on_list_resources=requests.list_resources,
        on_read_resource=requests.read_resource,
        on_list_prompts=requests.list_prompts,
        on_get_prompt=requests.get_prompt,
    )
    # A newer client sends back which call it continues: sealed, and bound to the tool and the arguments.
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=_NAME))
    return server


@define(eq=False)
class _Requests:
    """The requests of clients."""

    sessions: ClientSessions = field(repr=False)
    texts: SkillTexts = field(repr=False)

    async def list_tools(self, ctx: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Return the tools that the client may call."""
        view = await (await self._session(ctx)).tools()
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=one.model_name,
                    description=one.description,
                    input_schema={"type": "object", **one.schema.model_dump(mode="json")["parameters"]},
                    annotations=types.ToolAnnotations(read_only_hint=one.read_only),
                )
                for one in view.tools
            ]
        )

    async def call_tool(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call a tool, or continue a call that has asked something."""
        session = await self._session(ctx)
        try:
            held = await self._held(session, params)
        except TooManyCalls:
            raise MCPError(_BUSY, f"more than {session.limits.calls} calls at the same time") from None
        except SidebandError as error:
            return _failed(error)
        try:
            event = await self._event(ctx, held)
        except SidebandError as error:
            session.drop(held)
            return _failed(error)
        except BaseException:
            session.drop(held, "the client cancelled it, or left")
            raise
        if isinstance(event, ClientQuestion):
            return types.InputRequiredResult(input_requests={event.id: _elicitation(event)}, request_state=held.call.id)
        session.drop(held)
        if session.agent.tools.get(params.name) is None:
            raise MCPError(types.INVALID_PARAMS, event.text)
        return result_of(event)

    async def _held(self, session: ClientSession, params: types.CallToolRequestParams) -> HeldCall:
        if params.request_state is None:
            return await session.begin(params.name, params.arguments or {})
        held = session.held(params.request_state)
        if held is None:
            raise MCPError(types.INVALID_PARAMS, "the call that this continues has ended")
        for key, answer in (params.input_responses or {}).items():
            if held.asked is not None and held.asked.id == key and isinstance(answer, types.ElicitResult):
                _settle(held.asked, answer)
        if held.asked is not None and not held.asked.done.is_set():
            held.repeat()
        return held

    async def _event(self, ctx: _Context, held: HeldCall) -> ClientQuestion | ToolResultMessage:
        """Return the result of a call, or the question that the client must answer first. Report progress meanwhile."""
        found: ClientQuestion | ToolResultMessage | None = None
        failure: SidebandError | None = None

        async def report() -> None:
            while reports := await held.reports():
                for progress, total, message in reports:
                    await ctx.session.report_progress(progress, total, message)

        async def cancel_if_disconnected(disconnected: anyio.Event) -> None:
            with watching:
                await disconnected.wait()
                held.call.cancel("the client has left")

        watching = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(report)
            if ctx.request is not None and (disconnected := ctx.request.scope.get(DISCONNECTED)) is not None:
                tasks.start_soon(cancel_if_disconnected, disconnected)
            try:
                found = await held.next()
                while isinstance(found, ClientQuestion) and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                    await _elicit(ctx, found)
                    found = await held.next()
            except SidebandError as error:
                failure = error
            watching.cancel()
            if not held.ended:  # else the last reports are sent before the result
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        assert found is not None  # noqa: S101  else there was an exception
        return found

    async def list_resources(
        self,
        ctx: _Context,
        params: types.PaginatedRequestParams | None,
    ) -> types.ListResourcesResult:
        """Return the texts of skills."""
        return types.ListResourcesResult(resources=[_resource(one) for one in await self.texts.list()])

    async def read_resource(
        self,
        ctx: _Context,
        params: types.ReadResourceRequestParams,
    ) -> types.ReadResourceResult:
        """Return a text of a skill."""
        try:
            found = await self.texts.read(params.uri)
        except OSError as error:
            raise MCPError(types.INTERNAL_ERROR, f"the resource is unreadable: {error}") from None
        if found is None:
            raise MCPError(types.INVALID_PARAMS, "unknown resource", {"uri": params.uri})
        text, raw = found
        blob = encoded(raw)
        shared = {"uri": text.uri, "mime_type": text.media_type}
        content = (
            types.TextResourceContents(**shared, text=raw.decode())
            if blob is None
            else types.BlobResourceContents(**shared, blob=blob)
        )
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(
        self,
        ctx: _Context,
        params: types.PaginatedRequestParams | None,
    ) -> types.ListPromptsResult:
        """Return the skills with instructions as prompts."""
        skills = await self.texts.skills()
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=one.name, description=one.description) for one in skills if one.instructions]
        )

    async def get_prompt(
        self,
        ctx: _Context,
        params: types.GetPromptRequestParams,
    ) -> types.GetPromptResult:
        """Return the instructions of a skill."""
        found = await self.texts.instructions(params.name)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown prompt `{params.name[:_MAX_NAME]}`")
        skill, text = found
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=skill.description, messages=[message])

    async def _session(self, ctx: _Context) -> ClientSession:
        """Return the session of the client that has sent a request."""
        connection = ""
        # In the newer protocol it is not checked: a client could name the session of another one.
        if ctx.request is not None and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            connection = ctx.request.headers.get("mcp-session-id", "")
        known = ctx.session.client_params
        name = render(known.client_info.name)[:_MAX_NAME] if known is not None else "without a name"
        try:
            return await self.sessions.get(connection, name, asks=_has_forms(ctx))
        except TooManySessions:
            raise MCPError(_BUSY, f"more than {self.sessions.limits.sessions} clients at the same time") from None


def _has_forms(ctx: _Context) -> bool:
    """Return whether a client can show forms to its user."""
    known = ctx.session.client_capabilities
    found = known.elicitation if known is not None else None
    return found is not None and (found.form is not None or found.url is None)


async def _elicit(ctx: _Context, question: ClientQuestion) -> None:
    """Ask the user of an older client, until there is an answer, or it is not needed any more."""
    form = question.form

    async def ask() -> None:
        try:
            found = await ctx.session.elicit_form(form.message, dict(form.schema), ctx.request_id)
        except Exception as error:  # noqa: BLE001  a client may answer anything
            question.fail(f"the client did not ask its user: {type(error).__name__}: {error}")
        else:
            _settle(question, found)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await question.done.wait()
        tasks.cancel_scope.cancel()


def _settle(question: ClientQuestion, answer: types.ElicitResult) -> None:
    if answer.action == "accept":
        question.answer(dict(answer.content or {}))
    else:
        question.fail("the user declined to answer" if answer.action == "decline" else "the user gave no answer")


def _elicitation(question: ClientQuestion) -> types.ElicitRequest:
    form = question.form
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=form.message, requested_schema=dict(form.schema))
    )


def _failed(error: SidebandError) -> types.CallToolResult:
    return error_result(f"{error.message}. {error.hint}" if error.hint else error.message, error.code)


def _resource(one: SkillText) -> types.Resource:
    return types.Resource(
        uri=one.uri,
        name=f"{one.skill.name}/{one.file}",
        description=one.skill.description,
        mime_type=one.media_type,
    )
