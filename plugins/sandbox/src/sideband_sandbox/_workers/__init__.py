"""Workers: how they are locked down, made by a zygote, and proved."""
