"""Rank tools by embeddings: the vectors of their descriptions are compared with that of the last inputs."""

from __future__ import annotations

import hashlib
import logging
import math
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from operator import mul
from typing import TypeAlias

import anyio
from anyio import to_thread
from attrs import define, field
from sideband.contexts import AgentContext
from sideband.hooks import ToolSelection
from sideband.ops import OpError

from ._expand_tool import EXPAND

_SECONDS = 8.0
_BATCH = 100  # so that an answer stays small, and a large catalog continues with the next input
_LONGEST = 2_000
_VECTORS = 4_096
_log = logging.getLogger("sideband.tool_selection")
_Vector: TypeAlias = "array[float]"


@define
class EmbeddingRanker:
    """Ranks tools by embeddings. Keeps the vectors of descriptions by the digest of model and text, 4,096 at most."""

    _vectors: OrderedDict[bytes, _Vector] = field(factory=OrderedDict, init=False)

    async def rank(self, event: ToolSelection, text: str, model: str | None, ctx: AgentContext) -> Sequence[str]:
        """Return the names of the tools, the most similar first; none if it fails, or takes more than 8 seconds.

        Args:
            event: the tools.
            text: the last inputs of the user.
            model: ``provider:model``.
            ctx: dispatches the model calls.
        """
        if model is None:
            _log.warning("`[plugins.tool-selection]` names no model for embeddings; tools are selected by words")
            return ()
        if not text.strip():
            return ()
        tools = {
            one.name: f"{one.name}: {one.description}"[:_LONGEST]
            for one in event.candidates
            if one.allowed and one.name != EXPAND
        }
        try:
            with anyio.fail_after(_SECONDS):
                vectors = await self._known(list(tools.values()), model, ctx)
                (wanted,) = await _embedded([text[-_LONGEST:]], model, ctx)
        except (OpError, TimeoutError) as error:
            _log.warning("the model %s gave no embeddings (%s); tools are selected by words", model, error)
            return ()
        if any(len(one) != len(wanted) for one in vectors):
            _log.warning("the model %s gave vectors of different lengths; tools are selected by words", model)
            return ()
        return await to_thread.run_sync(_ranked, list(tools), vectors, wanted)

    async def _known(self, texts: Sequence[str], model: str, ctx: AgentContext) -> Sequence[_Vector]:
        digests = [hashlib.sha256(f"{model}\0{text}".encode()).digest() for text in texts]
        found: dict[bytes, _Vector] = {}
        for digest in digests:
            if (vector := self._vectors.get(digest)) is not None:
                self._vectors.move_to_end(digest)
                found[digest] = vector
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in found}
        for start in range(0, len(missing), _BATCH):
            batch = list(missing.items())[start : start + _BATCH]
            vectors = await _embedded([text for _, text in batch], model, ctx)
            new = {digest: vector for (digest, _), vector in zip(batch, vectors, strict=True)}
            found.update(new)
            self._keep(new)
        return [found[digest] for digest in digests]

    def _keep(self, new: dict[bytes, _Vector]) -> None:
        self._vectors.update(new)
        while len(self._vectors) > _VECTORS:
            self._vectors.popitem(last=False)


async def _embedded(texts: Sequence[str], model: str, ctx: AgentContext) -> Sequence[_Vector]:
    answer = await ctx.dispatch("llm.embed", {"model": model, "texts": texts}, capabilities=["llm"])
    return [_unit(vector) for vector in answer["vectors"]]


def _unit(vector: Sequence[float]) -> _Vector:
    length = math.hypot(*vector) or 1.0
    return array("f", [one / length for one in vector])


def _ranked(names: Sequence[str], vectors: Sequence[_Vector], wanted: _Vector) -> Sequence[str]:
    near = {name: sum(map(mul, vector, wanted)) for name, vector in zip(names, vectors, strict=True)}
    return sorted(names, key=lambda name: -near[name])
