"""The scope of an ``llm`` capability."""

from __future__ import annotations

from typing import ClassVar

import attrs
from sideband.messages import ImageUrlPart, UserMessage
from sideband.ops import OpDenied, Scope
from sideband.providers import ModelRequest

from ._models import GenerateParams

# Options that only tune the answer. Others may name a model, messages, addresses or tools of the service.
_TUNING = frozenset(
    {"frequency_penalty", "logit_bias", "logprobs", "min_p", "presence_penalty", "reasoning_effort"}
    | {"repetition_penalty", "seed", "top_k", "top_logprobs", "top_p", "verbosity"}
)


@attrs.frozen
class LlmScope(Scope, family="llm"):
    """The fields of an ``llm`` capability.

    Args:
        model: ``provider:model``, or an alias from the configuration, whatever model it refers to.
        tool: a tool that the model may call with `llm.agent`, as ``skill.tool``.
        money: what the model calls of one call of a skill may cost, in US dollars.
        tokens: the input and output tokens that they may use.
    """

    amounts: ClassVar[tuple[str, ...]] = ("money", "tokens")
    known_later: ClassVar[tuple[str, ...]] = ("model", "money", "tokens", "tool")

    model: str | None = None
    tool: str | None = None
    money: str | None = None
    tokens: str | None = None


def scope_of(params: GenerateParams) -> LlmScope:
    """Return the scope that a model call needs: the model as requested."""
    return LlmScope(model=params.model)


def check_skill(op: str, request: ModelRequest) -> None:
    """Check that a request of a skill reaches nothing but the model that the skill was granted.

    Raises:
        OpDenied: if it has an image by address, which the provider would get for the skill, wherever it is, or options
            beyond those that tune the answer.
    """
    messages = (one for one in request.messages if isinstance(one, UserMessage))
    if any(isinstance(part, ImageUrlPart) for message in messages for part in message.content):
        reason = "a skill cannot send the provider to an address"
        raise OpDenied(op, reason, hint="get the image with `http`, and pass its content as base64")
    if others := sorted(request.options.keys() - _TUNING):
        reason = f"a skill cannot set the option `{others[0]}`"
        raise OpDenied(op, reason, hint=f"a skill can set {', '.join(sorted(_TUNING))}")
