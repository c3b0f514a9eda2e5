"""Programs: isolates, starts and kills them with their descendants, and verifies their isolation."""
