"""What a statement may do, decided by SQLite's own compiler for every statement, view and trigger that it reads.

It is an allow-list: an action that is not named here is refused, also one that a later SQLite invents.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw
from attrs import define, field

from .._errors import SqlDenied, SqlError, SqlReadonly

# the table in which the host notes which effects were committed, in databases of its own
MARKS = "_sideband_effects"

_READING = {
    apsw.SQLITE_SELECT: "select",
    apsw.SQLITE_READ: "read",
    apsw.SQLITE_RECURSIVE: "recurse",
}
_CHANGING = {
    apsw.SQLITE_INSERT: "insert into",
    apsw.SQLITE_UPDATE: "update",
    apsw.SQLITE_DELETE: "delete from",
    apsw.SQLITE_CREATE_TABLE: "create the table",
    apsw.SQLITE_CREATE_INDEX: "create the index",
    apsw.SQLITE_CREATE_VIEW: "create the view",
    apsw.SQLITE_CREATE_TRIGGER: "create the trigger",
    apsw.SQLITE_CREATE_TEMP_TABLE: "create the table",
    apsw.SQLITE_CREATE_TEMP_INDEX: "create the index",
    apsw.SQLITE_CREATE_TEMP_VIEW: "create the view",
    apsw.SQLITE_CREATE_TEMP_TRIGGER: "create the trigger",
    apsw.SQLITE_CREATE_VTABLE: "create the virtual table",
    apsw.SQLITE_DROP_TABLE: "drop the table",
    apsw.SQLITE_DROP_INDEX: "drop the index",
    apsw.SQLITE_DROP_VIEW: "drop the view",
    apsw.SQLITE_DROP_TRIGGER: "drop the trigger",
    apsw.SQLITE_DROP_TEMP_TABLE: "drop the table",
    apsw.SQLITE_DROP_TEMP_INDEX: "drop the index",
    apsw.SQLITE_DROP_TEMP_VIEW: "drop the view",
    apsw.SQLITE_DROP_TEMP_TRIGGER: "drop the trigger",
    apsw.SQLITE_DROP_VTABLE: "drop the virtual table",
    apsw.SQLITE_ALTER_TABLE: "alter a table of",
    apsw.SQLITE_REINDEX: "rebuild the index",
    apsw.SQLITE_ANALYZE: "analyse",
}
_ROWS = {apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}
_NEVER = {
    apsw.SQLITE_ATTACH: "ATTACH (use the parameter `attach`)",
    apsw.SQLITE_DETACH: "DETACH",
    apsw.SQLITE_TRANSACTION: "BEGIN, COMMIT and ROLLBACK (use sql.transaction)",
    apsw.SQLITE_SAVEPOINT: "SAVEPOINT (use sql.transaction)",
}
# These reach files or load code where a build of SQLite has them.
_REACHING = frozenset({"edit", "eval", "fsdir", "fts3_tokenizer", "load_extension", "readfile", "writefile", "zipfile"})
# The time of one call grows with the product of its arguments, and it can't be interrupted.
_ENDLESS = frozenset({"json_patch", "jsonb_patch"})
_ENDLESS_FAMILY = "geopoly_"
MODULES = frozenset({"fts5", "rtree", "rtree_i32"})
# pragmas that only tell something; an argument, if any, is the name of what they tell about
_DESCRIBING = frozenset({
    "collation_list", "foreign_key_check", "foreign_key_list", "function_list", "index_info", "index_list",
    "index_xinfo", "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo",
})  # fmt: skip
# pragmas that tell a number without an argument, and change it with one
_NUMBERS = frozenset({
    "application_id", "data_version", "encoding", "page_count", "page_size", "schema_version", "user_version",
})  # fmt: skip
_SETTABLE = frozenset({"application_id", "user_version"})


@define
class Authorizer:
    """The authorizer of one connection. Notes why it refused and what it saw, since SQLite says only "not authorized".

    Args:
        changes: whether statements may change the database.
    """

    changes: bool
    refusal: SqlError | None = field(init=False, default=None)
    inserts: bool = field(init=False, default=False)
    schema: bool = field(init=False, default=False)
    _own: bool = field(init=False, default=False)

    def forget(self) -> None:
        """Start afresh for the next statement."""
        self.refusal = None
        self.inserts = False

    @contextmanager
    def own(self) -> Iterator[None]:
        """Inside, statements are the driver's own, and may do what they want."""
        self._own = True
        try:
            yield
        finally:
            self._own = False

    def __call__(
        self, action: int, first: str | None, second: str | None, _database: str | None, source: str | None
    ) -> int:
        """SQLite's callback: `SQLITE_OK`, or `SQLITE_DENY` with the reason kept in ``refusal``."""
        if self._own:
            return apsw.SQLITE_OK
        self.refusal = self.refusal or self._judge(action, first or "", second)
        if action == apsw.SQLITE_INSERT and source is None and not (first or "").startswith("sqlite_"):
            self.inserts = True
        return apsw.SQLITE_OK if self.refusal is None else apsw.SQLITE_DENY

    def _judge(self, action: int, first: str, second: str | None) -> SqlError | None:
        if action in _READING or (action == apsw.SQLITE_UPDATE and first == "sqlite_master"):
            # SQLite asks this when it connects a virtual table; a statement's own change of the schema's table it
            # refuses before it asks, and a read-only file anyway
            return None
        if action == apsw.SQLITE_FUNCTION:
            return self._judge_function((second or "").lower())
        if action == apsw.SQLITE_PRAGMA:
            return self._judge_pragma(first.lower(), second)
        if action in _CHANGING:
            return self._judge_change(action, first, second)
        return SqlDenied(_NEVER.get(action, f"an action that is unknown here ({action})"))

    def _judge_function(self, name: str) -> SqlError | None:
        if name in _REACHING:
            return SqlDenied(f"the function `{name}`")
        if name in _ENDLESS or name.startswith(_ENDLESS_FAMILY):
            return SqlDenied(
                f"the function `{name}`", hint="one call of it could run for hours and can't be interrupted"
            )
        return None

    def _judge_pragma(self, name: str, argument: str | None) -> SqlError | None:
        if name in _DESCRIBING or (name in _NUMBERS and argument is None):
            return None
        if name in _SETTABLE:
            return None if self.changes else SqlReadonly(f"the statement would set `PRAGMA {name}`")
        return SqlDenied(f"`PRAGMA {name}`" + ("" if argument is None else " with a value"))

    def _judge_change(self, action: int, first: str, second: str | None) -> SqlError | None:
        if not self.changes:
            return SqlReadonly(f"the statement would {_CHANGING[action]} `{first}`")
        if MARKS in {first.lower(), (second or "").lower()}:
            return SqlDenied(f"a change of `{MARKS}`", hint="the host notes there which changes were made")
        if action not in _ROWS or first.lower().startswith("sqlite_"):
            self.schema = True
        if action == apsw.SQLITE_CREATE_VTABLE and (second or "").lower() not in MODULES:
            allowed = ", ".join(sorted(MODULES))
            return SqlDenied(f"a virtual table of the module `{second}`", hint=f"allowed modules: {allowed}")
        return None
