"""The commands, each in a module of its name: ``sideband record`` is in ``record.py``."""

__all__: list[str] = []
