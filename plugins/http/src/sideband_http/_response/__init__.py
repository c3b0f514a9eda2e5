"""Responses: framing, decompression and the results of ops."""
