"""One step of a model: the call, and what follows when it fails."""
