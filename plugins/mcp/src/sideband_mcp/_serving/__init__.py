"""Offer a view of tools and skills to clients of the protocol, over standard input and output, or an address."""
