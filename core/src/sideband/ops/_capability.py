"""Capabilities and grants: parse, print, compare and narrow them, without calling plugin code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar
from urllib.parse import quote, unquote

from attrs import field, frozen

from ..suggestions import did_you_mean
from ._errors import CapabilityInvalid
from ._scope import Scope

__all__ = ["Capability", "Grant"]

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_AMOUNT = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,9}))?\Z")
# Characters that need no encoding in a value; `%`, `,`, `|`, `=`, `*` and white space do.
_PLAIN = "/:@.-_~+$&;!()[]?'"


@frozen
class _Pattern:
    """One allowed value of a field: an exact value or a prefix."""

    text: str
    prefix: bool = False

    @classmethod
    def parse(cls, raw: str, whole: str) -> _Pattern:
        body = raw.removesuffix("*")
        if not raw:
            raise CapabilityInvalid(whole, "a value is empty")
        if "*" in body or "=" in body or any(character.isspace() for character in body):
            raise CapabilityInvalid(whole, f"the value `{raw}` contains a `*`, `=` or space; percent-encode it")
        if _PERCENT.search(body):
            raise CapabilityInvalid(whole, f"the value `{raw}` has an invalid percent-encoding; write `%` as `%25`")
        return cls(unquote(body, errors="strict"), prefix=body != raw)

    def __str__(self) -> str:
        return quote(self.text, safe=_PLAIN) + ("*" if self.prefix else "")

    @property
    def written(self) -> str:
        return self.text + ("*" if self.prefix else "")

    def matches(self, value: str) -> bool:
        return value.startswith(self.text) if self.prefix else value == self.text

    def covers(self, other: _Pattern) -> bool:
        return other.text.startswith(self.text) if self.prefix else self == other

    def meet(self, other: _Pattern) -> _Pattern | None:
        if self.covers(other):
            return other
        return self if other.covers(self) else None


def _billionths(amount: str) -> int | None:
    """Return an amount as a whole number, or ``None`` if the text is not an amount."""
    found = _AMOUNT.match(amount)
    return None if found is None else int(found[1] + (found[2] or "").ljust(9, "0"))


@frozen
class _Amount(_Pattern):
    """The highest allowed value of a field whose values are amounts."""

    @classmethod
    def of(cls, pattern: _Pattern, name: str, whole: str) -> _Amount:
        if pattern.prefix or not _AMOUNT.match(pattern.text):
            raise CapabilityInvalid(whole, f"`{name}={pattern}` must be an amount such as `{name}=0.50`")
        whole_part, _, rest = pattern.text.partition(".")
        return cls(".".join(filter(None, (whole_part.lstrip("0") or "0", rest.rstrip("0")))))

    def matches(self, value: str) -> bool:
        asked, most = _billionths(value), _billionths(self.text)
        return asked is not None and most is not None and asked <= most

    def covers(self, other: _Pattern) -> bool:
        return isinstance(other, _Amount) and self.matches(other.text)


@frozen(cache_hash=True)
class Capability:
    """The right to use the ops of one family within a scope. A missing field allows any value.

    Attributes:
        family: the family of the ops.
        fields: the restricted fields with their allowed values, sorted.

    Example:
        >>> capability = Capability.parse("http:method=GET,host=api.github.com")
        >>> str(capability)
        'http:host=api.github.com,method=GET'
        >>> capability.allows({"host": "api.github.com", "method": "GET"})
        True
        >>> capability.allows({"host": "api.github.com"})
        False
    """

    family: str
    fields: tuple[tuple[str, tuple[_Pattern, ...]], ...] = ()
    remark: str = field(default="", eq=False, repr=False)
    """A remark of the family, for the question whether to grant the capability."""

    @classmethod
    def parse(cls, text: str) -> Capability:
        """Parse ``family[:field=value|value,field=value]``.

        Raises:
            CapabilityInvalid: if the text has another syntax.
        """
        family, colon, rest = text.partition(":")
        if not _NAME.match(family):
            raise CapabilityInvalid(text, f"invalid family name `{family}`")
        if colon and not rest:
            raise CapabilityInvalid(text, "expected a field after `:`")
        fields: dict[str, tuple[_Pattern, ...]] = {}
        for part in rest.split(",") if rest else ():
            name, equals, values = part.partition("=")
            if not equals or not _NAME.match(name):
                raise CapabilityInvalid(text, f"expected field=value, got `{part}`")
            if name in fields:
                raise CapabilityInvalid(text, f"duplicate field `{name}`; join its values with `|`")
            try:
                fields[name] = _minimal(_Pattern.parse(raw, text) for raw in values.split("|"))
            except UnicodeDecodeError:
                raise CapabilityInvalid(text, f"`{values}` is not percent-encoded UTF-8") from None
        return cls(family, tuple(sorted(fields.items())))

    def __str__(self) -> str:
        fields = ",".join(f"{name}={'|'.join(map(str, patterns))}" for name, patterns in self.fields)
        return f"{self.family}:{fields}" if fields else self.family

    @classmethod
    def exactly(cls, family: str, values: Mapping[str, str]) -> Capability:
        """Return the capability that allows only requests with these field values."""
        return cls(family, tuple(sorted((name, (_Pattern(value),)) for name, value in values.items())))

    def fit(self, scope: type[Scope] | None) -> Capability:
        """Return the capability with its family's defaults filled in, ready to be compared field by field.

        Raises:
            CapabilityInvalid: if a field is not declared by the family, or a value is not valid.
        """
        known = scope.field_names() if scope else ()
        fields = dict(self.fields)
        for name, patterns in self.fields:
            if name not in known:
                listed = f"known fields: {', '.join(known)}" if known else "the family has no fields"
                raise CapabilityInvalid(
                    str(self), f"unknown field `{name}` of `{self.family}`{did_you_mean(name, known)}; {listed}"
                )
            if scope and name in scope.amounts:
                fields[name] = _minimal(_Amount.of(one, name, str(self)) for one in patterns)
            valid = scope.valid_values.get(name) if scope else None
            for pattern in patterns if valid else ():
                if not any(map(pattern.matches, valid or ())):
                    problem = f"invalid value `{pattern}` of `{name}`{did_you_mean(pattern.text, valid or ())}"
                    raise CapabilityInvalid(str(self), f"{problem}; valid values: {', '.join(valid or ())}")
        written = {name: tuple(pattern.written for pattern in patterns) for name, patterns in self.fields}
        defaults = scope.complete(written) if scope else {}
        added = {name: _minimal(map(_Pattern, values)) for name, values in defaults.items()}
        completed = tuple(sorted({**added, **fields}.items()))
        return Capability(self.family, completed, scope.explain(written) if scope else "")

    def allows(self, values: Mapping[str, str], *, known_later: Collection[str] = ()) -> bool:
        """Return whether the capability allows a request with these field values.

        If the request omits a field that the capability restricts, the result is false, because omitting it means any
        value. Fields in ``known_later`` are the exception: they are checked when their values are known.
        """
        return all(
            any(pattern.matches(values[name]) for pattern in patterns) if name in values else name in known_later
            for name, patterns in self.fields
        )

    def admits(self, name: str, values: Iterable[str]) -> bool:
        """Return whether the capability allows one of these values of a field."""
        patterns = dict(self.fields).get(name)
        return patterns is None or any(pattern.matches(value) for pattern in patterns for value in values)

    @property
    def limits(self) -> Mapping[str, tuple[str, ...]]:
        """The values of each field of which the capability lists the values, without a trailing ``*``."""
        return {
            name: tuple(pattern.text for pattern in patterns)
            for name, patterns in self.fields
            if not any(pattern.prefix for pattern in patterns)
        }

    def covers(self, other: Capability) -> bool:
        """Return whether this capability allows everything that ``other`` allows."""
        if self.family != other.family:
            return False
        theirs = dict(other.fields)
        return all(
            name in theirs and all(any(mine.covers(wanted) for mine in patterns) for wanted in theirs[name])
            for name, patterns in self.fields
        )

    def meet(self, other: Capability) -> Capability | None:
        """Return the intersection of two capabilities, or ``None`` if it is empty."""
        if self.family != other.family:
            return None
        mine, theirs = dict(self.fields), dict(other.fields)
        fields = {**mine, **theirs}
        for name in mine.keys() & theirs.keys():
            fields[name] = _minimal(found for a in mine[name] for b in theirs[name] if (found := a.meet(b)))
            if not fields[name]:
                return None
        return Capability(self.family, tuple(sorted(fields.items())))


_Comparable = TypeVar("_Comparable", _Pattern, Capability)


def _minimal(found: Iterable[_Comparable]) -> tuple[_Comparable, ...]:
    """Return the items that no other item covers, in a canonical order, so that equal sets give equal tuples."""
    distinct = set(found)
    kept = (one for one in distinct if not any(other != one and other.covers(one) for other in distinct))
    return tuple(sorted(kept, key=str))


@frozen(cache_hash=True)
class Grant:
    """The capabilities that the host holds for one call. A grant can be narrowed, never widened.

    Attributes:
        capabilities: the capabilities in canonical form.

    Example:
        >>> grant = Grant.parse(["sql:path=notes.db", "http"])
        >>> grant.allows("http", {"host": "example.org"})
        True
        >>> str(grant.narrow(Grant.parse(["http:host=example.org"])))
        'http:host=example.org'
    """

    capabilities: tuple[Capability, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Grant:
        """Parse each text and return a grant of all these capabilities.

        Raises:
            CapabilityInvalid: if a text cannot be parsed, or a text is passed instead of a list.
        """
        if isinstance(texts, str):
            raise CapabilityInvalid(texts, "expected a list of capabilities, got a text")
        return cls.of(Capability.parse(text) for text in texts)

    @classmethod
    def of(cls, capabilities: Iterable[Capability]) -> Grant:
        """Return a grant in canonical form: sorted, without capabilities that another one covers."""
        return cls(_minimal(capabilities))

    def __str__(self) -> str:
        return " ".join(map(str, self.capabilities))

    def __bool__(self) -> bool:
        return bool(self.capabilities)

    def texts(self) -> tuple[str, ...]:
        """Return the capabilities as sorted text."""
        return tuple(map(str, self.capabilities))

    def families(self) -> tuple[str, ...]:
        """Return the distinct families of the capabilities, sorted."""
        return tuple(sorted({capability.family for capability in self.capabilities}))

    def allows(self, family: str, values: Mapping[str, str]) -> bool:
        """Return whether a capability of ``family`` allows a request with these field values."""
        return self.match(family, values) is not None

    def match(self, family: str, values: Mapping[str, str], *, known_later: Collection[str] = ()) -> Capability | None:
        """Return the first capability that allows a request with these field values, or ``None``."""
        mine = (one for one in self.capabilities if one.family == family)
        return next((one for one in mine if one.allows(values, known_later=known_later)), None)

    def covers(self, other: Grant) -> bool:
        """Return whether each capability of ``other`` is covered by a capability of this grant."""
        return all(any(mine.covers(wanted) for mine in self.capabilities) for wanted in other.capabilities)

    def missing(self, wanted: Grant) -> Grant:
        """Return the capabilities of ``wanted`` that this grant does not cover."""
        return Grant.of(one for one in wanted.capabilities if not any(mine.covers(one) for mine in self.capabilities))

    def narrow(self, other: Grant) -> Grant:
        """Return the intersection of two grants."""
        return Grant.of(met for a in self.capabilities for b in other.capabilities if (met := a.meet(b)))
