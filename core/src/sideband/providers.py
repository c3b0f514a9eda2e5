"""The protocols that a model provider implements, its requests and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy
from .models import _providers
from .models._providers import *  # noqa: F403  re-exports the public names

if TYPE_CHECKING:
    from .models._embeddings import EmbeddingProvider, EmbeddingRequest, Embeddings

__all__ = ["EmbeddingProvider", "EmbeddingRequest", "Embeddings"]
__all__ += _providers.__all__
__getattr__, __dir__ = lazy(__name__, "..models._embeddings")
