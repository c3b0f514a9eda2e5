"""Markdown files as slash commands: where they are, what they say, and which tools their runs may use."""
