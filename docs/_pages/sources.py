"""Extracts hints and codes of errors from the source code, where they are passed to the error classes."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

__all__ = ["hints_of", "named_codes"]


def hints_of(error: type[BaseException]) -> list[str]:
    """Return the hints that an error class sets itself, unless they are computed at run time."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(error)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    hints = [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "hint"]
    return [text for hint in hints if (text := _text(hint)) is not None]


def _text(node: ast.expr) -> str | None:
    """Return a text with named placeholders, or ``None`` if it is computed at run time."""
    match node:
        case ast.Constant(value=str(text)) if text:
            return text
        case ast.JoinedStr(values=parts):
            pieces = [_piece(part) for part in parts]
            return None if None in pieces else "".join(piece or "" for piece in pieces)
        case ast.BoolOp(op=ast.Or(), values=[*_, last]):
            return _text(last)
        case ast.IfExp(body=one, orelse=other):
            texts = [text for text in (_text(one), _text(other)) if text is not None]
            return ", or: ".join(texts) or None
    return None


def _piece(part: ast.expr) -> str | None:
    match part:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name)) if not name.isupper():
            return name.upper()
        case ast.FormattedValue(value=ast.Attribute(attr=name)):
            return name.upper()
    return None


def named_codes(package: Path) -> Iterator[tuple[str, str]]:
    """Yield each code that a package passes to an error class, with the name of that class."""
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if 'code="' not in text:
            continue
        tree = ast.parse(text)
        owners = {
            id(call): owner.name
            for owner in ast.walk(tree)
            if isinstance(owner, ast.ClassDef)
            for call in ast.walk(owner)
            if isinstance(call, ast.Call)
        }
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            for keyword in call.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant) and keyword.value.value:
                    yield str(keyword.value.value), _called(call, owners.get(id(call), ""))


def _called(call: ast.Call, owner: str) -> str:
    """Return the name of the class that a call instantiates."""
    match call.func:
        case ast.Name(id="cls") | ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
            return owner
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
            return name
    return ""
