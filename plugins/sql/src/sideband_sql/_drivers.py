"""The driver of each engine. A driver is imported on first use because it loads a library."""

from __future__ import annotations

from collections.abc import Callable

from ._config import Config
from ._errors import SqlDriver, SqlEngineOff
from ._paths import DatabaseTarget
from ._protocols import DatabaseDriver


def driver_for(target: DatabaseTarget, config: Config) -> DatabaseDriver:
    """Return the driver of the target's engine, which is chosen by file name, never by content.

    Raises:
        SqlEngineOff: if the engine is disabled in the configuration.
        SqlDriver: if its library is not installed.
    """
    return _DRIVERS[target.engine](config)


def _sqlite(_config: Config) -> DatabaseDriver:
    from ._sqlite import SqliteDriver  # noqa: PLC0415

    return SqliteDriver()


def _duckdb(config: Config) -> DatabaseDriver:
    if not config.duckdb:
        raise SqlEngineOff("duckdb")
    try:
        from ._duckdb import DuckdbDriver  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SqlDriver("duckdb", error.name or "duckdb") from None
    return DuckdbDriver()


_DRIVERS: dict[str, Callable[[Config], DatabaseDriver]] = {"duckdb": _duckdb, "sqlite": _sqlite}
