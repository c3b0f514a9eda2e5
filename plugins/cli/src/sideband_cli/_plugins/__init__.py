"""What is known about plugins, and what they do."""

__all__: list[str] = []
