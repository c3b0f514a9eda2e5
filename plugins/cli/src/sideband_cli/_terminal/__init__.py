"""What a person reads and is asked, whatever the command."""

__all__: list[str] = []
