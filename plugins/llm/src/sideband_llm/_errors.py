"""Why a model could not even be asked. What a provider then fails with is a ``ProviderError`` of the core.

LlmError(OpFailed)               llm.failed
├── ProviderUnknown(LookupError) llm.provider
├── ModelUnclear(LookupError)    llm.model
└── ModelUnable(ValueError)      llm.unable
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sideband.exit_codes import ExitCode
from sideband.ops import OpFailed
from sideband.suggestions import did_you_mean

SETUP = (
    "a key: `export ANTHROPIC_API_KEY=…` for `anthropic:MODEL`, or `export OPENAI_API_KEY=…` for `openai:MODEL`",
    "a server on this machine: `ollama pull MODEL` for `openai-ollama:MODEL`; vLLM, llama.cpp and LM Studio work too",
    "any service that speaks like OpenAI: `export OPENAI_BASE_URL=https://…/v1` beside its key, for `openai:MODEL`",
)
"""The three quickest ways to a model."""

_MOST_NAMED = 8


class LlmError(OpFailed):
    """No model was asked."""

    code = "llm.failed"
    nothing_happened = True


class ProviderUnknown(LlmError, LookupError):
    """No installed plugin has a provider of this name."""

    code = "llm.provider"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, name: str, known: Sequence[str]) -> None:
        there = f"there are {', '.join(known)}" if known else "none is installed"
        super().__init__(
            f"there is no provider of models `{name}`{did_you_mean(name, known)}; {there}",
            hint="the quickest ways to a model: " + "; ".join(f"({n}) {way}" for n, way in enumerate(SETUP, 1)),
        )


class ModelUnclear(LlmError, LookupError):
    """A name that does not say which provider's model is meant."""

    code = "llm.model"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, name: str, candidates: Iterable[str], *, closest: str = "") -> None:
        found = list(candidates)
        if found:
            problem = f"{', '.join(found[:_MOST_NAMED])} are all called so"
        else:
            problem = "no provider that can be reached has it" + (f" (did you mean `{closest}`?)" if closest else "")
        super().__init__(
            f"`{name}` does not say which model is meant: {problem}",
            hint="write provider:model; `sideband models list` shows what there is",
        )


class ModelUnable(LlmError, ValueError):
    """A request asks for what the model can't do, as its provider says."""

    code = "llm.unable"

    def __init__(self, name: str, wanted: str, hint: str) -> None:
        super().__init__(f"{name} can't deal with {wanted}", hint=hint)
