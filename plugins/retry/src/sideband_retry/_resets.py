"""Extract the time at which a call can succeed again from headers, fields of the body, or sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from math import isfinite

LONGEST = 366 * 86_400.0
"""Seconds. Longer waits are reduced to this."""

_EPOCH, _EPOCH_MS = 1e9, 1e11
_LONGEST_VALUE = 64

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_UNIT_NAMES = {
    "ms": ("ms", "msec", "msecs", "millisecond", "milliseconds", "毫秒"),
    "s": ("s", "sec", "secs", "second", "seconds", "秒", "秒钟"),
    "m": ("m", "min", "mins", "minute", "minutes", "分", "分钟"),
    "h": ("h", "hr", "hrs", "hour", "hours", "小时"),
    "d": ("d", "day", "days", "天"),
    "w": ("w", "week", "weeks", "周"),
}
_SECONDS = {name: _UNITS[unit] for unit, names in _UNIT_NAMES.items() for name in names}
_UNIT = "|".join(sorted(_SECONDS, key=len, reverse=True))
_PART = rf"[0-9]{{1,9}}(?:\.[0-9]{{1,12}})?\s?(?:{_UNIT})(?![a-zA-Z])"
_DURATION = rf"{_PART}(?:,?\s?(?:and\s)?{_PART}){{0,4}}"
_PARTS = re.compile(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,12}})?)\s?({_UNIT})(?![a-zA-Z])", re.IGNORECASE)
_ONLY_DURATION = re.compile(rf"(?:{_DURATION})", re.IGNORECASE)

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{1,2}(?::[0-9]{2})?\s?[ap]m|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONE = r"(?:\s?(?P<short>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})(?![a-zA-Z0-9])|\s?\((?P<zone>[A-Za-z_+/-]{1,40})\))?"
_MOMENT = (
    rf"(?:(?P<date>{_DATE})|(?P<month>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?\s(?P<day>[0-9]{{1,2}}))?"
    rf"(?:,?\s?(?:at\s|T)?(?P<clock>{_CLOCK})(?:\.[0-9]{{1,9}})?)?{_ZONE}"
)
_AGAIN = r"(?:try again|retry|wait|resets?|reset time|renews?|available(?: again)?|regain access)"

_FIELD = re.compile(
    r'"(?P<name>retry_?after(?:_?(?:ms|s|sec|seconds))?|retry_?delay|resets?_?in(?:_?(?:ms|seconds))?|resets?_?at|'
    r'resets?_?time|x-ratelimit-reset[a-z-]{0,24})"\s{0,4}:\s{0,4}"?(?P<value>[^",}]{1,64})',
    re.IGNORECASE,
)
_SAID_DURATION = re.compile(
    rf"{_AGAIN}(?:\s(?:again\s)?(?:in|after|for))?:?\s(?:about\s|approximately\s|another\s)?(?P<wait>{_DURATION})",
    re.IGNORECASE,
)
_SAID_MOMENT = re.compile(rf"{_AGAIN}(?:\s(?:is|at|on|after))?:?\s{_MOMENT}", re.IGNORECASE)
_SAID_EPOCH = re.compile(r"limit reached\|([0-9]{10,13})(?![0-9])", re.IGNORECASE)
_SAID_CHINESE = re.compile(rf"(?P<wait>{_PART})\s?(?:之?后|以后)", re.IGNORECASE)
_MOMENT_CHINESE = re.compile(rf"(?P<date>{_DATE})[\sT](?P<clock>{_CLOCK})[^0-9]{{0,8}}重置")
_IN_CHINA = {"month": None, "day": None, "short": "+08:00", "zone": None}


def named_wait(headers: Mapping[str, str], text: str, now: float, *, limited: bool) -> float | None:
    """Return the seconds until a call can succeed again, if the provider names a time.

    Args:
        headers: the headers of the response by lower-case name.
        text: the text of the response.
        now: the current time in seconds since 1970.
        limited: whether a limit caused the failure. Headers about limits are part of any response.

    Returns:
        Between 0 and ``LONGEST``, or ``None`` if no time is named.
    """
    for wait in _named(headers, text, now, limited=limited):
        if wait is not None:
            return min(max(wait, 0.0), LONGEST)
    return None


def _named(headers: Mapping[str, str], text: str, now: float, *, limited: bool) -> Iterator[float | None]:
    milliseconds = _number(headers.get("retry-after-ms", ""))
    yield None if milliseconds is None else milliseconds / 1_000
    yield wait_of(headers.get("retry-after", ""), now)
    yield from _fields(text, now)
    yield from _words(text, now)
    if limited:
        yield _of_limits(headers, now)


def wait_of(value: str, now: float) -> float | None:
    """Parse the wait in a header or a field: a number, a duration, a date, or seconds since 1970.

    Example:
        >>> wait_of("6m0s", now=0), wait_of("Thu, 01 Jan 1970 00:01:00 GMT", now=50), wait_of("1700000060", 1.7e9)
        (360.0, 10.0, 60.0)
    """
    value = value.strip()[:_LONGEST_VALUE]
    number = _number(value)
    if number is not None:
        if number >= _EPOCH_MS:
            return number / 1_000 - now
        return number - now if number >= _EPOCH else number
    if _ONLY_DURATION.fullmatch(value):
        return _duration(value)
    moment = _iso(value) or _http_date(value)
    return moment.timestamp() - now if moment else None


def _fields(text: str, now: float) -> Iterator[float | None]:
    for found in _FIELD.finditer(text):
        wait = wait_of(found["value"], now)
        yield wait / 1_000 if wait is not None and found["name"].lower().endswith("ms") else wait


def _words(text: str, now: float) -> Iterator[float | None]:
    for pattern in (_SAID_DURATION, _SAID_CHINESE):
        for found in pattern.finditer(text):
            yield _duration(found["wait"])
    for found in _SAID_EPOCH.finditer(text):
        yield wait_of(found[1], now)
    for pattern, rest in ((_SAID_MOMENT, {}), (_MOMENT_CHINESE, _IN_CHINA)):
        for found in pattern.finditer(text):
            moment = _moment({**rest, **found.groupdict()}, now)
            yield moment.timestamp() - now if moment else None


def _of_limits(headers: Mapping[str, str], now: float) -> float | None:
    """Return the longest wait of the exhausted limits. A limit with a remainder did not cause the failure."""
    waits = []
    for name, value in headers.items():
        if not name.startswith(("x-ratelimit-", "anthropic-ratelimit-")) or "reset" not in name:
            continue
        left = _number(headers.get(name.replace("reset", "remaining"), ""))
        status = headers.get(name.replace("reset", "status"), "") if name.startswith("anthropic-") else ""
        wait = wait_of(value, now)
        if wait is not None and not left and not status.startswith("allowed"):
            waits.append(wait)
    return max(waits, default=None)


def _number(value: str) -> float | None:
    try:
        number = float(value[:_LONGEST_VALUE])
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _duration(text: str) -> float:
    return sum(float(amount) * _SECONDS[unit.lower()] for amount, unit in _PARTS.findall(text))


def _iso(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _http_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _moment(found: Mapping[str, str | None], now: float) -> datetime | None:
    """Return the time in a sentence. Without a day, it is the next such time; without a zone, it is UTC."""
    clock, date, month = found["clock"], found["date"], found["month"]
    if clock is None and date is None and month is None:
        return None
    zone = _zone(found["short"], found["zone"])
    if zone is None:
        return None
    here = datetime.fromtimestamp(now, zone)
    try:
        hour, minute = _clock(clock) if clock else (0, 0)
        moment = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if date:
            year, number, day = map(int, date.split("-"))
            return moment.replace(year=year, month=number, day=day)
        if month:
            moment = moment.replace(month=_MONTHS.index(month.lower()) + 1, day=int(found["day"] or 1))
            return moment if moment > here - timedelta(days=1) else moment.replace(year=moment.year + 1)
        return moment if moment >= here else moment + timedelta(days=1)
    except (ValueError, OverflowError):
        return None


def _clock(text: str) -> tuple[int, int]:
    digits, half = text.lower().rstrip("apm "), text.lower()[-2:]
    hour, _, minute = digits.partition(":")
    number = int(hour) % 12 + (12 if half == "pm" else 0) if half in {"am", "pm"} else int(hour)
    return number, int(minute[:2] or 0)


def _zone(short: str | None, name: str | None) -> tzinfo | None:
    """Return the named zone, UTC if no zone is named, or ``None`` if it is unknown."""
    try:
        if short and short[0] in "+-":
            offset = timedelta(hours=int(short[1:3]), minutes=int(short[-2:]))
            return timezone(offset if short[0] == "+" else -offset)
        if name is None or name.upper() in {"UTC", "GMT", "Z"}:
            return UTC
        from zoneinfo import ZoneInfo  # noqa: PLC0415  few providers name a zone

        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
