"""Commands: how they are locked down, started and ended with all that they started, and proved."""
