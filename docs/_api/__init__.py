"""The description of everything public, and the rules by which a change to it is an addition or a break."""
