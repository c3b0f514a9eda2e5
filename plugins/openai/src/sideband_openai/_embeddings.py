"""Parser for embeddings. Servers may return the vectors in any order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from sideband.messages import Usage
from sideband.providers import Embeddings

from ._response import Malformed


def embeddings_of(data: Mapping[str, Any], count: int) -> Embeddings:
    """Return the vectors in a response, in the order of the texts.

    Args:
        data: the decoded response.
        count: the number of texts.

    Raises:
        Malformed: if there is not exactly one vector for each text.
    """
    items = data.get("data")
    found: dict[int, Any] = {}
    for place, item in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(item, dict):
            raise Malformed("an embedding that is not an object")
        index = item.get("index", place)
        if not isinstance(index, int) or index in found:
            raise Malformed(f"an embedding with the index {index!r}")
        found[index] = item.get("embedding")
    if sorted(found) != list(range(count)):
        raise Malformed(f"{len(found)} embeddings for {count} texts")
    try:
        return Embeddings(vectors=tuple(found[index] for index in range(count)), usage=_usage(data.get("usage")))
    except ValidationError:
        raise Malformed("an embedding that is not a list of numbers") from None


def _usage(data: Any) -> Usage:
    tokens = data.get("prompt_tokens") if isinstance(data, dict) else None
    return Usage(input=tokens) if isinstance(tokens, int) and tokens >= 0 else Usage()
