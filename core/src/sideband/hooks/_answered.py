"""Events of the kinds `first` and `collect`: the first answer wins, or all answers are collected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from ..ops import Origin
from ._event import CollectEvent, FirstEvent, Message
from ._frozen import as_tuple, freeze
from ._results import (
    Cancel,
    ChatCommand,
    ClientServer,
    Compact,
    Compacted,
    GiveUp,
    Park,
    Redactor,
    Resources,
    Retry,
    Route,
    Section,
)

if TYPE_CHECKING:
    from ..tools import ToolSource

__all__ = [
    "ChatCommands",
    "ClientServers",
    "Compaction",
    "Ephemeral",
    "ModelError",
    "Redactors",
    "ResourcesDiscover",
    "Routes",
    "Sections",
    "StatusLine",
    "TraceParent",
]

_TRACE_PARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]\Z")


@frozen
class Ephemeral(CollectEvent[Message]):
    """A model call is about to be made. Add messages to this call only; they are never stored.

    Attributes:
        messages: the messages that will be sent to the model, oldest first.

    Example:
        >>> from sideband.hooks import Ephemeral, hookimpl
        >>> @hookimpl
        ... def ephemeral(event: Ephemeral) -> list[dict]:
        ...     return [{"role": "user", "content": "The build is red."}]
    """

    items = dict

    messages: Sequence[Message] = field(converter=freeze)


@frozen
class Compaction(FirstEvent[Cancel | Compacted]):
    """A session is about to be compacted. Provide the summary, or cancel the compaction.

    The first answer wins; without one, the default strategy runs.

    Attributes:
        session: the id of the session.
        first_kept: the id of the first entry that will be kept.
        messages: the messages to summarize, oldest first.
        previous_summary: the summary of the previous compaction, if any.
        tokens_before: the estimated size of the current context.
        instructions: the user's instructions for the summary; may be empty.
        turn_prefix: if the cut splits a run, the messages of that run before the cut.
        read_files: the files read so far, including those of previous compactions.
        modified_files: the files modified so far, including those of previous compactions.

    Example:
        >>> from sideband.hooks import Compacted, Compaction, hookimpl
        >>> @hookimpl
        ... async def compaction(event: Compaction) -> Compacted | None:
        ...     if len(event.messages) > 2:
        ...         return None
        ...     return Compacted(" / ".join(str(message["content"]) for message in event.messages))
    """

    may_return = (Cancel, Compacted)
    deadline = 300

    session: str
    first_kept: str
    messages: Sequence[Message] = field(converter=freeze)
    previous_summary: str | None = None
    tokens_before: int = 0
    instructions: str = ""
    turn_prefix: Sequence[Message] = field(default=(), converter=freeze)
    read_files: tuple[str, ...] = field(default=(), converter=as_tuple)
    modified_files: tuple[str, ...] = field(default=(), converter=as_tuple)


@frozen
class ModelError(FirstEvent[Retry | Compact | Park | GiveUp]):
    """A model call has failed. Decide how the run recovers.

    The first answer wins; without one, the run fails. Only the model call is repeated, from the last stored step; no
    tool runs twice.

    Attributes:
        run: the id of the run.
        model: ``provider:model``.
        error: the failure as data: ``code``, ``message`` and ``hint``; for a provider's error also ``status``,
            ``body``, ``headers`` and ``cause``, if present.
        attempt: the number of consecutive failed calls of this model, including this one; 1 for the first.
        elapsed: the seconds since the first of these calls began.
        compacted: whether the conversation has been compacted since then.

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

    may_return = (Retry, Compact, Park, GiveUp)

    run: str
    model: str
    error: Mapping[str, Any] = field(converter=freeze)
    attempt: int = 1
    elapsed: float = 0.0
    compacted: bool = False


@frozen
class Sections(CollectEvent[Section]):
    """A system prompt is being built. Add sections to it.

    Attributes:
        channel: the channel that the prompt is cached for, such as ``cli`` or ``server``.
        session: the id of the session.
        tools: the names of the tools that the model may call, as the model sees them.
        skills: the skills that provide these tools, and skills that contain only instructions: each with ``name``,
            ``description``, ``location`` (the absolute path of its SKILL.md) and ``tools``.
        folder: the working directory.
        project: the nearest parent folder whose ``sideband.toml`` is trusted with its current content, or that was
            trusted without one, or ``None``.
            Files of an untrusted project must not be read.
        text: the first input of the session, without secrets. A prompt is built once for a session, so a section that
            depends on it stays the same.

    Example:
        >>> from sideband.hooks import Section, Sections, hookimpl
        >>> @hookimpl
        ... def sections(event: Sections) -> list[Section]:
        ...     return [Section("house-style", "Answer in the language of the question.")]
    """

    items = Section

    channel: str = "cli"
    session: str = ""
    tools: tuple[str, ...] = field(default=(), converter=as_tuple)
    skills: Sequence[Mapping[str, Any]] = field(default=(), converter=freeze)
    folder: Path | None = None
    project: Path | None = None
    text: str = ""


@frozen
class Routes(CollectEvent[Route]):
    r"""Input has arrived that a model would answer. Add routes, which may answer it instead.

    Routes are tried by their ``order``, then in the order of the plugins, then by name. The first one that matches and
    whose handler replies ends the run. If a handler declines or fails, the next route is tried, and then the model.
    Tasks of child agents and inputs from plugins are not routed.

    Attributes:
        run: the id of the run.
        text: the text of the input, as changed by ``input`` and without secrets.
        source: the origin of the input: ``interactive``, ``api`` or ``schedule``.
        channel: the channel of the agent, such as ``cli`` or ``server``.

    Example:
        >>> from sideband.hooks import Route, Routes, hookimpl
        >>> def greet(request, ctx) -> str:
        ...     return f"Hello, {request.match['name']}!"
        >>> @hookimpl
        ... def routes(event: Routes) -> list[Route]:
        ...     return [Route("greeting", r"^I am (?P<name>\w+)$", greet)]
    """

    items = Route

    run: str
    text: str
    source: str = "interactive"
    channel: str = "cli"

    def collected(self, answer: Sequence[Route]) -> Sequence[Route]:
        """Return the routes of a plugin, unless two of them have the same name."""
        by_name: dict[str, Route] = {}
        for one in answer:
            if (other := by_name.setdefault(one.name, one)) is not one:
                raise ValueError(f"two routes are named `{one.name}`: {other!r} and {one!r}")
        return answer


@frozen
class ChatCommands(CollectEvent[ChatCommand]):
    """A chat begins. Add commands that users can type after a slash.

    If two commands have the same name, both are omitted and reported.

    Attributes:
        channel: the channel of the chat, such as ``cli`` or ``server``.

    Example:
        >>> from sideband.hooks import ChatCommand, ChatCommands, hookimpl
        >>> async def show(text: str, ctx) -> str:
        ...     return f"{ctx.usage.output} tokens written"
        >>> @hookimpl
        ... def chat_commands(event: ChatCommands) -> list[ChatCommand]:
        ...     return [ChatCommand("written", "how much the model wrote", show)]
    """

    items = ChatCommand

    channel: str = "cli"


@frozen
class StatusLine(CollectEvent[str]):
    """A chat shows its status: when it begins, and after each turn, run and chat command. Add short texts to it.

    Each is shown on one line, without what moves or hides text, and cut if it is long.

    Attributes:
        channel: the channel of the chat, such as ``cli``.

    Example:
        >>> from platform import node
        >>> from sideband.hooks import StatusLine, hookimpl
        >>> @hookimpl
        ... def status_line(event: StatusLine) -> list[str]:
        ...     return [f"on {node()}"]
    """

    items = str

    channel: str = "cli"


@frozen
class ClientServers(CollectEvent["ToolSource"]):
    """A client passes servers of tools for the session of an agent, and its user has accepted them.

    Return a source of tools for each one that can be used. The agent offers them, with the rights of the plugin.

    Attributes:
        servers: the servers.

    Example:
        >>> from sideband.hooks import ClientServers, hookimpl
        >>> from sideband.tools import ToolSource
        >>> SOURCES: dict[str, ToolSource] = {}
        >>> @hookimpl
        ... def client_servers(event: ClientServers) -> list[ToolSource]:
        ...     return [SOURCES[one.name] for one in event.servers if one.name in SOURCES]
    """

    items = object

    servers: Sequence[ClientServer] = field(converter=freeze)

    def collected(self, answer: Sequence[ToolSource]) -> Sequence[ToolSource]:
        """Return the sources.

        Raises:
            ValueError: if one is not a source of tools.
        """
        from ..tools import is_tool_source  # noqa: PLC0415  it imports this package

        if wrong := next((one for one in answer if not is_tool_source(one)), None):
            raise ValueError(f"expected sources of tools, got a {type(wrong).__name__}")
        return answer


@frozen
class Redactors(CollectEvent[Redactor]):
    """The redactor is being built. Add patterns of secrets to remove from everything that is written or returned.

    Every pattern is applied in every effect: add few, and only patterns that match in linear time.

    Example:
        >>> from sideband.hooks import Redactor, Redactors, hookimpl
        >>> @hookimpl
        ... def redactors(event: Redactors) -> list[Redactor]:
        ...     return [Redactor("forge-token", r"forge_[A-Za-z0-9]{36}")]
    """

    items = Redactor


@frozen
class ResourcesDiscover(CollectEvent[Resources]):
    """The host is about to search for skills. Add folders to search after those of the user and installed packages.

    A skill in them takes the name of no skill that was found before. Its origin is ``plugin NAME``.

    Attributes:
        folder: the working directory.
        reason: ``startup`` for the first search of the host, ``reload`` for each later one.

    Example:
        >>> from pathlib import Path
        >>> from sideband.hooks import Resources, ResourcesDiscover, hookimpl
        >>> FOLDER = Path("/srv/books")
        >>> @hookimpl
        ... def resources_discover(event: ResourcesDiscover) -> Resources:
        ...     return Resources(skill_folders=[FOLDER / "skills"])
    """

    may_return = (Resources,)

    folder: Path
    reason: Literal["startup", "reload"] = "startup"

    def collected(self, answer: Any) -> Sequence[Resources]:
        """Return the answer, which is one object instead of a list."""
        return (answer,)


@frozen
class TraceParent(CollectEvent[str]):
    """A running effect may pass its trace context on, as its grant allows. Answer with a ``traceparent``.

    It is what the header ``traceparent`` of W3C Trace Context contains. The first answer is used.

    Attributes:
        effect: the id of the effect.
        op: the name of the op.
        origin: the caller.
        call: the id of the call that it belongs to.
        within: the id of the effect that caused it, or ``None``.

    Example:
        >>> from sideband.hooks import TraceParent, hookimpl
        >>> @hookimpl
        ... def trace_parent(event: TraceParent) -> list[str]:
        ...     return [f"00-{'1' * 32}-{event.effect[:16]}-01"]
    """

    items = str

    effect: str
    op: str
    origin: Origin
    call: str = ""
    within: str | None = None

    def collected(self, answer: Sequence[str]) -> Sequence[str]:
        """Return the answers if they are trace contexts of version 00."""
        for one in answer:
            if not _TRACE_PARENT.match(one):
                raise ValueError(f"expected a `traceparent` such as `00-4bf9…-00f0…-01`, got {one[:80]!a}")
        return answer
