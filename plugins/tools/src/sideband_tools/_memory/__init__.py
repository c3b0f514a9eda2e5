"""Tools that remember: notes that outlive a session, and the earlier messages of the session."""

from ._history_tool import history
from ._memory_tool import memory

__all__ = ["history", "memory"]
