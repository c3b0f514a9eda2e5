"""Check that data that leaves contains no secret of which the receiver must not know."""

from __future__ import annotations

from collections.abc import Mapping

from ..messages import JsonPieces
from ..ops import EgressRefused
from ._redaction import Redaction


def check_egress(
    redactor: Redaction, op: str, audience: str | None, parts: Mapping[str, str | bytes | JsonPieces]
) -> None:
    """See ``EffectContext.check_egress``."""
    for part, content in parts.items():
        name = _unbound(redactor, audience, content)
        if name is not None:
            raise EgressRefused(op, name, part, audience)


def _unbound(redactor: Redaction, audience: str | None, content: str | bytes | JsonPieces) -> str | None:
    if not isinstance(content, JsonPieces):
        return redactor.unbound(content, audience)
    # Read first: a value that another thread adds now belongs to a later generation.
    generation = redactor.generation
    if audience is None and not redactor.crosses_json:
        return content.unbound(lambda piece: redactor.unbound(piece, None), generation)
    return redactor.unbound(bytes(content), audience)
