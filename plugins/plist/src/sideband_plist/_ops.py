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

_SHORT = 32 * 1024


@define(eq=False)
class Readers:
    """The state of the plugin: the threads in which long property lists are read."""

    config: Config
    _limiter: anyio.CapacityLimiter = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(self.config.threads)

    async def run(self, length: int | None, work: Callable[[Pulse], T]) -> T:
        """The result of ``work``, in a thread unless what it reads is short."""
        if length is not None and length <= _SHORT:
            return work(_go_on)
        return await to_thread.run_sync(work, from_thread.check_cancelled, limiter=self._limiter)


def _go_on() -> None:
    """What is short is read to its end."""


@op("plist.parse", requires="plist", level=Level.SAFE, record=("extract", "typed"))
async def parse(params: ParseParams, ctx: OpContext) -> Any:
    """Read a property list, in XML or in the binary form, as plain data.

    Args:
        params: `data` is the document, as bytes, or as text if it is XML; `extract` names parts, and where they are:
            `{"user": ["Accounts", 0, "Name"]}`, or an index alone, which counts the objects of a keyed archive;
            with `typed=True` a date is `{"__date__": "2001-01-01T00:00:00Z"}` instead of the text alone.
        ctx: the dispatch.

    Returns:
        The value, or an object of the parts. Data are bytes, a reference of a keyed archive is `{"CF$UID": 7}`.

    Raises:
        PlistSyntax: it is no property list, or a damaged one.
        PlistRefused: it declares entities, or an object in it holds itself.
        PlistTooLarge: it is longer, deeper or holds more than the limits allow.
        PlistValue: it holds what JSON can't carry: a number of more than 64 bits, one that is infinite, a null.
        PlistMissing: a part is not there.

    Example:
        ``{"data": "<plist><dict><key>a</key><integer>1</integer></dict></plist>", "extract": {"a": ["a"]}}``
    """
    readers: Readers = ctx.state
    data = params.data if isinstance(params.data, bytes) else params.data.encode()
    if len(data) > readers.config.max_bytes:
        raise PlistTooLarge(f"it has {len(data):,} bytes, and may have {readers.config.max_bytes:,}")

    def work(pulse: Pulse) -> Any:
        if data.startswith(MAGIC):
            found = read_binary(data, readers.config, pulse, typed=params.typed)
        else:
            encoding = "utf-8" if isinstance(params.data, str) else None
            found = read_xml(data, readers.config, pulse, typed=params.typed, encoding=encoding)
        return found if params.extract is None else extract(found, params.extract)

    # a binary one is short only in its document: what it holds may be long
    return await readers.run(None if data.startswith(MAGIC) else len(data), work)


@op("plist.dump", requires="plist", level=Level.SAFE, record=("form",))
async def dump(params: DumpParams, ctx: OpContext) -> bytes:
    """Write plain data as a property list.

    Args:
        params: `value` is made of objects, lists, texts, numbers, booleans and bytes; a date is
            `{"__date__": "2001-01-01T00:00:00Z"}`, a reference of a keyed archive `{"CF$UID": 7}`; `form` is `xml` or
            `binary`.
        ctx: the dispatch.

    Returns:
        The document.

    Raises:
        PlistValue: it holds what a property list does not have.
        PlistTooLarge: it is longer, deeper or holds more than the limits allow.

    Example:
        ``{"value": {"Name": "demo", "Built": {"__date__": "2001-01-01T00:00:00Z"}}}``
    """
    readers: Readers = ctx.state
    return await readers.run(None, lambda pulse: write(params.value, params.form, readers.config, pulse))
