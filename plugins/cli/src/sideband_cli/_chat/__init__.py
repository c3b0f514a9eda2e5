"""The chat: its loop, its frontends and its chat commands."""

__all__: list[str] = []
