"""Helpers for skills in addition to the generated functions: iteration over rows. Standard library only."""

# mypy: disable-error-code="import-not-found, misc"
# The types are generated with the functions, so they exist only beside them: `sideband sdk stubs` writes both.

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from sideband.skill import dispatch

if TYPE_CHECKING:
    from typing import Unpack

    from sideband_sdk.sql import OpenOptions

__all__ = ["rows"]


async def rows(
    sql: str, *, db: str, batch: int | None = None, **options: Unpack[OpenOptions]
) -> AsyncIterator[dict[str, Any]]:
    """Yield all rows of a query, fetched ``batch`` at a time. Accepts the options of ``sql.open``.

    Example:
        async for row in sql.rows("SELECT * FROM measurements WHERE day = :day", db="lab.db", params={"day": day}):
            total += row["value"]
    """
    opened = await dispatch("sql.open", {"sql": sql, "db": db, **options})
    request = {"cursor": opened["cursor"]} if batch is None else {"cursor": opened["cursor"], "max_rows": batch}
    more = True
    try:
        while more:
            fetched = await dispatch("sql.fetch", request)
            more = fetched["more"]
            for row in fetched["rows"]:
                yield row
    finally:
        if more:
            await dispatch("sql.close", {"cursor": opened["cursor"]})
