"""Measures the redaction of data without secrets, and adding secrets, with 5, 500 and 5,000 secrets.

Both searches are measured: the one by automaton (``sideband-core[speed]``) and the one in pure Python. The floor is one
bare search by an automaton for all forms of the secrets, in the texts of the data, already joined and encoded.

Run: ``python -m benchmarks.redaction``. Prints one line of JSON per search and number of secrets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from sideband.broker import Redaction
from sideband.broker._forms import encoded_forms
from sideband.broker._streams import PartRedaction

from ._rows import Row, report, seconds

AUTOMATON = "ahocorasick_rs"
SECRETS = (5, 500, 5_000)
ROUNDS = 15  # the least times are compared, because other load multiplies times as short as these
SMALL = {
    "url": "https://api.test/v1/users?page=3",
    "headers": {"accept": "application/json", "user-agent": "sideband"},
    "count": 3,
    "tags": ["new", "open", "mine"],
    "body": "a text of some words",
}
ROWS = [
    {"id": number, "name": f"user {number}", "email": f"user{number}@mail.test", "note": "some words " * 6, "sum": 1.5}
    for number in range(40)
]
TEXT = "The quick brown fox jumps over the lazy dog, and then some.\n" * 1_170
DATA = {"a small object": (SMALL, 500), "40 rows": (ROWS, 20), "70 kB of text": (TEXT, 5)}


def secrets(count: int) -> list[str]:
    """Return tokens, passwords and addresses with a password."""
    words = [sha256(str(number).encode()).hexdigest() for number in range(count)]
    kinds = (
        lambda word: f"sk-{word[:40]}",
        lambda word: f"Pw!{word[:9]}",
        lambda word: f"https://u:{word[:12]}@db.test/x",
    )
    return [kinds[number % 3](word) for number, word in enumerate(words)]


def texts(value: Any) -> Iterable[str]:
    """Yield the keys and texts of a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def redactor_for(values: Iterable[str]) -> Redaction:
    """Return a redaction that is ready to search."""
    redactor = Redaction()
    for number, value in enumerate(values):
        redactor.protect(value, f"secret-{number}")
    redactor.text("ready")
    return redactor


def one_by_one(values: Iterable[str]) -> None:
    """Add secrets while other work searches."""
    redactor = Redaction()
    for number, value in enumerate(values):
        redactor.protect(value, f"secret-{number}")
        redactor.text("in between")


def stream(redactor: Redaction, text: str) -> None:
    """Redact a text that arrives in pieces."""
    parts = PartRedaction(redactor)
    for start in range(0, len(text), 64):
        for _ in parts.feed({"type": "text", "text": text[start : start + 64]}):
            pass
    for _ in parts.end():
        pass


def repeated(times: int, call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            call()

    return run


def measure(search: str, count: int, floor: Callable[[list[bytes]], Any] | None) -> list[Row]:
    values = secrets(count)
    redactor = redactor_for(values)
    forms = {form for value in values for form in encoded_forms(value.encode()) if len(form) >= 4}
    automaton = floor([form.encode() for form in forms]) if floor else None
    rows = []
    for name, (data, times) in DATA.items():
        raw = "\0".join(texts(data)).encode()
        ours, least = [], []
        for _ in range(ROUNDS):
            ours.append(seconds(repeated(times, lambda data=data: redactor.data(data))) / times * 1e6)
            if automaton is not None:
                bare = repeated(times, lambda raw=raw: automaton.find_matches_as_indexes(raw, overlapping=True))
                least.append(seconds(bare) / times * 1e6)
        rows.append(Row(f"redacting {name}, {count} secrets, {search}", min(ours), "µs", min(least, default=None)))
    others = {
        "redacting 70 kB in pieces of 64": lambda: stream(redactor, TEXT),
        "adding all": lambda: redactor_for(values),
        "adding one after the other between searches": lambda: one_by_one(values[:500]),
    }
    for name, call in others.items():
        rows.append(Row(f"{name}, {count} secrets, {search}", min(seconds(call) for _ in range(5)) * 1e3, "ms"))
    return rows


def main() -> None:
    try:
        from ahocorasick_rs import BytesAhoCorasick
    except ImportError:
        BytesAhoCorasick = None  # noqa: N806  a class
    for search in ("automaton", "pure Python"):
        if search == "pure Python":
            sys.modules[AUTOMATON] = None  # type: ignore[assignment]  a module that cannot be imported
        elif BytesAhoCorasick is None:
            continue
        for count in SECRETS:
            report(measure(search, count, BytesAhoCorasick), search=search, secrets=count)


if __name__ == "__main__":
    main()
