"""What a model sees of a session: made fit for every provider, and measured."""
