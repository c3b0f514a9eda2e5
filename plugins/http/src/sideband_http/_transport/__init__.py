"""How it is sent: connections, TLS, proxies, and the libraries behind them. Nothing else opens a connection."""
