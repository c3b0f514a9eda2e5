"""Checks that a text is a single statement, using SQLite's own compiler."""

from __future__ import annotations

import re
from typing import Any

import apsw
from attrs import define, field

from .._errors import SqlReadonly, SqlSyntax

# White space as SQLite defines it, comments (the last one may be unterminated), and empty statements. The atomic group
# ends a comment at its first terminator; without it, the pattern would also match text after the comment.
_BLANK = re.compile(r"(?:[ \t\n\f\r;]|--[^\n]*(?:\n|\Z)|/\*(?=.)(?>.*?(?:\*/|\Z)))*\Z", re.DOTALL)


def is_blank(text: str) -> bool:
    """Return whether the text contains no statement."""
    return _BLANK.match(text) is not None


@define
class StatementCheck:
    """Checks a statement after it is compiled and before it runs: the cursor's `exec_trace`.

    Args:
        sql: the whole text.
        changes: whether the statement may change the database.
    """

    sql: str
    changes: bool
    columns: list[str] = field(init=False, factory=list)
    reads_only: bool = field(init=False, default=True)
    _seen: bool = field(init=False, default=False)

    def __call__(self, cursor: apsw.Cursor, text: str, _bindings: Any) -> bool:
        """Handle SQLite's callback.

        Raises:
            SqlSyntax: if another statement follows.
            SqlReadonly: if the statement would change a read-only database.
        """
        if self._seen:
            # a comment after the statement
            return is_blank(text)
        self._seen = True
        if not is_blank(self.sql.removeprefix(text)):
            raise SqlSyntax("more than one statement", hint="pass one statement, or use `sql.transaction` for several")
        self.reads_only = cursor.is_readonly
        if not (self.changes or self.reads_only):
            raise SqlReadonly("the statement is not read-only")
        self.columns = [name for name, _ in cursor.get_description()]
        return True
