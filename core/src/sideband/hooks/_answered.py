"""The events that implementations answer: the first answer counts, or all of them are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ._event import CollectEvent, FirstEvent, Message
from ._frozen import as_tuple, freeze
from ._results import Cancel, ChatCommand, Compact, Compacted, GiveUp, Park, Redactor, Retry, Route, Section

__all__ = [
    "ChatCommands",
    "Compaction",
    "Ephemeral",
    "ModelError",
    "Redactors",
    "Routes",
    "Sections",
]


@frozen
class Ephemeral(CollectEvent[Message]):
    """One model call is about to be made: add messages to this call only. They are never stored.

    Attributes:
        messages: what the model is going to see, oldest first.

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
    """A session is about to be compacted: do it in another way than the default one, or not now.

    The first answer counts.

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
    """A model call has failed: say what follows.

    The first answer counts; without one, the run fails. Only the model call is made again, from the last stored step:
    no tool runs twice.

    Attributes:
        run: the id of the run.
        model: ``provider:model``.
        error: the failure as data: ``code``, ``message``, ``hint``, and of a provider's also ``status``, ``body``,
            ``headers`` and ``cause``, as far as there are any.
        attempt: how many calls of this model have failed in a row, with this one: 1 for the first.
        elapsed: the seconds since the first of them began.
        compacted: whether the conversation was made shorter since.

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
    """A system prompt is being built: add parts to it.

    Attributes:
        channel: the channel that the prompt is cached for: ``cli``, ``server``.
        session: the id of the session.
        tools: the tools that the model may call, by the names that models see.
        skills: the skills among them, and those that consist of instructions only: each with ``name``, ``description``,
            ``location`` (the absolute path of its SKILL.md) and ``tools``.
        folder: the working directory.
        project: the nearest folder with a ``sideband.toml`` that is trusted as it is now; ``None`` if there is none.
            Nothing else of a project may be read.

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


@frozen
class Routes(CollectEvent[Route]):
    """The router is being built, from all tools of a session: suggest tools for requests that match a pattern.

    Attributes:
        tools: the names of the tools that may be suggested.

    Example:
        >>> from sideband.hooks import Route, Routes, hookimpl
        >>> @hookimpl
        ... def routes(event: Routes) -> list[Route]:
        ...     return [Route(r"weather|rain|snow", ["weather.today", "weather.week"])]
    """

    items = Route

    tools: tuple[str, ...] = field(default=(), converter=as_tuple)


@frozen
class ChatCommands(CollectEvent[ChatCommand]):
    """A chat begins: add commands that users can type after a slash.

    Two of one name are both left out, and reported.

    Attributes:
        channel: where the chat is: ``cli``, ``server``.

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
class Redactors(CollectEvent[Redactor]):
    """The redactor is being built: add patterns of secrets, which are removed from all that is written or returned.

    It runs in every effect: keep patterns few, and linear in the length of a text.

    Example:
        >>> from sideband.hooks import Redactor, Redactors, hookimpl
        >>> @hookimpl
        ... def redactors(event: Redactors) -> list[Redactor]:
        ...     return [Redactor("forge-token", r"forge_[A-Za-z0-9]{36}")]
    """

    items = Redactor
