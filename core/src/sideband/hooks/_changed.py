"""The events that implementations change, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from attrs import field, frozen

from ._decision import Note
from ._event import Failure, Message, UpdateEvent
from ._frozen import freeze
from ._results import UNCHANGED, Continue, Handled, Patch, Transform

__all__ = [
    "AfterProviderResponse",
    "BeforeAgentStart",
    "BeforeProviderRequest",
    "Context",
    "Input",
    "ToolResult",
]


@frozen
class Input(UpdateEvent["Input | Handled"]):
    """A text was sent, by a user or in the name of one: change it, or answer it without an agent.

    The first ``Handled`` ends it.

    Attributes:
        text: the text.
        source: ``interactive``, ``api``, ``plugin``, ``schedule`` or ``agent``.

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

    def changed(self, answer: Continue | Transform | Handled, plugin: str) -> Input | Handled:
        """The new text, or the reply that ends it."""
        if isinstance(answer, Handled):
            return attrs.evolve(answer, plugin=plugin)
        return attrs.evolve(self, text=answer.text) if isinstance(answer, Transform) else self


@frozen
class BeforeAgentStart(UpdateEvent["BeforeAgentStart"]):
    r"""A run is about to start: change the system prompt, for this run only.

    What differs on every run empties the provider's cache.

    Attributes:
        prompt: the text of the user, after ``input``.
        system_prompt: the system prompt as it stands.

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

    def changed(self, answer: str, plugin: str) -> BeforeAgentStart:  # noqa: ARG002  the signature is the base's
        """With the new system prompt."""
        return attrs.evolve(self, system_prompt=answer)


@frozen
class Context(UpdateEvent["Context"]):
    """The model is going to see these messages: change them. What is stored does not change.

    Attributes:
        messages: oldest first.

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

    def changed(self, answer: Sequence[Message], plugin: str) -> Context:  # noqa: ARG002  the signature is the base's
        """With the new messages."""
        return attrs.evolve(self, messages=answer)


@frozen
class BeforeProviderRequest(UpdateEvent["BeforeProviderRequest"]):
    """A request is about to be sent to a provider of models. Return a changed copy of the event to change it.

    Attributes:
        model: the name of the model.
        messages: oldest first.
        options: everything else that is sent.

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
    """A provider of models has answered. Return a changed copy of the event to change the answer.

    Attributes:
        model: the name of the model.
        response: the answer.

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
class ToolResult(UpdateEvent["ToolResult"]):
    """A tool has ended: change what the model sees of its result.

    Each implementation sees what the ones before have left. If a guard fails, the content is withheld and no further
    implementation is asked; any other plugin that fails is skipped.

    Attributes:
        id: the id of the call.
        tool: the tool.
        arguments: what it was called with.
        content: what it answered.
        is_error: whether it failed.
        terminate: whether the run may end with this result.
        notes: what implementations want the model to know beside the content.
        withheld_by: the guard that failed, so that the content was taken away; ``None`` normally.

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
