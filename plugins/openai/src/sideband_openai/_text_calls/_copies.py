"""Recognition of text that a model copied from others.

The copy may differ in whitespace and escapes, because results are often JSON texts or web pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

# Matched only from the first backslash of a run, or a text of backslashes would take quadratic time.
_CODE_POINT = re.compile(r"(?<!\\)\\++u([0-9a-fA-F]{4})")
_REFERENCE = re.compile(r"&#(?:0*+([0-9]++)|0++)")
_MAX_DIGITS = 7
# Escapes, whitespace and characters without width
_IGNORED = re.compile(r"\\+[nrt]|[\s\\\u00ad\u200b-\u200f\u2060\ufeff]+")


def contains_any(texts: Callable[[], Iterable[str]], parts: Iterable[str]) -> bool:
    r"""Return whether one of the texts contains one of the parts.

    Example:
        >>> contains_any(lambda: [r'{"body": "\u003cb\u003e\nhello&lt;/b>"}'], ["<b> hello </b>"])
        True
    """
    reduced = [_reduced(part) for part in parts]
    return any(part in text for text in map(_reduced, texts()) for part in reduced)


def _reduced(text: str) -> str:
    if "\\u" in text:
        text = _CODE_POINT.sub(lambda match: chr(int(match[1], 16)), text)
    if "&" in text:
        import html  # noqa: PLC0415  takes 0.9 MB, and is rarely needed

        text = html.unescape(_REFERENCE.sub(_short_reference, text))
    return _IGNORED.sub("", text)


def _short_reference(reference: re.Match[str]) -> str:
    """Return a numeric character reference without leading zeros. Python cannot convert thousands of digits."""
    digits = reference[1] or "0"
    return f"&#{digits}" if len(digits) <= _MAX_DIGITS else "\ufffd"
