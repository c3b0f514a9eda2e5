"""One step of a model: the call, and what follows when it fails."""

from ._model_calls import ModelCalls
from ._model_steps import ModelSteps

__all__ = ["ModelCalls", "ModelSteps"]
