"""Checks and estimates for the op `llm.embed`."""

from __future__ import annotations

from sideband.messages import Usage
from sideband.providers import EmbeddingRequest, Embeddings, ProviderError

_CHARACTERS_PER_TOKEN = 4


def check_embeddings(found: object, texts: int, provider: str) -> None:
    """Check what a provider returned for a number of texts.

    Raises:
        ProviderError: if it is not one vector for each text, all of one length.
    """
    if not isinstance(found, Embeddings):
        raise ProviderError(provider, f"expected Embeddings, got {type(found).__name__}")
    if len(found.vectors) != texts or len({len(one) for one in found.vectors}) != 1:
        raise ProviderError(provider, f"expected {texts} vectors of one length, got {len(found.vectors)}")


def estimated_usage(request: EmbeddingRequest) -> Usage:
    """Return about what a call has used that was cancelled."""
    return Usage(input=1 + sum(map(len, request.texts)) // _CHARACTERS_PER_TOKEN)
