"""Effects as recorded in the ledger and in the sessions of agents."""

__all__: list[str] = []
