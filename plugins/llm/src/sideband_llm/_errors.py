"""Errors raised before a model is called. Failures of a provider are a ``ProviderError`` of the core.

LlmError(OpFailed)               llm.failed
├── ProviderUnknown(LookupError) llm.provider
├── ModelUnclear(LookupError)    llm.model
└── ModelUnable(ValueError)      llm.unable
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sideband.exit_codes import ExitCode
from sideband.ops import OpFailed
from sideband.providers import (
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
    ProviderUnreachable,
    StreamBroken,
)
from sideband.suggestions import did_you_mean

SETUP = (
    "set a key: `export ANTHROPIC_API_KEY=…` for `anthropic:MODEL`, or `export OPENAI_API_KEY=…` for `openai:MODEL`",
    "run a local server: `ollama pull MODEL` for `openai-ollama:MODEL`; vLLM, llama.cpp and LM Studio work too",
    "use an OpenAI-compatible service: `export OPENAI_BASE_URL=https://…/v1` and its key, for `openai:MODEL`",
)
"""The three quickest ways to set up a model."""

_MAX_NAMED = 8


class LlmError(OpFailed):
    """The call failed before a model was called."""

    code = "llm.failed"
    nothing_happened = True


class ProviderUnknown(LlmError, LookupError):
    """No installed plugin provides a provider of this name."""

    code = "llm.provider"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, name: str, known: Sequence[str]) -> None:
        available = f"available: {', '.join(known)}" if known else "no provider is installed"
        super().__init__(
            f"unknown provider `{name}`{did_you_mean(name, known)}; {available}",
            hint="\n".join(
                ["set up a model in one of these ways:", *(f"{n}. {way}" for n, way in enumerate(SETUP, 1))]
            ),
        )


class ModelUnclear(LlmError, LookupError):
    """A model name that is unknown or ambiguous."""

    code = "llm.model"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, name: str, candidates: Iterable[str], *, closest: str = "") -> None:
        found = list(candidates)
        if found:
            problem = f"ambiguous model name `{name}`: it matches {', '.join(found[:_MAX_NAMED])}"
        else:
            problem = f"unknown model `{name}`" + (f" (did you mean `{closest}`?)" if closest else "")
        super().__init__(
            problem,
            hint="use provider:model; `sideband models list` shows the available models",
        )


class ModelUnable(LlmError, ValueError):
    """A request needs something that the model does not support, according to its provider."""

    code = "llm.unable"

    def __init__(self, name: str, wanted: str, hint: str) -> None:
        super().__init__(f"{name} does not support {wanted}", hint=hint)


ERRORS = (
    LlmError,
    ModelUnable,
    ModelUnclear,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
    ProviderUnknown,
    ProviderUnreachable,
    StreamBroken,
)
"""The errors that skills can catch by class."""
