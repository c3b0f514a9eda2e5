"""The agent: it runs a model with tools, through the broker."""
