"""The first start: questions about the provider, its key, the model and the folders of skills."""

__all__: list[str] = []
