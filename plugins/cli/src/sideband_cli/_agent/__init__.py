"""The agent on the command line: its options, its input, and the output of its runs."""

__all__: list[str] = []
