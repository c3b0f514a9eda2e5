"""Detects what the machine's processor, kernel and interpreter offer."""
