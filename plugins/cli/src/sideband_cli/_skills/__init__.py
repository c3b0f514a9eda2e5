"""Skill folders, and the packages that skills depend on."""

__all__: list[str] = []
