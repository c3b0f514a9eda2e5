"""Messages and what a provider promises. Their public names are in `sideband.messages` and `sideband.providers`."""
