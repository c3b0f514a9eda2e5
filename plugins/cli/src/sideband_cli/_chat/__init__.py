"""The chat: where it takes place, its loop and its chat commands."""

__all__: list[str] = []
