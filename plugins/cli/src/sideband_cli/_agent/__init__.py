"""An agent on the command line: the options that choose one, what it is told, and what is shown of its runs."""

__all__: list[str] = []
