"""Effects that take others back."""

__all__: list[str] = []
