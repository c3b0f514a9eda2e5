"""Parameters of the ops."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from sideband.ops import OpParams

Step = Annotated[int, Field(ge=0)] | Annotated[str, Field(max_length=1024)]
Path = Annotated[int, Field(ge=0)] | Annotated[list[Step], Field(max_length=64)]


class ParseParams(OpParams):
    """Parameters of `plist.parse`."""

    data: Annotated[
        str | bytes, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "string", "format": "binary"}]})
    ]
    extract: Annotated[dict[str, Path], Field(max_length=256)] | None = None
    typed: bool = False


class DumpParams(OpParams):
    """Parameters of `plist.dump`."""

    value: Any
    form: Literal["xml", "binary"] = "xml"
