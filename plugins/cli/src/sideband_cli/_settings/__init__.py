"""The settings: their values and sources, and checks of changes before they are written."""

__all__: list[str] = []
