from time import process_time

import pytest

LONG = 4_000
BODIES = {
    "backslashes": "\\" * LONG,
    "escapes": "\\u0041" * (LONG // 6),
    "quotes": '\\"' * (LONG // 2),
    "fields": '"code"' + " " * LONG,
    "many fields": '"code" :' * (LONG // 8),
    "waits": "try again in " * (LONG // 13),
    "durations": "try again in " + "1h " * LONG,
    "digits": "try again in " + "9" * LONG,
    "digits with points": "wait 1." + "1" * LONG,
    "numbers": "1 秒" * LONG,
    "resets": "resets at 11:11 " * (LONG // 16),
    "moments": "resets 2025-11-11 " * (LONG // 18),
    "spaces": "resets at" + " " * LONG,
    "zone": "resets at 14:00 (" + "a" * LONG,
    "dates": "2025-11-11 11:11" * (LONG // 16) + "重置",
    "no date": "2025-11-11 11:11" + " " * LONG + "重置",
    "fields of resets": '"retry_after":"' * (LONG // 15),
    "nearly a phrase": "rate limi" * (LONG // 9),
    "brackets": "[" * LONG,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_hostile_answer_is_classified_in_linear_time(ask, body):
    started = process_time()
    for status in (None, 400, 429, 500):
        ask(status, body, headers={"retry-after": body})
    assert process_time() - started < 0.25


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_oversized_answer_is_truncated(ask, body):
    started = process_time()
    ask(429, body * 500)
    assert process_time() - started < 0.25
