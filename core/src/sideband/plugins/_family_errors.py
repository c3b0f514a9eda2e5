"""Check the errors that an op family declares."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

from ..errors import SidebandError
from ..ops import OpError, OpFamily

_CODE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+\Z")
_CLASS = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
_DETAIL = re.compile(r"[a-z][a-z0-9_]*\Z")
_MOST_DETAILS = 16
# The first parts of the codes that have a class in `sideband.skill`.
_GENERAL = frozenset({"config", "effect", "limit", "op", "plugin"})
_TAKEN = frozenset({*dir(OpError("")), "from_wire"})


def errors_problem(family: OpFamily) -> str | None:
    """Return what is wrong with ``family.errors``, or ``None``.

    Example:
        >>> class Lost(OpFailed):
        ...     code = "http.lost"
        >>> errors_problem(OpFamily("geo", (find,), errors=[Lost]))
        "the code `http.lost` of its error `Lost` must begin with `geo.`"
    """
    if isinstance(family.errors, str) or not isinstance(family.errors, Sequence):
        return f"its `errors` must be a list of classes, got {_described(family.errors)}"
    codes: dict[str, type] = {}
    names: dict[str, type] = {}
    for error in family.errors:
        problem = _problem(family.name, error)
        if problem is None and error.code in codes:
            problem = f"its errors `{codes[error.code].__name__}` and `{error.__name__}` have the code `{error.code}`"
        if problem is None and error.__name__ in names:
            problem = f"two of its errors are named `{error.__name__}`"
        if problem is not None:
            return problem
        codes[error.code] = names[error.__name__] = error
    return None


def _problem(family: str, error: Any) -> str | None:
    if not (isinstance(error, type) and issubclass(error, SidebandError)):
        return f"its `errors` include {_described(error)}; list classes, each a subclass of OpFailed"
    name = error.__name__
    if not _CLASS.match(name) or keyword.iskeyword(name):
        return f"the name of its error `{name}` must be words in upper camel case, such as `AddressNotFound`"
    code = vars(error).get("code")
    if code is None:
        return f"its error `{name}` has no `code` of its own, such as `{family}.{_words(name)}`"
    if not isinstance(code, str) or not _CODE.match(code):
        form = f"lower-case words such as `{family}.{_words(name)}`"
        return f"the `code` of its error `{name}` must be {form}, got {code!r}"
    first = code.partition(".")[0]
    if first != family and (first in _GENERAL or not getattr(error, "shared", False)):
        return f"the code `{code}` of its error `{name}` must begin with `{family}.`"
    return _details_problem(name, error)


def _details_problem(name: str, error: type[SidebandError]) -> str | None:
    details = getattr(error, "details", ())
    if not isinstance(details, tuple) or len(details) > _MOST_DETAILS:
        return f"`details` of its error `{name}` must be a tuple of at most {_MOST_DETAILS} names of attributes"
    for one in details:
        if not isinstance(one, str) or not _DETAIL.match(one) or keyword.iskeyword(one) or one in _TAKEN:
            return f"`details` of its error `{name}` must be names of attributes that the class adds, got {one!r}"
    return None


def _words(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _described(value: object) -> str:
    return f"the class `{value.__name__}`" if isinstance(value, type) else f"{value!r:.80}"
