"""Tides: an op family, a guard and a tool for each station."""
