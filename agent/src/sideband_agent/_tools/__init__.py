"""The tool calls of a turn: decided, run as effects, and answered."""
