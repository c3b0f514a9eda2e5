"""Workers: isolates them, forks them from a zygote, and verifies their isolation."""
