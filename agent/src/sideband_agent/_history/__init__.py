"""What a model sees of a session: made fit for every provider, and measured."""

from ._repair import repair
from ._tokens import CHARACTERS_PER_TOKEN, context_tokens, estimate
from ._visible_history import VisibleHistory, unanswered

__all__ = ["CHARACTERS_PER_TOKEN", "VisibleHistory", "context_tokens", "estimate", "repair", "unanswered"]
