"""The form of data in a cassette: folders and ids of this machine have names, and texts have lines."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field
from sideband.rendering import whole_characters

_BEGIN = "${sideband."
_NAMED = re.compile(r"\$\{sideband\.([a-z_]+)\}?")
_RANDOM = re.compile(r"[0-9a-f-]{16,}")
_LINES, _BYTES, _PLAIN = "__lines__", "__bytes__", "__plain__"
_SAME = "__same__"  # see _repeats.py
_MARKS = frozenset({_LINES, _BYTES, _PLAIN})
_MOST_DEPTH = 100
# The characters of base64 beside a secret depend on its last bits, and on its length.
_BESIDE_SECRET = re.compile(r"[A-Za-z0-9+/_-]?(\[redacted[^\]]*\])[A-Za-z0-9+/_-]{0,2}={0,2}")


@define(eq=False)
class ValuePlaces:
    """The folders that differ between machines, each with the name that stands for it in a cassette.

    Example:
        >>> places = ValuePlaces({"project": "/srv/notes"})
        >>> places.hide({"cwd": "/srv/notes/src"})
        {'cwd': '${sideband.project}/src'}
        >>> places.show({"cwd": "${sideband.project}/src"})
        {'cwd': '/srv/notes/src'}
    """

    _paths: Mapping[str, str]
    _names: dict[str, str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        # The longest first, since one may contain another.
        known = sorted(self._paths.items(), key=lambda one: -len(one[1]))
        self._names = {path.rstrip("/"): name for name, path in known if len(path.rstrip("/")) > 1}

    def hide(self, value: Any, ids: Mapping[str, str] = {}) -> Any:
        """Return data with names in place of folders, and of ids that were made at random.

        Args:
            value: JSON data, also with bytes.
            ids: the ids, each with its name.
        """
        names = {**{text: name for text, name in ids.items() if _RANDOM.fullmatch(text)}, **self._names, _BEGIN: "text"}
        folders = "|".join(map(re.escape, self._names)) or "(?!)"
        others = "|".join(re.escape(one) for one in names if one not in self._names)
        pattern = re.compile(rf"{others}|(?<![\w.~/-])(?:{folders})(?![\w.-])")
        return _mapped(value, lambda text: pattern.sub(lambda found: f"{_BEGIN}{names[found[0]]}}}", text))

    def show(self, value: Any, ids: Mapping[str, str] = {}) -> Any:
        """Return data with the folders and ids of now in place of their names."""
        known = {**self._paths, **{name: text for text, name in ids.items()}, "text": _BEGIN}
        return _mapped(value, lambda text: _NAMED.sub(lambda found: known.get(found[1], found[0]), text))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(whole_characters(value))
    if isinstance(value, dict):
        return {_mapped(key, change): _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value


def compared(value: Any) -> Any:
    """Return parameters as they are compared: without what depends on a secret that is not in them anymore."""
    return _mapped(value, lambda text: _BESIDE_SECRET.sub(r"\1", text) if "[redacted" in text else text)


def encoded(value: Any) -> Any:
    r"""Return data for a cassette, in which texts with several lines are lists, and bytes are base64.

    Example:
        >>> encoded({"text": "one\ntwo", "raw": b"hi"})
        {'text': {'__lines__': ['one', 'two']}, 'raw': {'__bytes__': 'aGk='}}
    """
    if isinstance(value, str):
        return {_LINES: value.split("\n")} if "\n" in value else value
    if isinstance(value, bytes):
        return {_BYTES: b64encode(value).decode("ascii")}
    if isinstance(value, list):
        return [encoded(item) for item in value]
    if isinstance(value, dict):
        plain = {key: encoded(item) for key, item in value.items()}
        is_marked = _SAME in plain or (len(plain) == 1 and not _MARKS.isdisjoint(plain))
        return {_PLAIN: plain} if is_marked else plain
    return value


def decoded(value: Any, depth: int = 0) -> Any:
    """Return the data that ``encoded`` was called with.

    Raises:
        ValueError: if it is not the form that ``encoded`` returns, or is nested too deeply.
    """
    if depth > _MOST_DEPTH:
        raise ValueError(f"it is nested more than {_MOST_DEPTH} levels deep")
    if isinstance(value, list):
        return [decoded(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    mark = next(iter(value), "") if len(value) == 1 else ""
    if mark not in _MARKS:
        return {key: decoded(item, depth + 1) for key, item in value.items()}
    inner = value[mark]
    if mark == _LINES and isinstance(inner, list) and all(isinstance(one, str) for one in inner):
        return "\n".join(inner)
    if mark == _BYTES and isinstance(inner, str):
        return b64decode(inner, validate=True)
    if mark == _PLAIN and isinstance(inner, dict):
        return {key: decoded(item, depth + 1) for key, item in inner.items()}
    raise ValueError(f"`{mark}` has an invalid value")
