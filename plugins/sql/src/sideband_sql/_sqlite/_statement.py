"""That a text is one statement, and what that one is, seen by SQLite's own compiler."""

from __future__ import annotations

import re
from typing import Any

import apsw
from attrs import define, field

from .._errors import SqlReadonly, SqlSyntax

# White space as SQLite knows it, comments (the last one may be open), and empty statements. A comment ends at its
# first end: without the atomic group, it would also match with whatever follows it.
_BLANK = re.compile(r"(?:[ \t\n\f\r;]|--[^\n]*(?:\n|\Z)|/\*(?=.)(?>.*?(?:\*/|\Z)))*\Z", re.DOTALL)


def is_blank(text: str) -> bool:
    """Whether SQLite would run nothing of it."""
    return _BLANK.match(text) is not None


@define
class StatementCheck:
    """Looks at a statement when it is compiled and has not run yet: the cursor's `exec_trace`.

    Args:
        sql: the whole text.
        changes: whether it may change something.
    """

    sql: str
    changes: bool
    columns: list[str] = field(init=False, factory=list)
    reads_only: bool = field(init=False, default=True)
    _seen: bool = field(init=False, default=False)

    def __call__(self, cursor: apsw.Cursor, text: str, _bindings: Any) -> bool:
        """SQLite's callback.

        Raises:
            SqlSyntax: more follows, or two columns have one name.
            SqlReadonly: it would change something that must not change.
        """
        if self._seen:
            # a comment behind the statement
            return is_blank(text)
        self._seen = True
        if not is_blank(self.sql.removeprefix(text)):
            raise SqlSyntax("more than one statement", hint="one statement a call; `sql.transaction` takes several")
        self.reads_only = cursor.is_readonly
        if not (self.changes or self.reads_only):
            raise SqlReadonly("the statement would change something")
        self.columns = [name for name, _ in cursor.get_description()]
        return True
