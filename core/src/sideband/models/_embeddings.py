"""The protocol of providers whose models turn texts into vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from ._messages import Usage

if TYPE_CHECKING:  # `contexts` imports this package
    from ..contexts._plugin import PluginContext

_Number = Annotated[float, Field(allow_inf_nan=False)]


class EmbeddingRequest(BaseModel):
    """A request for the vectors of texts.

    Attributes:
        model: the name of the model; for a provider without the prefix ``provider:``.
        texts: the texts, 256 at most.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    model: str = Field(
        min_length=1,
        max_length=300,
        description="provider:model, an alias from the configuration, or a bare model name that only one provider has.",
    )
    texts: tuple[Annotated[str, Field(min_length=1, max_length=100_000)], ...] = Field(
        min_length=1, max_length=256, description="The texts, 256 at most. Each one gets a vector."
    )


class Embeddings(BaseModel):
    """The vectors of texts. Texts with similar meanings have vectors with similar directions.

    Attributes:
        vectors: one vector for each text, in the same order. All have the same length.
        model: ``provider:model``. `llm` sets it.
        usage: the usage. `llm` sets ``cost``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    vectors: tuple[Annotated[tuple[_Number, ...], Field(min_length=1, max_length=65_536)], ...]
    model: str = ""
    usage: Usage = Field(default_factory=Usage)


@runtime_checkable
class EmbeddingProvider(Protocol):
    """What a ``Provider`` has in addition if its service has models for embeddings."""

    async def embed(self, request: EmbeddingRequest, ctx: PluginContext) -> Embeddings:
        """Return the vectors of texts.

        Raises:
            ProviderError: if there is not one vector for each text.
        """
