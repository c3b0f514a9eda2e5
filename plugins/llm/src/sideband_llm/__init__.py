"""The op family `llm`: model calls through any provider."""

from ._errors import LlmError, ModelUnable, ModelUnclear, ProviderUnknown
from ._scope import LlmScope
from ._version import __version__

__all__ = ["LlmError", "LlmScope", "ModelUnable", "ModelUnclear", "ProviderUnknown", "__version__"]
