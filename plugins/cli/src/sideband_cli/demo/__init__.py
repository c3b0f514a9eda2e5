"""The op family `demo`: a small service on loopback for the demo skill to fetch from."""

__all__: list[str] = []
