"""The op family `llm`: model calls through any provider, with typed data and tools for skills."""

from ._errors import (
    LlmAgentError,
    LlmError,
    ModelBudgetSpent,
    ModelToolUnknown,
    ModelUnable,
    ModelUnclear,
    ModelUnpriced,
    OutputInvalid,
    OutputSchemaInvalid,
    ProviderUnknown,
)
from ._scope import LlmScope
from ._version import __version__

__all__ = [
    "LlmAgentError",
    "LlmError",
    "LlmScope",
    "ModelBudgetSpent",
    "ModelToolUnknown",
    "ModelUnable",
    "ModelUnclear",
    "ModelUnpriced",
    "OutputInvalid",
    "OutputSchemaInvalid",
    "ProviderUnknown",
    "__version__",
]
