"""The events whose outcome matters: implementations decide on them, change them, or answer them.

An event is named after its hook (``ToolCall`` for ``tool_call``), is frozen, and its payload can't be changed in
place. Messages, requests and responses are plain data, as they are stored.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import attrs
from attrs import field, frozen

from ..ops import Level, Origin
from ._decision import Note
from ._frozen import as_tuple, freeze
from ._results import (
    UNCHANGED,
    Cancel,
    ChatCommand,
    Compact,
    Compacted,
    Continue,
    GiveUp,
    Handled,
    Park,
    Patch,
    Redactor,
    Retry,
    Route,
    Section,
    Transform,
)

__all__ = [
    "AfterProviderResponse",
    "BeforeAgentStart",
    "BeforeProviderRequest",
    "ChatCommands",
    "CollectEvent",
    "Compaction",
    "Context",
    "DecideEvent",
    "Ephemeral",
    "Event",
    "FirstEvent",
    "Input",
    "Message",
    "ModelError",
    "ObserveEvent",
    "OpCall",
    "Redactors",
    "Routes",
    "Sections",
    "SessionBeforeFork",
    "SessionBeforeSwitch",
    "ToolCall",
    "ToolResult",
    "UpdateEvent",
]

Message = Mapping[str, Any]
R = TypeVar("R")

_INNER_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class Event:
    """The base of all events.

    Attributes:
        hook: the name of the hook, made from the name of the class.
    """

    __slots__ = ()
    hook: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.hook = _INNER_CAPITAL.sub("_", cls.__name__).lower()


class UpdateEvent(Event, Generic[R]):
    """An event that implementations change one after the other. ``R`` is what comes out in the end."""

    __slots__ = ()

    def changed(self, answer: Any, plugin: str) -> Any:
        """The event as the next implementation sees it; anything else ends the dispatch and is its outcome.

        Args:
            answer: what an implementation returned, of a type that the spec allows.
            plugin: who returned it.
        """
        raise NotImplementedError


class DecideEvent(Event):
    """An event that is about to happen, and may be denied.

    Attributes:
        replaceable: the name of the field that ``Replace`` changes; empty if there is none.
    """

    __slots__ = ()
    replaceable: ClassVar[str] = ""

    @property
    def final_arguments(self) -> Mapping[str, Any] | None:
        """What ``Replace`` changes, or ``None``."""
        return getattr(self, self.replaceable) if self.replaceable else None

    def with_arguments(self, arguments: Mapping[str, Any]) -> Self:
        """The same event with other arguments."""
        return attrs.evolve(self, **{self.replaceable: arguments})  # type: ignore[misc]  # every subclass is an attrs class


class CollectEvent(Event, Generic[R]):
    """An event that every implementation may answer with a list of ``R``."""

    __slots__ = ()


class FirstEvent(Event, Generic[R]):
    """An event that the first implementation with an answer, an ``R``, answers for all."""

    __slots__ = ()


class ObserveEvent(Event):
    """An event that has happened. Nothing that an implementation does can change it."""

    __slots__ = ()


@frozen
class Input(UpdateEvent["Input | Handled"]):
    """A user, or whoever stands for one, sent a text.

    Attributes:
        text: the text.
        source: ``interactive``, ``api``, ``plugin``, ``schedule`` or ``agent``.
    """

    text: str
    source: str = "interactive"

    def changed(self, answer: Continue | Transform | Handled, plugin: str) -> Input | Handled:
        """The new text, or the reply that ends it."""
        if isinstance(answer, Handled):
            return attrs.evolve(answer, plugin=plugin)
        return attrs.evolve(self, text=answer.text) if isinstance(answer, Transform) else self


@frozen
class BeforeAgentStart(UpdateEvent["BeforeAgentStart"]):
    """A run is about to start; its system prompt can still be changed, for this run only.

    Attributes:
        prompt: the text of the user, after ``input``.
        system_prompt: the system prompt as it stands.
    """

    prompt: str
    system_prompt: str

    def changed(self, answer: str, plugin: str) -> BeforeAgentStart:  # noqa: ARG002  the signature is the base's
        """With the new system prompt."""
        return attrs.evolve(self, system_prompt=answer)


@frozen
class Context(UpdateEvent["Context"]):
    """The messages that the model is going to see. A snapshot: what is stored does not change.

    Attributes:
        messages: oldest first.
    """

    messages: Sequence[Message] = field(converter=freeze)

    def changed(self, answer: Sequence[Message], plugin: str) -> Context:  # noqa: ARG002  the signature is the base's
        """With the new messages."""
        return attrs.evolve(self, messages=answer)


@frozen
class Ephemeral(CollectEvent[Message]):
    """One model call is about to be made. What is collected is added to this call only, and never stored.

    Attributes:
        messages: what the model is going to see, oldest first.
    """

    messages: Sequence[Message] = field(converter=freeze)


@frozen
class BeforeProviderRequest(UpdateEvent["BeforeProviderRequest"]):
    """A request is about to be sent to a provider of models. Return a changed copy of the event to change it.

    Attributes:
        model: the name of the model.
        messages: oldest first.
        options: everything else that is sent.
    """

    model: str
    messages: Sequence[Message] = field(converter=freeze)
    options: Mapping[str, Any] = field(factory=dict, converter=freeze)

    def changed(self, answer: BeforeProviderRequest, plugin: str) -> BeforeProviderRequest:  # noqa: ARG002  as above
        """The new request."""
        return answer


@frozen
class AfterProviderResponse(UpdateEvent["AfterProviderResponse"]):
    """A provider has answered. Return a changed copy of the event to change the answer.

    Attributes:
        model: the name of the model.
        response: the answer.
    """

    model: str
    response: Mapping[str, Any] = field(converter=freeze)

    def changed(self, answer: AfterProviderResponse, plugin: str) -> AfterProviderResponse:  # noqa: ARG002  as above
        """The new response."""
        return answer


@frozen
class ToolCall(DecideEvent):
    """A model asks for a tool. Its arguments have been validated.

    Attributes:
        id: the id of the call.
        tool: the tool, ``github.stars``.
        arguments: by name.
        level: the highest level that the tool's grant reaches.
        read_only: whether the tool says that it changes nothing.
    """

    replaceable: ClassVar[str] = "arguments"

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(converter=freeze)
    level: Level = Level.MONITORED
    read_only: bool = False


@frozen
class OpCall(DecideEvent):
    """An effect is about to happen: its parameters are valid and the grant of the call covers it.

    Attributes:
        effect: the id of the effect in the ledger.
        op: the op, ``http.get``.
        params: the validated parameters, by name.
        level: how much the op can do to the world.
        origin: who caused it, as the host knows it.
        grant: the capabilities of the call, as text.
        idempotent: whether doing it twice is the same as once.
        key: the idempotency key, if there is one.
        preview: tells what would happen with given parameters, without doing it; ``None`` if the op can't.
        previewed: what would happen, once a person is asked about it.
    """

    replaceable: ClassVar[str] = "params"

    effect: str
    op: str
    params: Mapping[str, Any] = field(converter=freeze)
    level: Level
    origin: Origin
    grant: tuple[str, ...] = field(default=(), converter=as_tuple)
    idempotent: bool = False
    key: str | None = None
    preview: Callable[[Mapping[str, Any]], Awaitable[str]] | None = field(default=None, repr=False, eq=False)
    previewed: str | None = None


@frozen
class ToolResult(UpdateEvent["ToolResult"]):
    """A tool has ended, and the model is going to see its result.

    Attributes:
        id: the id of the call.
        tool: the tool.
        arguments: what it was called with.
        content: what it answered.
        is_error: whether it failed.
        terminate: whether the run may end with this result.
        notes: what implementations want the model to know beside the content.
        withheld_by: the guard that failed, so that the content was taken away; ``None`` normally.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(converter=freeze)
    content: Any = field(converter=freeze)
    is_error: bool = False
    terminate: bool = False
    notes: tuple[Note, ...] = ()
    withheld_by: str | None = None

    def changed(self, answer: Patch, plugin: str) -> ToolResult:
        """With the fields that the patch has; the others as they are."""
        return attrs.evolve(
            self,
            content=self.content if answer.content is UNCHANGED else answer.content,
            is_error=self.is_error if answer.is_error is None else answer.is_error,
            terminate=self.terminate if answer.terminate is None else answer.terminate,
            notes=(*self.notes, Note(plugin, answer.note)) if answer.note else self.notes,
        )

    def withheld(self, plugin: str) -> ToolResult:
        """Without the content, which a guard that failed could not check. What the tool did has happened."""
        return attrs.evolve(
            self,
            content=f"The result of {self.tool} is withheld: the guard `{plugin}` failed to check it. The tool itself "
            f"has run; do not repeat it. To go on without this guard, name `{plugin}` under `[policy] deny`.",
            is_error=True,
            notes=(),
            withheld_by=plugin,
        )


@frozen
class Compaction(FirstEvent[Cancel | Compacted]):
    """The session is about to be compacted.

    Attributes:
        session: the id of the session.
        first_kept: the id of the first entry that will be kept.
        messages: what is to be summarised, oldest first.
        previous_summary: the summary of the compaction before, if there was one.
        tokens_before: the size of the context now, estimated.
        instructions: what the user asked the summary to keep; empty for nothing.
        turn_prefix: the beginning of the run that is cut in two, if one is: what is kept begins in its middle.
        read_files: what was read up to here, in this compaction and those before.
        modified_files: what was changed, likewise.
    """

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
    """A model call has failed, and somebody must say what follows.

    Attributes:
        run: the id of the run.
        model: ``provider:model``.
        error: the failure as data: ``code``, ``message``, ``hint``, and of a provider's also ``status``, ``body``,
            ``headers`` and ``cause``, as far as there are any.
        attempt: how many calls of this model have failed in a row, with this one: 1 for the first.
        elapsed: the seconds since the first of them began.
        compacted: whether the conversation was made shorter since.
    """

    run: str
    model: str
    error: Mapping[str, Any] = field(converter=freeze)
    attempt: int = 1
    elapsed: float = 0.0
    compacted: bool = False


@frozen
class SessionBeforeSwitch(DecideEvent):
    """Another session is about to become the current one.

    Attributes:
        reason: ``new`` or ``resume``.
        target: the id of the other session, ``None`` for a new one.
    """

    reason: str
    target: str | None = None


@frozen
class SessionBeforeFork(DecideEvent):
    """A session is about to be forked.

    Attributes:
        session: the id of the session.
        entry: the id of the entry where it forks.
        position: ``before`` the entry, or ``at`` it.
    """

    session: str
    entry: str
    position: str = "at"


@frozen
class Sections(CollectEvent[Section]):
    """A system prompt is being built.

    Attributes:
        channel: the channel that the prompt is cached for: ``cli``, ``server``.
        session: the id of the session.
        tools: the tools that the model may call, by the names that models see.
        skills: the skills among them, and those that consist of instructions only: each with ``name``, ``description``,
            ``location`` (the absolute path of its SKILL.md) and ``tools``.
        folder: the working directory.
        project: the nearest folder with a ``sideband.toml`` that is trusted as it is now; ``None`` if there is none.
            Nothing else of a project may be read.
    """

    channel: str = "cli"
    session: str = ""
    tools: tuple[str, ...] = field(default=(), converter=as_tuple)
    skills: Sequence[Mapping[str, Any]] = field(default=(), converter=freeze)
    folder: Path | None = None
    project: Path | None = None


@frozen
class Routes(CollectEvent[Route]):
    """The router is being built, from all tools of a session.

    Attributes:
        tools: the names of the tools that may be suggested.
    """

    tools: tuple[str, ...] = field(default=(), converter=as_tuple)


@frozen
class ChatCommands(CollectEvent[ChatCommand]):
    """A chat begins, and lists what can be asked for with a slash.

    Attributes:
        channel: where the chat is: ``cli``, ``server``.
    """

    channel: str = "cli"


@frozen
class Redactors(CollectEvent[Redactor]):
    """The redactor is being built. It runs in every effect: keep patterns few, and linear in the length of a text."""
