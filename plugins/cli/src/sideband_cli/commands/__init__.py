"""The commands: ``sideband run`` is in ``run.py``, and so on."""

__all__: list[str] = []
