"""Reservations: take a part of an amount that is limited within a time window, and give back what was not used.

What was taken is a document of the store, written with its version. A limit therefore holds for all tasks and all hosts
that use the store, without a lock. The window is divided into slices, which bounds the size of the document.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable

import anyio
from attrs import define, field, frozen

from ..errors import ReservationRefused, StoreConflict
from ._protocol import Store

_SLICES = 64
_MAX_AMOUNT = 1 << 50
_MIN_SECONDS, _MAX_SECONDS = 0.001, 1e9
_FIRST_PAUSE, _MAX_PAUSE = 0.002, 0.05
_RETRY_SECONDS = 20.0

_Amounts = dict[int, int]
"""The amount that was taken in each slice. Slices are numbered from 1970."""


@frozen
class Reservations:
    """The reservations in a store.

    An amount that was taken is available again when its window has passed, or when its taker gives it back. A host that
    dies gives nothing back. The clocks of hosts that share a store must agree.

    Args:
        store: the store, such as ``ctx.store``. Each limit is a document ``reservation/SECONDS/NAME`` in it.
        clock: returns the time in seconds since 1970.

    Example:
        >>> async def post(params: PostParams, ctx: OpContext) -> None:
        ...     taken = await Reservations(ctx.store).take("posts", of=20, seconds=3_600)
        ...     if not await send(params):
        ...         await taken.give_back()
    """

    store: Store = field()
    clock: Callable[[], float] = time.time

    @store.validator
    def _check_store(self, _: object, store: object) -> None:
        if not hasattr(store, "put"):
            raise TypeError(f"`Reservations` needs a store, such as `ctx.store`, got {type(store).__name__}")

    async def take(self, name: str, count: int = 1, *, of: int, seconds: float, durable: bool = True) -> Reservation:
        """Take ``count`` of the ``of`` that may be taken within any period of ``seconds``.

        The amount is available again after ``seconds``, or up to 1/64 of that later. If this call is cancelled or
        raises a ``StoreError``, it may have been taken.

        Args:
            name: the name of the limit. The same name with other ``seconds`` is another limit.
            count: the amount.
            of: the limit.
            seconds: the length of the window.
            durable: whether a power cut cannot lose the reservation, as in ``Store``.

        Raises:
            ReservationRefused: if less is left. Nothing was taken.
            StoreConflict: if each attempt of the last 20 seconds conflicted with another writer. Nothing was taken.
            ValueError: if a number is invalid.
        """
        _check(count, of, seconds)
        key = f"reservation/{float(seconds)!r}/{name}"
        current = 0

        def take(amounts: _Amounts) -> ReservationRefused | None:
            nonlocal current
            now = self.clock() * _SLICES / seconds
            current = math.floor(now)
            _expire(amounts, current)
            left = of - sum(amounts.values())
            if left < count:
                free_in = math.ceil((_free_at(amounts, count - left) - now) * seconds / _SLICES)
                return ReservationRefused(name, count, left=max(left, 0), of=of, seconds=seconds, free_in=free_in)
            amounts[current] = amounts.get(current, 0) + count
            return None

        await _change(self.store, key, take, durable=durable)
        return Reservation(count, self.store, key, current)


@define(eq=False)
class Reservation:
    """An amount that was taken.

    Attributes:
        count: the amount.
    """

    count: int
    _store: Store = field(repr=False)
    _key: str = field(repr=False)
    _slice: int = field(repr=False)
    _is_held: bool = field(default=True, init=False, repr=False)

    async def give_back(self) -> None:
        """Give the amount back, once. Does nothing if its window has passed.

        If this call is cancelled or raises, it is not repeated: the amount is available again after its window.

        Raises:
            StoreConflict: if each attempt of the last 20 seconds conflicted with another writer.
        """
        # After a failure it is unknown whether the amount was given back: twice would be that of others.
        is_held, self._is_held = self._is_held, False

        def give_back(amounts: _Amounts) -> None:
            left = amounts.pop(self._slice, 0) - self.count
            if left > 0:
                amounts[self._slice] = left

        if is_held:
            await _change(self._store, self._key, give_back, durable=False)


async def _change(
    store: Store, key: str, change: Callable[[_Amounts], ReservationRefused | None], *, durable: bool
) -> None:
    """Change the document of a limit. If another writer was faster, read it again and retry after a random pause.

    Args:
        store: the store.
        key: the key of the document.
        change: changes the amounts in place. May return a refusal, which is raised.
        durable: whether the change is on disk when this returns.
    """
    deadline = anyio.current_time() + _RETRY_SECONDS
    pause = _FIRST_PAUSE
    while True:
        found = await store.get(key)
        before = dict(found.value) if found else {}
        amounts = {int(number): int(amount) for number, amount in before.items()}
        refusal = change(amounts)
        after = {str(number): amount for number, amount in amounts.items()}
        try:
            if after != before:
                version = found.version if found else 0
                await store.put(key, after, version=version, durable=durable and refusal is None)
        except StoreConflict:
            if anyio.current_time() >= deadline:
                raise
            await anyio.sleep(random.random() * pause)  # noqa: S311  not for cryptography
            pause = min(2 * pause, _MAX_PAUSE)
            continue
        if refusal is not None:
            raise refusal
        return


def _expire(amounts: _Amounts, current: int) -> None:
    """Remove the slices that have left the window."""
    for number in sorted(amounts):
        if number > current:
            # The clock was set back. Otherwise these would count for longer than a window.
            amounts[current] = amounts.get(current, 0) + amounts.pop(number)
        elif number < current - _SLICES:
            del amounts[number]


def _free_at(amounts: _Amounts, missing: int) -> int:
    """Return the slice in which at least the amount ``missing`` has left the window."""
    for number in sorted(amounts):
        missing -= amounts[number]
        if missing <= 0:
            return number + _SLICES + 1
    raise AssertionError  # a request is at most the limit


def _check(count: int, of: int, seconds: float) -> None:
    for name, amount in (("of", of), ("count", count)):
        if type(amount) is not int or not 1 <= amount <= _MAX_AMOUNT:
            raise ValueError(f"`{name}` must be an integer of at least 1 and at most {_MAX_AMOUNT:,}, got {amount!r}")
    if count > of:
        raise ValueError(f"`count` must not exceed the limit of {of:,}, got {count:,}")
    if type(seconds) not in (int, float) or not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
        raise ValueError(f"`seconds` must be a number from {_MIN_SECONDS:g} to {_MAX_SECONDS:,.0f}, got {seconds!r}")
