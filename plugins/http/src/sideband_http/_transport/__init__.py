"""Connections, TLS, proxies and the HTTP libraries. No other module opens a connection."""
