"""What comes back: framing, decompression, and the result of the op."""
