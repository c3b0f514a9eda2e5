"""The machine: what its processor, kernel and interpreter offer, and how they are asked."""
