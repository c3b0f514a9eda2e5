"""Undo plans, and the effects that undid an effect."""

__all__: list[str] = []
