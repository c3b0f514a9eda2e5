"""The commands, each in a module of its name: ``sideband run`` is in ``run.py``."""

__all__: list[str] = []
