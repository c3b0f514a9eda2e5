"""JSON that is made once and sent often: models keep what was made of them, and how far it was checked for secrets.

A conversation is sent again with each turn. Its messages never change, so each keeps its digest and its form in the
requests of the last provider. A text is searched for secrets once in each generation of secrets (``Redaction``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from attrs import frozen
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_jsonable_python

_STRUCTURE = b"{}[],"
canonical_json = json.JSONEncoder(sort_keys=True, allow_nan=False).encode
_Built = TypeVar("_Built", bound="Fragment | CarryingTuple[Any]")
_Piece_co = TypeVar("_Piece_co", bound="Fragment | CarryingModel", covariant=True)


class Fragment:
    r"""A piece of a JSON text. It begins and ends with one of ``{}[],``, or is empty.

    Thus a secret that spans two pieces has two of these characters in a row, outside of a string.

    Attributes:
        encoded: the piece.

    Example:
        >>> Fragment(b'{"role":"user","content":"hello"}').encoded
        b'{"role":"user","content":"hello"}'
        >>> Fragment(b'"hello"')
        Traceback (most recent call last):
            ...
        ValueError: a fragment begins and ends with one of {}[],
    """

    __slots__ = ("_checked", "encoded")

    def __init__(self, encoded: bytes) -> None:
        if encoded and not (encoded[0] in _STRUCTURE and encoded[-1] in _STRUCTURE):
            raise ValueError(f"a fragment begins and ends with one of {_STRUCTURE.decode()}")
        self.encoded = encoded


class CarryingModel(BaseModel):
    """Base of frozen models that keep what was made of them. Copies begin without it."""

    model_config = ConfigDict(defer_build=True)

    __slots__ = ("_checked", "_digest", "_fragment", "_payload")

    @property
    def encoded(self) -> bytes:
        """The model as JSON. It is not kept, since only a check for new secrets needs it again."""
        return self.__pydantic_serializer__.to_json(self)

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the content. Equal models have equal digests."""
        known: bytes | None = getattr(self, "_digest", None)
        if known is None:
            plain = to_jsonable_python(self, bytes_mode="base64", inf_nan_mode="constants")
            known = hashlib.sha256(canonical_json(plain).encode()).digest()
            object.__setattr__(self, "_digest", known)
        return known


class CarryingTuple(tuple[_Piece_co, ...]):  # noqa: SLOT001  it keeps what was made of it
    """Models that are sent together in each turn, such as tools, or their fragments.

    They are immutable. What was made of all of them is kept here, so that a turn does not visit each one.

    Example:
        >>> CarryingTuple([Fragment(b"{}")]).kinds
        frozenset({<class 'sideband.models._pieces.Fragment'>})
    """

    _checked: int
    _payload: Any

    @cached_property
    def kinds(self) -> frozenset[type]:
        """The types of the pieces."""
        return frozenset(map(type, self))

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of the digests of the pieces, which are models."""
        return hashlib.sha256(b"".join([one.digest for one in self])).digest()  # type: ignore[union-attr]


@frozen
class JsonPieces:
    """A JSON text in pieces. It is checked piece by piece, each piece once for the same secrets, and sent joined.

    Args:
        parts: fragments, and sequences of fragments or messages, which are joined with commas.

    Example:
        >>> array = [Fragment(b"{}"), Fragment(b"{}")]
        >>> bytes(JsonPieces((Fragment(b'{"messages":['), array, Fragment(b"]}"))))
        b'{"messages":[{},{}]}'
    """

    parts: Sequence[Fragment | Sequence[Fragment | CarryingModel]]

    def __bytes__(self) -> bytes:
        return b"".join(
            [
                part.encoded if isinstance(part, Fragment) else b",".join([one.encoded for one in part])
                for part in self.parts
            ]
        )

    def unbound(self, search: Callable[[bytes], str | None], generation: int) -> str | None:
        """Return what ``search`` finds in a piece that was not searched in this generation of secrets, or ``None``."""
        for part in self.parts:
            if getattr(part, "_checked", 0) == generation:
                continue
            pieces = (part,) if isinstance(part, Fragment) else part
            for one in [one for one in pieces if getattr(one, "_checked", 0) != generation]:
                if (found := search(one.encoded)) is not None:
                    return found
                object.__setattr__(one, "_checked", generation)
            if isinstance(part, CarryingTuple):
                part._checked = generation  # noqa: SLF001  a class of this module
        return None


def fragment(model: CarryingModel | CarryingTuple[Any], form: Hashable, build: Callable[[Any], _Built]) -> _Built:
    """Return the fragment of a model, or those of a ``CarryingTuple``. It is kept, and built again for another form.

    Args:
        model: the model or models.
        form: what the fragment depends on besides the model, such as the name of a protocol.
        build: returns the fragment of the model.

    Example:
        >>> from sideband.messages import UserMessage
        >>> fragment(UserMessage(content="hi"), "text", lambda one: Fragment(b'["%b"]' % one.text.encode())).encoded
        b'["hi"]'
    """
    known: tuple[Hashable, _Built] | None = getattr(model, "_fragment", None)
    if known is None or known[0] != form:
        known = (form, build(model))
        object.__setattr__(model, "_fragment", known)
    return known[1]
