"""Decides what a statement may do. SQLite's compiler asks for every statement, view and trigger that it reads.

This is an allow list: an action that is not listed is denied, including actions that later SQLite versions add.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw
from attrs import define, field

from .._errors import SqlDenied, SqlError, SqlReadonly

# the table that records committed effects, in databases of the data folder
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
    apsw.SQLITE_ANALYZE: "analyze",
}
_ROWS = {apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}
_FORBIDDEN = {
    apsw.SQLITE_ATTACH: "ATTACH (use the parameter `attach`)",
    apsw.SQLITE_DETACH: "DETACH",
    apsw.SQLITE_TRANSACTION: "BEGIN, COMMIT and ROLLBACK (use sql.transaction)",
    apsw.SQLITE_SAVEPOINT: "SAVEPOINT (use sql.transaction)",
}
# These access files or load code in builds of SQLite that include them.
_EXTERNAL = frozenset({"edit", "eval", "fsdir", "fts3_tokenizer", "load_extension", "readfile", "writefile", "zipfile"})
# The running time of one call grows with the product of its arguments, and the call cannot be interrupted.
_UNBOUNDED = frozenset({"json_patch", "jsonb_patch"})
_UNBOUNDED_PREFIX = "geopoly_"
MODULES = frozenset({"fts5", "rtree", "rtree_i32"})
# pragmas that only describe the database; an argument, if any, is the name of the object to describe
_DESCRIBING = frozenset({
    "collation_list", "foreign_key_check", "foreign_key_list", "function_list", "index_info", "index_list",
    "index_xinfo", "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo",
})  # fmt: skip
# pragmas that return a number without an argument, and set it with one
_NUMBERS = frozenset({
    "application_id", "data_version", "encoding", "page_count", "page_size", "schema_version", "user_version",
})  # fmt: skip
_SETTABLE = frozenset({"application_id", "user_version"})


@define
class Authorizer:
    """The authorizer of one connection. Keeps the reason for a denial, since SQLite reports only "not authorized".

    Args:
        changes: whether statements may change the database.
    """

    changes: bool
    refusal: SqlError | None = field(init=False, default=None)
    inserts: bool = field(init=False, default=False)
    schema: bool = field(init=False, default=False)
    _trusted: bool = field(init=False, default=False)

    def reset(self) -> None:
        """Reset the state for the next statement."""
        self.refusal = None
        self.inserts = False

    @contextmanager
    def trusted(self) -> Iterator[None]:
        """Allow all actions while the driver runs internal statements."""
        self._trusted = True
        try:
            yield
        finally:
            self._trusted = False

    def __call__(
        self, action: int, first: str | None, second: str | None, _database: str | None, source: str | None
    ) -> int:
        """Handle SQLite's callback: return `SQLITE_OK`, or `SQLITE_DENY` with the reason in ``refusal``."""
        if self._trusted:
            return apsw.SQLITE_OK
        self.refusal = self.refusal or self._check(action, first or "", second)
        if action == apsw.SQLITE_INSERT and source is None and not (first or "").startswith("sqlite_"):
            self.inserts = True
        return apsw.SQLITE_OK if self.refusal is None else apsw.SQLITE_DENY

    def _check(self, action: int, first: str, second: str | None) -> SqlError | None:
        if action in _READING or (action == apsw.SQLITE_UPDATE and first == "sqlite_master"):
            # SQLite updates sqlite_master when it connects a virtual table; if a statement itself tries to change that
            # table, SQLite rejects it before it calls the authorizer, and a read-only file is protected anyway
            return None
        if action == apsw.SQLITE_FUNCTION:
            return self._check_function((second or "").lower())
        if action == apsw.SQLITE_PRAGMA:
            return self._check_pragma(first.lower(), second)
        if action in _CHANGING:
            return self._check_change(action, first, second)
        return SqlDenied(_FORBIDDEN.get(action, f"unknown action {action}"))

    def _check_function(self, name: str) -> SqlError | None:
        if name in _EXTERNAL:
            return SqlDenied(f"function `{name}`")
        if name in _UNBOUNDED or name.startswith(_UNBOUNDED_PREFIX):
            return SqlDenied(
                f"function `{name}`",
                hint="use another function; one call could run for hours and cannot be interrupted",
            )
        return None

    def _check_pragma(self, name: str, argument: str | None) -> SqlError | None:
        if name in _DESCRIBING or (name in _NUMBERS and argument is None):
            return None
        if name in _SETTABLE:
            return None if self.changes else SqlReadonly(f"the statement would set `PRAGMA {name}`")
        return SqlDenied(f"`PRAGMA {name}`" + ("" if argument is None else " with a value"))

    def _check_change(self, action: int, first: str, second: str | None) -> SqlError | None:
        if not self.changes:
            return SqlReadonly(f"the statement would {_CHANGING[action]} `{first}`")
        if MARKS in {first.lower(), (second or "").lower()}:
            return SqlDenied(f"changing `{MARKS}`", hint="use another table; the host records committed changes there")
        if action not in _ROWS or first.lower().startswith("sqlite_"):
            self.schema = True
        if action == apsw.SQLITE_CREATE_VTABLE and (second or "").lower() not in MODULES:
            allowed = ", ".join(sorted(MODULES))
            return SqlDenied(f"a virtual table of the module `{second}`", hint=f"use one of these modules: {allowed}")
        return None
