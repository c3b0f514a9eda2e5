"""Model calls for summaries: retried after temporary failures, and with a shorter record if it was too long."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import uniform

import anyio
from attrs import frozen
from sideband.messages import AssistantMessage, parse_message
from sideband.ops import OpError
from sideband.plugins import PluginContext
from sideband.providers import ProviderError, ProviderTimeout, ProviderUnreachable, StreamBroken

from ._errors import SummaryUnusable
from ._record import newest_half
from ._summary_prompts import SYSTEM

_PAUSES = (0.5, 2.0, 8.0)
_LONGEST_PAUSE = 30.0
_HALVINGS = 6
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size|limit)|too (long|large|many tokens)|token limit|maximum.{0,20}tokens"
    r"|max_model_len|n_ctx|reduce the length|exceed.{0,40}tokens",
    re.IGNORECASE,
)


@frozen
class Writer:
    """A writer of summaries.

    Args:
        ctx: dispatches the model calls.
        model: ``provider:model``.
        max_tokens: the maximum length of a summary.
    """

    ctx: PluginContext
    model: str
    max_tokens: int

    async def write(self, record: str, prompt: Callable[[str], str]) -> str:
        """Return the summary of a record.

        A record that is too long for the model is halved up to six times; the older half is dropped.

        Args:
            record: the messages, quoted.
            prompt: builds the prompt from a record.

        Raises:
            OpError: if the model call fails.
            SummaryUnusable: if the model wrote no summary.
        """
        for _ in range(_HALVINGS):
            try:
                return self._summary(await self._ask(prompt(record)))
            except OpError as error:
                if not _is_too_long(error):
                    raise
            record = newest_half(record)
        return self._summary(await self._ask(prompt(record)))

    async def _ask(self, prompt: str) -> AssistantMessage:
        for pause in _PAUSES:
            try:
                return await self._generate(prompt)
            except ProviderError as error:
                wait = max(pause * uniform(0.5, 1), _retry_after(error))  # noqa: S311  jitter needs no secure random numbers
                if wait > _LONGEST_PAUSE or not _is_temporary(error):
                    raise
            await anyio.sleep(wait)
        return await self._generate(prompt)

    async def _generate(self, prompt: str) -> AssistantMessage:
        params = {
            "model": self.model,
            "system": SYSTEM,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self.max_tokens,
        }
        answer = parse_message(await self.ctx.dispatch("llm.generate", params, capabilities=["llm"]))
        if not isinstance(answer, AssistantMessage):
            raise SummaryUnusable(self.model, "not an answer of a model")
        return answer

    def _summary(self, answer: AssistantMessage) -> str:
        text = answer.text.strip()
        if answer.stop not in ("end", "length"):
            raise SummaryUnusable(self.model, f"the answer ended with `{answer.stop}`")
        if not text:
            raise SummaryUnusable(self.model, "the summary is empty")
        return text


def _is_too_long(error: OpError) -> bool:
    status, body = getattr(error, "status", None), getattr(error, "body", "")
    return status == 413 or (status != 429 and bool(_TOO_LONG.search(f"{error.message} {body}")))


def _is_temporary(error: ProviderError) -> bool:
    if _is_too_long(error):
        return False
    lost = isinstance(error, ProviderTimeout | ProviderUnreachable | StreamBroken)
    return lost or error.retryable or error.status in _TEMPORARY


def _retry_after(error: ProviderError) -> float:
    try:
        return float(error.headers.get("retry-after", 0))
    except ValueError:  # a date: the provider's clock may differ
        return 0.0
