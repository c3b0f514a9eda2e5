"""The hooks whose outcome matters, one function each: its docstring is the reference, its example is run by a test."""

from __future__ import annotations

from typing import Any

from ..contexts import PluginContext
from ._events import (
    AfterProviderResponse,
    BeforeAgentStart,
    BeforeProviderRequest,
    ChatCommands,
    Compaction,
    Context,
    Ephemeral,
    Input,
    Message,
    ModelError,
    OpCall,
    Redactors,
    Routes,
    Sections,
    SessionBeforeFork,
    SessionBeforeSwitch,
    ToolCall,
    ToolResult,
)
from ._results import (
    Allow,
    Ask,
    Cancel,
    ChatCommand,
    Compact,
    Compacted,
    Continue,
    Deny,
    GiveUp,
    Handled,
    Park,
    Patch,
    Redactor,
    Replace,
    Retry,
    Route,
    Section,
    Transform,
)
from ._spec import Failure, Kind, spec

__all__: list[str] = []


@spec(Input, Kind.UPDATE, Continue, Transform, Handled, on_failure=Failure.SKIP, deadline=10)
def input(event: Input, ctx: PluginContext) -> Continue | Transform | Handled | None:  # noqa: A001  the hook's name
    """Change what the user sent, or answer it without an agent. The first ``Handled`` ends it.

    Example:
        >>> from sideband.hooks import Handled, Input, Transform, hookimpl
        >>> @hookimpl
        ... def input(event: Input) -> Handled | Transform | None:
        ...     if event.text == "ping":
        ...         return Handled("pong")
        ...     return Transform(event.text.strip())
        >>> input(Input("ping"))
        Handled(reply='pong', plugin='')
    """


@spec(BeforeAgentStart, Kind.UPDATE, str, on_failure=Failure.SKIP, deadline=10)
def before_agent_start(event: BeforeAgentStart, ctx: PluginContext) -> str | None:
    r"""Change the system prompt of one run. What differs on every run empties the provider's cache.

    Example:
        >>> from sideband.hooks import BeforeAgentStart, hookimpl
        >>> @hookimpl
        ... async def before_agent_start(event: BeforeAgentStart) -> str | None:
        ...     if "invoice" not in event.prompt:
        ...         return None
        ...     return event.system_prompt + "\nAmounts are in euros."
    """


@spec(Context, Kind.UPDATE, list, tuple, on_failure=Failure.SKIP, deadline=10)
def context(event: Context, ctx: PluginContext) -> list[Message] | tuple[Message, ...] | None:
    """Change the messages that the model is going to see. The stored ones stay as they are.

    Example:
        >>> from sideband.hooks import Context, hookimpl
        >>> @hookimpl
        ... def context(event: Context) -> list:
        ...     return [message for message in event.messages if message["role"] != "draft"]
        >>> context(Context([{"role": "draft"}, {"role": "user"}]))
        [{'role': 'user'}]
    """


@spec(Ephemeral, Kind.COLLECT, on_failure=Failure.SKIP, deadline=10, items=dict)
def ephemeral(event: Ephemeral, ctx: PluginContext) -> list[dict[str, Any]] | None:
    """Add messages to one model call. They are never stored.

    Example:
        >>> from sideband.hooks import Ephemeral, hookimpl
        >>> @hookimpl
        ... def ephemeral(event: Ephemeral) -> list[dict]:
        ...     return [{"role": "user", "content": "The build is red."}]
    """


@spec(BeforeProviderRequest, Kind.UPDATE, BeforeProviderRequest, on_failure=Failure.SKIP, deadline=10)
def before_provider_request(event: BeforeProviderRequest, ctx: PluginContext) -> BeforeProviderRequest | None:
    """Change a request to a provider of models: return a changed copy of the event.

    Example:
        >>> import attrs
        >>> from sideband.hooks import BeforeProviderRequest, hookimpl
        >>> @hookimpl
        ... def before_provider_request(event: BeforeProviderRequest) -> BeforeProviderRequest:
        ...     return attrs.evolve(event, options={**event.options, "temperature": 0})
        >>> before_provider_request(BeforeProviderRequest("m", [])).options
        {'temperature': 0}
    """


@spec(AfterProviderResponse, Kind.UPDATE, AfterProviderResponse, on_failure=Failure.SKIP, deadline=10)
def after_provider_response(event: AfterProviderResponse, ctx: PluginContext) -> AfterProviderResponse | None:
    """Change what a provider of models answered: return a changed copy of the event.

    Example:
        >>> import attrs
        >>> from sideband.hooks import AfterProviderResponse, hookimpl
        >>> @hookimpl
        ... def after_provider_response(event: AfterProviderResponse) -> AfterProviderResponse:
        ...     kept = {key: value for key, value in event.response.items() if key != "logprobs"}
        ...     return attrs.evolve(event, response=kept)
    """


@spec(ToolCall, Kind.DECIDE, Allow, Deny, Replace, Ask, on_failure=Failure.DENY, deadline=60)
def tool_call(event: ToolCall, ctx: PluginContext) -> Allow | Deny | Replace | Ask | None:
    """Decide whether a tool that a model asks for may run, and with which arguments.

    The first ``Deny`` wins, then ``Ask``. After a ``Replace`` the new arguments are validated, and those who have
    answered already are asked again, so that everybody has seen what will run. An implementation that fails denies.

    Example:
        >>> from sideband.hooks import Ask, Deny, Replace, ToolCall, hookimpl
        >>> @hookimpl
        ... async def tool_call(event: ToolCall) -> Ask | Deny | Replace | None:
        ...     if event.tool == "notes.delete":
        ...         return Ask(f"Delete {event.arguments['path']}?")
        ...     if event.tool == "notes.list" and event.arguments.get("limit", 0) > 100:
        ...         return Replace({**event.arguments, "limit": 100})
        ...     return None
    """


@spec(OpCall, Kind.DECIDE, Allow, Deny, Replace, Ask, on_failure=Failure.DENY, deadline=60)
def op_call(event: OpCall, ctx: PluginContext) -> Allow | Deny | Replace | Ask | None:
    """Decide whether an effect that the grant covers may happen now. The rules are those of ``tool_call``.

    An implementation that dispatches an op of its own causes another ``op_call``, and must let that one pass.

    Example:
        >>> from sideband.hooks import Allow, Deny, OpCall, hookimpl
        >>> from sideband.ops import Level
        >>> @hookimpl
        ... def op_call(event: OpCall) -> Allow | Deny:
        ...     if event.level >= Level.RESTRICTED and event.origin.principal != "user":
        ...         return Deny("only the user may do what can't be undone")
        ...     return Allow("within the rules for guests")
    """


@spec(ToolResult, Kind.UPDATE, Patch, on_failure=Failure.WITHHOLD_IF_GUARD, deadline=30)
def tool_result(event: ToolResult, ctx: PluginContext) -> Patch | None:
    """Change what the model sees of a result. Each implementation sees what the ones before have left.

    If a guard fails, the content is withheld and nobody further is asked; any other plugin that fails is skipped.

    Example:
        >>> from sideband.hooks import Patch, ToolResult, hookimpl
        >>> @hookimpl
        ... def tool_result(event: ToolResult) -> Patch | None:
        ...     if isinstance(event.content, str) and len(event.content) > 4000:
        ...         return Patch(content=event.content[:4000], note="cut after 4,000 characters")
        ...     return None
    """


@spec(Compaction, Kind.FIRST, Cancel, Compacted, on_failure=Failure.NEXT, deadline=300)
def compaction(event: Compaction, ctx: PluginContext) -> Cancel | Compacted | None:
    """Compact a session in another way than the default one, or not now. The first answer counts.

    Example:
        >>> from sideband.hooks import Compacted, Compaction, hookimpl
        >>> @hookimpl
        ... async def compaction(event: Compaction) -> Compacted | None:
        ...     if len(event.messages) > 2:
        ...         return None
        ...     return Compacted(" / ".join(str(message["content"]) for message in event.messages))
    """


@spec(ModelError, Kind.FIRST, Retry, Compact, Park, GiveUp, on_failure=Failure.NEXT, deadline=10)
def model_error(event: ModelError, ctx: PluginContext) -> Retry | Compact | Park | GiveUp | None:
    """Say what follows on a model call that failed. The first answer counts; without one, the run fails.

    Only the model call is made again, from the last stored step: no tool runs twice.

    Example:
        >>> from sideband.hooks import GiveUp, ModelError, Retry, hookimpl
        >>> @hookimpl
        ... def model_error(event: ModelError) -> Retry | GiveUp | None:
        ...     if event.error.get("status") != 503:
        ...         return None
        ...     return Retry(2.0**event.attempt, "overloaded") if event.attempt < 4 else GiveUp("overloaded")
        >>> model_error(ModelError("r1", "local:m", {"status": 503})).delay
        2.0
    """


@spec(SessionBeforeSwitch, Kind.DECIDE, Cancel, on_failure=Failure.REPORT, deadline=30)
def session_before_switch(event: SessionBeforeSwitch, ctx: PluginContext) -> Cancel | None:
    """Keep the user from leaving a session now. A plugin that fails does not.

    Example:
        >>> from sideband.hooks import Cancel, SessionBeforeSwitch, hookimpl
        >>> unsaved = ["draft.md"]
        >>> @hookimpl
        ... def session_before_switch(event: SessionBeforeSwitch) -> Cancel | None:
        ...     return Cancel(f"{unsaved[0]} is not saved") if unsaved else None
    """


@spec(SessionBeforeFork, Kind.DECIDE, Cancel, on_failure=Failure.REPORT, deadline=30)
def session_before_fork(event: SessionBeforeFork, ctx: PluginContext) -> Cancel | None:
    """Keep the user from forking a session. A plugin that fails does not.

    Example:
        >>> from sideband.hooks import Cancel, SessionBeforeFork, hookimpl
        >>> @hookimpl
        ... def session_before_fork(event: SessionBeforeFork) -> Cancel | None:
        ...     return Cancel("the first entry can't be forked before") if event.position == "before" else None
    """


@spec(Sections, Kind.COLLECT, on_failure=Failure.SKIP, deadline=10, items=Section)
def sections(event: Sections, ctx: PluginContext) -> list[Section] | None:
    """Add parts to the system prompt.

    Example:
        >>> from sideband.hooks import Section, Sections, hookimpl
        >>> @hookimpl
        ... def sections(event: Sections) -> list[Section]:
        ...     return [Section("house-style", "Answer in the language of the question.")]
    """


@spec(Routes, Kind.COLLECT, on_failure=Failure.SKIP, deadline=10, items=Route)
def routes(event: Routes, ctx: PluginContext) -> list[Route] | None:
    """Suggest tools for requests that match a pattern.

    Example:
        >>> from sideband.hooks import Route, Routes, hookimpl
        >>> @hookimpl
        ... def routes(event: Routes) -> list[Route]:
        ...     return [Route(r"weather|rain|snow", ["weather.today", "weather.week"])]
    """


@spec(ChatCommands, Kind.COLLECT, on_failure=Failure.SKIP, deadline=10, items=ChatCommand)
def chat_commands(event: ChatCommands, ctx: PluginContext) -> list[ChatCommand] | None:
    """Add commands that users of a chat can type after a slash. Two of one name are both left out, and reported.

    Example:
        >>> from sideband.hooks import ChatCommand, ChatCommands, hookimpl
        >>> async def show(text: str, ctx) -> str:
        ...     return f"{ctx.usage.output} tokens written"
        >>> @hookimpl
        ... def chat_commands(event: ChatCommands) -> list[ChatCommand]:
        ...     return [ChatCommand("written", "how much the model wrote", show)]
    """


@spec(Redactors, Kind.COLLECT, on_failure=Failure.SKIP, deadline=10, items=Redactor)
def redactors(event: Redactors, ctx: PluginContext) -> list[Redactor] | None:
    """Add patterns of secrets, which are removed from everything that is written or returned.

    Example:
        >>> from sideband.hooks import Redactor, Redactors, hookimpl
        >>> @hookimpl
        ... def redactors(event: Redactors) -> list[Redactor]:
        ...     return [Redactor("forge-token", r"forge_[A-Za-z0-9]{36}")]
    """
