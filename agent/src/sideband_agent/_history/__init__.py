"""The part of a session that a model sees: repaired for providers, and measured in tokens."""

from ._repair import repair
from ._tokens import CHARACTERS_PER_TOKEN, context_tokens, estimate
from ._visible_history import VisibleHistory, unanswered

__all__ = ["CHARACTERS_PER_TOKEN", "VisibleHistory", "context_tokens", "estimate", "repair", "unanswered"]
