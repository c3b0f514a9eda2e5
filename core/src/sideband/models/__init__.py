"""Messages and the provider protocol. Their public names are in `sideband.messages` and `sideband.providers`."""
