"""URLs, name resolution and the classes of addresses."""
