"""Names of models."""

from __future__ import annotations

from typing import NamedTuple, Self


class ModelName(NamedTuple):
    """The name of a provider and the provider's name for a model.

    Example:
        >>> ModelName.parse("ollama:llama3.2:3b")
        ModelName(provider='ollama', model='llama3.2:3b')
        >>> str(ModelName("openai", "m")), ModelName.parse("m")
        ('openai:m', None)
    """

    provider: str
    model: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse ``provider:model``. Return ``None`` if ``text`` does not have this form."""
        provider, _, model = text.partition(":")
        return cls(provider, model) if provider and model else None

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"
