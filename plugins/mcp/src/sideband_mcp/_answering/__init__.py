"""How a tool answers what its server asks: the person fills in a form or opens an address, or a model answers."""

from ._answers import answer_to

__all__ = ["answer_to"]
