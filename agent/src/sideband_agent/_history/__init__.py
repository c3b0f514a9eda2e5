"""The part of a session that a model sees: repaired for providers, and measured in tokens."""

from ._repair import Pairing, repair
from ._tokens import CHARACTERS_PER_TOKEN, TokenCount, estimate
from ._visible_history import VisibleHistory, begins_with, unanswered

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "Pairing",
    "TokenCount",
    "VisibleHistory",
    "begins_with",
    "estimate",
    "repair",
    "unanswered",
]
