"""A model step: the call, and the reaction to a failure."""

from ._model_calls import ModelCalls
from ._model_steps import ModelSteps
from ._tool_selector import ToolSelector

__all__ = ["ModelCalls", "ModelSteps", "ToolSelector"]
