"""What the ledger, and the sessions of agents, say of effects."""

__all__: list[str] = []
