"""What a model is called."""

from __future__ import annotations

from typing import NamedTuple, Self


class ModelName(NamedTuple):
    """A provider, and the model's name there.

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
        """The name that ``text`` writes as ``provider:model``, or ``None`` if it doesn't."""
        provider, _, model = text.partition(":")
        return cls(provider, model) if provider and model else None

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"
