"""DuckDB, the second engine behind the same ops."""

from ._driver import DuckdbDriver

__all__ = ["DuckdbDriver"]
