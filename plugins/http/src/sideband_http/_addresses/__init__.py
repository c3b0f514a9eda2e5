"""Where a request goes: its URL, the addresses of its host, and what kind of place each address is."""
