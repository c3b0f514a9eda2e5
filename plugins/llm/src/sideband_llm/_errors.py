"""Errors of model calls. Failures of a provider are a ``ProviderError`` of the core.

LlmError(OpFailed)                     llm.failed
├── ProviderUnknown(LookupError)       llm.provider
├── ModelUnclear(LookupError)          llm.model
├── ModelUnable(ValueError)            llm.unable
├── ModelBudgetSpent(PermissionError)  llm.budget     the capability allows no further model calls
├── ModelUnpriced(LookupError)         llm.unpriced   money is limited, and the prices of the model are unknown
├── ModelToolUnknown(LookupError)      llm.tool       the tool does not exist, or models may not use it
├── OutputSchemaInvalid(ValueError)    llm.schema     the output schema is not supported
├── OutputInvalid(ValueError)          llm.output     the answers do not fit the output schema
└── LlmAgentError(RuntimeError)        llm.agent      a loop of `llm.agent` ended without an answer
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


class ModelBudgetSpent(LlmError, PermissionError):
    """A call has used what the capability allows it for a model."""

    code = "llm.budget"
    exit_code = ExitCode.DENIED

    def __init__(self, model: str, tokens: int, money: float) -> None:
        super().__init__(
            f"the call has used {tokens:,} tokens and ${money:.6f}, and its capability allows no more for `{model}`",
            hint=f"raise `tokens` or `money` of `llm:model={model}` in the grant, or use fewer or shorter model calls",
        )


class ModelUnpriced(LlmError, LookupError):
    """The capability limits the money, and the prices of the model are unknown."""

    code = "llm.unpriced"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the prices of {name} are unknown, and the capability limits the money",
            hint=f'set `prices = {{ "{name}" = {{ input = …, output = … }} }}` in `[plugins.llm]`, or limit `tokens`',
        )


class ModelToolUnknown(LlmError, LookupError):
    """A tool that a skill wants a model to use does not exist, or models may not use it."""

    code = "llm.tool"
    exit_code = ExitCode.USAGE

    def __init__(self, name: str, known: Sequence[str], *, hidden: bool = False) -> None:
        why = f"the skill of `{name}` is not for models" if hidden else f"unknown tool `{name}`"
        super().__init__(
            f"{why}{'' if hidden else did_you_mean(name, known)}",
            hint="name tools of skills as skill.tool; `sideband skills list` shows them",
        )


class OutputSchemaInvalid(LlmError, ValueError):
    """An output schema is not supported."""

    code = "llm.schema"
    exit_code = ExitCode.USAGE

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"invalid output schema: {problem}",
            hint="use the keywords that the description of `llm.oneshot` lists: `sideband ops show llm.oneshot`",
        )


class OutputInvalid(LlmError, ValueError):
    """The answers of a model did not fit the output schema.

    Attributes:
        attempts: the number of answers.
        problem: what is wrong with the last one.
    """

    code = "llm.output"
    details = ("attempts", "problem")
    nothing_happened = False

    def __init__(self, attempts: int, problem: str) -> None:
        answers = "the answer" if attempts == 1 else f"none of {attempts} answers"
        fits = "does not fit" if attempts == 1 else "fits"
        super().__init__(
            f"{answers} of the model {fits} the output schema: {problem}",
            hint="describe the fields in the schema and the prompt, raise `max_tokens`, or use another model",
        )
        self.attempts, self.problem = attempts, problem


class LlmAgentError(LlmError, RuntimeError):
    """A loop of ``llm.agent`` ended without an answer.

    Attributes:
        phase: what ended it: ``model``, ``tool``, ``output``, ``iterations``, ``deadline`` or ``budget``.
        iteration: the number of the model call, from 1.
        cause: the code of the error that ended it; that of this class for a limit of the loop.
        tokens, money: what its model calls have used; ``money`` is ``None`` if it is unknown.
    """

    code = "llm.agent"
    details = ("phase", "iteration", "cause", "tokens", "money")
    nothing_happened = False

    def __init__(
        self, phase: str, iteration: int, problem: str, hint: str, *, cause: str = "llm.agent", retryable: bool = False
    ) -> None:
        super().__init__(f"the loop ended in model call {iteration}: {problem}", hint=hint, retryable=retryable)
        self.phase, self.iteration, self.cause = phase, iteration, cause
        self.tokens: int = 0
        self.money: float | None = None


ERRORS = (
    LlmAgentError,
    LlmError,
    ModelBudgetSpent,
    ModelToolUnknown,
    ModelUnable,
    ModelUnclear,
    ModelUnpriced,
    OutputInvalid,
    OutputSchemaInvalid,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
    ProviderUnknown,
    ProviderUnreachable,
    StreamBroken,
)
"""The errors that skills can catch by class."""
