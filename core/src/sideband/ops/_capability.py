"""Capabilities and grants: parsing, printing, comparing and narrowing. No plugin code takes part in any of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar
from urllib.parse import quote, unquote

from attrs import frozen

from ..suggestions import did_you_mean
from ._errors import CapabilityInvalid
from ._scope import Scope

__all__ = ["Capability", "Grant"]

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
# What may stand in a value unencoded; `%`, `,`, `|`, `=`, `*` and white space may not.
_PLAIN = "/:@.-_~+$&;!()[]?'"


@frozen
class _Pattern:
    """One allowed value of a field: exact, or everything that begins with it."""

    text: str
    prefix: bool = False

    @classmethod
    def parse(cls, raw: str, whole: str) -> _Pattern:
        body = raw.removesuffix("*")
        if not raw:
            raise CapabilityInvalid(whole, "a value is empty")
        if "*" in body or "=" in body or any(character.isspace() for character in body):
            raise CapabilityInvalid(whole, f"the value `{raw}` has a `*`, `=` or space inside; percent-encode it")
        if _PERCENT.search(body):
            raise CapabilityInvalid(whole, f"the value `{raw}` has a `%` that encodes nothing; write `%25`")
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


@frozen(cache_hash=True)
class Capability:
    """The right to use the ops of one family within a scope. A field that is absent means any value.

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

    @classmethod
    def parse(cls, text: str) -> Capability:
        """Read ``family[:field=value|value,field=value]``.

        Raises:
            CapabilityInvalid: what is wrong with it, and how to write it.
        """
        family, colon, rest = text.partition(":")
        if not _NAME.match(family):
            raise CapabilityInvalid(text, f"`{family}` is no family name")
        if colon and not rest:
            raise CapabilityInvalid(text, "nothing follows the `:`")
        fields: dict[str, tuple[_Pattern, ...]] = {}
        for part in rest.split(",") if rest else ():
            name, equals, values = part.partition("=")
            if not equals or not _NAME.match(name):
                raise CapabilityInvalid(text, f"`{part}` is not field=value")
            if name in fields:
                raise CapabilityInvalid(text, f"the field `{name}` stands twice; join its values with `|`")
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
        """The capability that allows a request with these field values, and no other."""
        return cls(family, tuple(sorted((name, (_Pattern(value),)) for name, value in values.items())))

    def fit(self, scope: type[Scope] | None) -> Capability:
        """This capability with its family's defaults filled in, so that comparing fields is all that is left to do.

        Raises:
            CapabilityInvalid: it uses a field that the family does not have.
        """
        known = scope.field_names() if scope else ()
        for name, _ in self.fields:
            if name not in known:
                fields = f"it has {', '.join(known)}" if known else "it has none"
                raise CapabilityInvalid(
                    str(self), f"`{self.family}` has no field `{name}`{did_you_mean(name, known)}; {fields}"
                )
        written = {name: tuple(pattern.written for pattern in patterns) for name, patterns in self.fields}
        defaults = scope.complete(written) if scope else {}
        added = {name: _minimal(map(_Pattern, values)) for name, values in defaults.items()}
        return Capability(self.family, tuple(sorted({**added, **dict(self.fields)}.items())))

    def allows(self, values: Mapping[str, str], *, known_later: Collection[str] = ()) -> bool:
        """Whether a request with these field values lies within this capability.

        A field that the capability limits and the request leaves open is not allowed: open means any value. Unless it
        is one of ``known_later``, which are compared once their values are known.
        """
        return all(
            any(pattern.matches(values[name]) for pattern in patterns) if name in values else name in known_later
            for name, patterns in self.fields
        )

    def covers(self, other: Capability) -> bool:
        """Whether everything that ``other`` allows is allowed by this one."""
        if self.family != other.family:
            return False
        theirs = dict(other.fields)
        return all(
            name in theirs and all(any(mine.covers(wanted) for mine in patterns) for wanted in theirs[name])
            for name, patterns in self.fields
        )

    def meet(self, other: Capability) -> Capability | None:
        """What both allow, or ``None`` if that is nothing."""
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
    """Without those that another one covers, in a stable order: equal sets are equal tuples."""
    distinct = set(found)
    kept = (one for one in distinct if not any(other != one and other.covers(one) for other in distinct))
    return tuple(sorted(kept, key=str))


@frozen(cache_hash=True)
class Grant:
    """The capabilities that the host holds for one call. Only ever narrowed.

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
        """A grant of all the capabilities written in ``texts``.

        Raises:
            CapabilityInvalid: one of them can't be parsed.
        """
        return cls.of(Capability.parse(text) for text in texts)

    @classmethod
    def of(cls, capabilities: Iterable[Capability]) -> Grant:
        """A grant in its canonical form: without what another one covers, sorted."""
        return cls(_minimal(capabilities))

    def __str__(self) -> str:
        return " ".join(map(str, self.capabilities))

    def __bool__(self) -> bool:
        return bool(self.capabilities)

    def texts(self) -> tuple[str, ...]:
        """The capabilities as text, sorted."""
        return tuple(map(str, self.capabilities))

    def families(self) -> tuple[str, ...]:
        """The families that appear in it, sorted, each once."""
        return tuple(sorted({capability.family for capability in self.capabilities}))

    def allows(self, family: str, values: Mapping[str, str]) -> bool:
        """Whether one capability of ``family`` allows a request with these field values."""
        return self.match(family, values) is not None

    def match(self, family: str, values: Mapping[str, str], *, known_later: Collection[str] = ()) -> Capability | None:
        """The capability that allows a request with these field values, or ``None``."""
        mine = (one for one in self.capabilities if one.family == family)
        return next((one for one in mine if one.allows(values, known_later=known_later)), None)

    def covers(self, other: Grant) -> bool:
        """Whether each capability of ``other`` lies within one of this grant."""
        return all(any(mine.covers(wanted) for mine in self.capabilities) for wanted in other.capabilities)

    def missing(self, wanted: Grant) -> Grant:
        """The capabilities of ``wanted`` that this grant does not cover."""
        return Grant.of(one for one in wanted.capabilities if not any(mine.covers(one) for mine in self.capabilities))

    def narrow(self, other: Grant) -> Grant:
        """What both allow."""
        return Grant.of(met for a in self.capabilities for b in other.capabilities if (met := a.meet(b)))
