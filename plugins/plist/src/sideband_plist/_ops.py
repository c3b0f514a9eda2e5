"""The ops `plist.parse` and `plist.dump`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
from anyio import from_thread, to_thread
from attrs import define, field
from sideband.ops import Level, OpContext, op

from ._binary import MAGIC, read_binary
from ._budget import Pulse
from ._config import Config
from ._errors import PlistTooLarge
from ._extract import extract
from ._models import DumpParams, ParseParams
from ._writing import write
from ._xml import read_xml

T = TypeVar("T")

_SHORT_BYTES = 32 * 1024


@define(eq=False)
class Readers:
    """The state of the plugin: the threads in which large property lists are parsed."""

    config: Config
    _limiter: anyio.CapacityLimiter = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(self.config.threads)

    async def run(self, length: int | None, work: Callable[[Pulse], T]) -> T:
        """Run ``work``, in a thread unless its input is short, and return the result."""
        if length is not None and length <= _SHORT_BYTES:
            return work(_never_stop)
        return await to_thread.run_sync(work, from_thread.check_cancelled, limiter=self._limiter)


def _never_stop() -> None:
    """Do nothing, so that short input is processed without interruption."""


@op("plist.parse", requires="plist", level=Level.SAFE, record=("extract", "typed"), egress=False)
async def parse(params: ParseParams, ctx: OpContext) -> Any:
    """Parse a property list, in XML or in the binary format, to plain data.

    Args:
        params: `data` is the document, as bytes, or as text if it is XML; `extract` maps names to paths:
            `{"user": ["Accounts", 0, "Name"]}`, or a single index into the objects of a keyed archive;
            with `typed=True` a date is `{"__date__": "2001-01-01T00:00:00Z"}` instead of text.
        ctx: the op's context.

    Returns:
        The value, or an object of the extracted parts. Data is bytes, a reference of a keyed archive is
        `{"CF$UID": 7}`.

    Raises:
        PlistSyntax: if it is not a valid property list.
        PlistRefused: if it declares entities, or an object in it contains itself.
        PlistTooLarge: if it exceeds the limits on size, depth or values.
        PlistValue: if it contains values that JSON does not support: an integer of more than 64 bits, infinity, null.
        PlistMissing: if a path to extract does not exist.

    Example:
        ``{"data": "<plist><dict><key>a</key><integer>1</integer></dict></plist>", "extract": {"a": ["a"]}}``
    """
    readers: Readers = ctx.state
    data = params.data if isinstance(params.data, bytes) else params.data.encode()
    if len(data) > readers.config.max_bytes:
        raise PlistTooLarge(f"document of {len(data):,} bytes exceeds {readers.config.max_bytes:,} bytes")

    def work(pulse: Pulse) -> Any:
        if data.startswith(MAGIC):
            found = read_binary(data, readers.config, pulse, typed=params.typed)
        else:
            encoding = "utf-8" if isinstance(params.data, str) else None
            found = read_xml(data, readers.config, pulse, typed=params.typed, encoding=encoding)
        return found if params.extract is None else extract(found, params.extract)

    # a short binary document can expand to a large value
    return await readers.run(None if data.startswith(MAGIC) else len(data), work)


@op("plist.dump", requires="plist", level=Level.SAFE, record=("form",), egress=False)
async def dump(params: DumpParams, ctx: OpContext) -> bytes:
    """Write plain data as a property list.

    Args:
        params: `value` consists of objects, lists, text, numbers, booleans and bytes; a date is
            `{"__date__": "2001-01-01T00:00:00Z"}`, a reference of a keyed archive `{"CF$UID": 7}`; `form` is `xml` or
            `binary`.
        ctx: the op's context.

    Returns:
        The document.

    Raises:
        PlistValue: if it contains values that property lists do not support.
        PlistTooLarge: if it exceeds the limits on size, depth or values.

    Example:
        ``{"value": {"Name": "demo", "Built": {"__date__": "2001-01-01T00:00:00Z"}}}``
    """
    readers: Readers = ctx.state
    return await readers.run(None, lambda pulse: write(params.value, params.form, readers.config, pulse))
