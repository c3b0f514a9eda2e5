"""Events of the kind `update`, which implementations change one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from attrs import field, frozen

from ._decision import Note
from ._event import Failure, Message, UpdateEvent
from ._frozen import freeze
from ._results import UNCHANGED, Again, Continue, Handled, Patch, Transform

__all__ = [
    "AfterProviderResponse",
    "Answer",
    "BeforeAgentStart",
    "BeforeProviderRequest",
    "Context",
    "Input",
    "ToolCandidate",
    "ToolResult",
    "ToolSelection",
]


@frozen
class Input(UpdateEvent["Input | Handled"]):
    """Input has arrived, from a user or from a plugin. Transform the text, or reply without calling an agent.

    The first ``Handled`` ends the dispatch.

    Attributes:
        text: the text.
        source: the origin of the input: ``interactive``, ``api``, ``plugin``, ``schedule`` or ``agent``.
        typed: the text as it arrived. Commands and references are read from it: ``text`` may already contain what
            another plugin has put there, such as the text of a file or of a server.

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

    may_return = (Continue, Transform, Handled)

    text: str
    source: str = "interactive"
    typed: str = field(default=attrs.Factory(lambda self: self.text, takes_self=True), eq=False)

    def changed(self, answer: Continue | Transform | Handled, plugin: str) -> Input | Handled:
        """Return the event with the new text, or the reply that ends the dispatch."""
        if isinstance(answer, Handled):
            return attrs.evolve(answer, plugin=plugin)
        return attrs.evolve(self, text=answer.text) if isinstance(answer, Transform) else self


@frozen
class BeforeAgentStart(UpdateEvent["BeforeAgentStart"]):
    r"""A run is about to start. Return a new system prompt to replace it for this run only.

    A prompt that differs on every run defeats the provider's prompt cache.

    Attributes:
        prompt: the user's text, as changed by ``input``.
        system_prompt: the current system prompt.

    Example:
        >>> from sideband.hooks import BeforeAgentStart, hookimpl
        >>> @hookimpl
        ... async def before_agent_start(event: BeforeAgentStart) -> str | None:
        ...     if "invoice" not in event.prompt:
        ...         return None
        ...     return event.system_prompt + "\nAmounts are in euros."
    """

    may_return = (str,)

    prompt: str
    system_prompt: str

    def changed(self, answer: str, plugin: str) -> BeforeAgentStart:  # noqa: ARG002  overrides the base method
        """Return the event with the new system prompt."""
        return attrs.evolve(self, system_prompt=answer)


@frozen
class Context(UpdateEvent["Context"]):
    """Messages are about to be sent to the model. Return other messages to replace them; stored messages don't change.

    Attributes:
        messages: the messages, oldest first.

    Example:
        >>> from sideband.hooks import Context, hookimpl
        >>> @hookimpl
        ... def context(event: Context) -> list:
        ...     return [message for message in event.messages if message["role"] != "draft"]
        >>> context(Context([{"role": "draft"}, {"role": "user"}]))
        [{'role': 'user'}]
    """

    may_return = (list, tuple)

    messages: Sequence[Message] = field(converter=freeze)

    def changed(self, answer: Sequence[Message], plugin: str) -> Context:  # noqa: ARG002  overrides the base method
        """Return the event with the new messages."""
        return attrs.evolve(self, messages=answer)


@frozen
class ToolCandidate:
    """A tool that may be sent with a model request.

    Attributes:
        name: the name, as models see it.
        description: the description.
        source: the origin of the tool, such as ``plugin memory`` or ``source tickets``.
        tokens: the approximate number of tokens of its definition.
        category: a name for tools that are sent together; empty without one.
        allowed: whether the agent may call it. A child agent sees the tools of its parent, and may call some of them.
    """

    name: str
    description: str
    source: str
    tokens: int
    category: str = ""
    allowed: bool = True


def _as_tuple(candidates: Iterable[ToolCandidate]) -> tuple[ToolCandidate, ...]:
    """Return a tuple. Type checkers infer too little if ``tuple`` itself is used as a converter."""
    return tuple(candidates)


@frozen
class ToolSelection(UpdateEvent["ToolSelection"]):
    """A model request is about to be built. Return the names of the tools to send with it; by default, all are sent.

    Names that are not candidates are ignored. A call of a candidate that was not sent is not run: its answer asks the
    model to call ``tool_expand_tools`` if a tool of this name is sent; otherwise the called tool is sent with all
    further requests, whatever is returned. Provider caches are used only while the selection stays the same.

    Attributes:
        candidates: the tools that the agent may send, sorted by name.
        messages: the conversation, oldest message first.
        tokens: the number of tokens that the definitions of tools may take, so that the request fits the model.
        requested: the names of the tools that the model called although they were not sent; they are always sent.
        suggest_over: the number of tools besides ``always`` above which the user wants a selection.
        suggest_with: how the user wants the tools to be selected (``[tools] suggest_with``).
        always: the names of the candidates that the user wants to be sent always (``[tools] always``).
        selected: the names that are selected so far, in the order of the candidates.

    Example:
        >>> from sideband.hooks import ToolCandidate, ToolSelection, hookimpl
        >>> @hookimpl
        ... def tool_selection(event: ToolSelection) -> list[str]:
        ...     return [one.name for one in event.candidates if not one.source.startswith("source ")]
        >>> found = ToolCandidate("tickets__find", "Find tickets.", "source tickets", tokens=40)
        >>> tool_selection(ToolSelection([found], messages=[], tokens=1_000))
        []
    """

    may_return = (list, tuple)
    items = str

    candidates: tuple[ToolCandidate, ...] = field(converter=_as_tuple)
    messages: Sequence[Message] = field(converter=freeze)
    tokens: int
    requested: tuple[str, ...] = ()
    suggest_over: int = 15
    suggest_with: str = "bm25"
    always: tuple[str, ...] = ()
    selected: tuple[str, ...] = field()

    @selected.default
    def _all(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.candidates)

    def changed(self, answer: Sequence[str], plugin: str) -> ToolSelection:  # noqa: ARG002  overrides the base method
        """Return the event with the candidates that were named, and those that the model requested."""
        named = {*answer, *self.requested}
        return attrs.evolve(self, selected=tuple(one.name for one in self.candidates if one.name in named))


@frozen
class BeforeProviderRequest(UpdateEvent["BeforeProviderRequest"]):
    """A request is about to be sent to a model provider. Return a modified copy of the event to change it.

    Attributes:
        model: the name of the model.
        messages: the messages, oldest first.
        options: all other fields of the request.

    Example:
        >>> import attrs
        >>> from sideband.hooks import BeforeProviderRequest, hookimpl
        >>> @hookimpl
        ... def before_provider_request(event: BeforeProviderRequest) -> BeforeProviderRequest:
        ...     return attrs.evolve(event, options={**event.options, "temperature": 0})
        >>> before_provider_request(BeforeProviderRequest("m", [])).options
        {'temperature': 0}
    """

    model: str
    messages: Sequence[Message] = field(converter=freeze)
    options: Mapping[str, Any] = field(factory=dict, converter=freeze)


@frozen
class AfterProviderResponse(UpdateEvent["AfterProviderResponse"]):
    """A model provider has responded. Return a modified copy of the event to change the response.

    Attributes:
        model: the name of the model.
        response: the response.

    Example:
        >>> import attrs
        >>> from sideband.hooks import AfterProviderResponse, hookimpl
        >>> @hookimpl
        ... def after_provider_response(event: AfterProviderResponse) -> AfterProviderResponse:
        ...     kept = {key: value for key, value in event.response.items() if key != "logprobs"}
        ...     return attrs.evolve(event, response=kept)
    """

    model: str
    response: Mapping[str, Any] = field(converter=freeze)


@frozen
class Answer(UpdateEvent["Answer"]):
    """The last message of a run is about to be stored. Return another text for it, or request one more round.

    The message is a model's, without tool calls. Each implementation sees the changes of the previous ones. Updates of
    the message are emitted after this hook, so that no user sees a text that is then replaced. If one more round is
    requested and ``[agent] rounds``, ``turns`` and the budget permit it, the message is stored as a draft, followed by
    the instructions, and the model is called again.

    Attributes:
        run: the id of the run.
        text: the text of the message.
        source: the origin of the run's input, as in ``Input``; ``agent`` for the task of a child agent.
        messages: the messages of the run before this one, oldest first.
        rounds: the number of further rounds that may be requested in this run.
        changed_by: the plugins that changed the text.
        instructions: the instructions of the plugins that requested one more round.

    Example:
        >>> from sideband.hooks import Again, Answer, hookimpl
        >>> @hookimpl
        ... def answer(event: Answer) -> Again | str | None:
        ...     if "TODO" in event.text:
        ...         return Again("Replace each TODO by what it stands for.")
        ...     return event.text.replace("--", "–")
        >>> answer(Answer("r1", "Done -- all of it."))
        'Done – all of it.'
    """

    may_return = (str, Again)

    run: str
    text: str
    source: str = "interactive"
    messages: Sequence[Message] = field(default=(), converter=freeze)
    rounds: int = 0
    changed_by: tuple[str, ...] = ()
    instructions: tuple[Note, ...] = ()

    def changed(self, answer: Again | str, plugin: str) -> Answer:
        """Return the event with the new text, or with one more instruction."""
        if isinstance(answer, Again):
            return attrs.evolve(self, instructions=(*self.instructions, Note(plugin, answer.instruction)))
        if not answer.strip():
            raise ValueError("the text of an answer must not be empty")
        return self if answer == self.text else attrs.evolve(self, text=answer, changed_by=(*self.changed_by, plugin))


@frozen
class ToolResult(UpdateEvent["ToolResult"]):
    """A tool call has ended. Change the result before the model sees it.

    Each implementation sees the changes of the previous ones. If a guard fails, the content is withheld and no further
    implementation is called; any other plugin that fails is skipped.

    Attributes:
        id: the id of the call.
        tool: the name of the tool.
        arguments: the arguments of the call.
        content: the result.
        is_error: whether the call failed.
        terminate: whether the run may end with this result.
        notes: notes that implementations attached for the model.
        withheld_by: the guard whose failure caused the content to be withheld; otherwise ``None``.

    Example:
        >>> from sideband.hooks import Patch, ToolResult, hookimpl
        >>> @hookimpl
        ... def tool_result(event: ToolResult) -> Patch | None:
        ...     if isinstance(event.content, str) and len(event.content) > 4000:
        ...         return Patch(content=event.content[:4000], note="cut after 4,000 characters")
        ...     return None
    """

    may_return = (Patch,)
    on_failure = Failure.WITHHOLD_IF_GUARD
    deadline = 30

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(converter=freeze)
    content: Any = field(converter=freeze)
    is_error: bool = False
    terminate: bool = False
    notes: tuple[Note, ...] = ()
    withheld_by: str | None = None

    def changed(self, answer: Patch, plugin: str) -> ToolResult:
        """Return the event with the fields that the patch sets; other fields are unchanged."""
        return attrs.evolve(
            self,
            content=self.content if answer.content is UNCHANGED else answer.content,
            is_error=self.is_error if answer.is_error is None else answer.is_error,
            terminate=self.terminate if answer.terminate is None else answer.terminate,
            notes=(*self.notes, Note(plugin, answer.note)) if answer.note else self.notes,
        )

    def withheld(self, plugin: str, package: str = "") -> ToolResult:
        """Return the event without its content, because a guard failed to check it. The tool has already run."""
        guard = f"`{plugin}` ({package})" if package else f"`{plugin}`"
        return attrs.evolve(
            self,
            content=f"The result of {self.tool} is withheld: the guard {guard} failed to check it. The tool itself has "
            f"run; do not repeat it. To continue without this guard, add `{plugin}` to `[policy.deny]`.",
            is_error=True,
            notes=(),
            withheld_by=plugin,
        )
