import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.hooks import GiveUp, Park, Retry
from sideband_retry._schedule import Schedule


@given(
    number=st.integers(1, 10_000),
    base=st.floats(0, 3_600),
    cap=st.floats(0, 3_600),
    chance=st.floats(0, 1, exclude_max=True),
    floor=st.floats(0, 1e9),
)
def test_jitter_is_full_and_bounded(number, base, cap, chance, floor):
    delay = Schedule(base=base, cap=cap, random=lambda: chance).delay(number, floor=floor)
    longest = min(cap, base * 2 ** min(number - 1, 100))
    assert floor <= delay <= floor + longest
    if chance == 0:
        assert delay == floor


def test_delays_of_several_clients_differ():
    schedule = Schedule(base=2, cap=60)
    assert len({schedule.delay(3) for _ in range(20)}) > 15


@pytest.mark.parametrize(("attempt", "delay"), [(1, 2), (2, 4), (3, 8)])
def test_wait_doubles_with_each_retry(make_rules, make_event, attempt, delay):
    answer = make_rules(chance=1.0).answer(make_event(500, attempt=attempt))
    assert answer == Retry(delay, "server_error")


def test_call_is_retried_three_times(ask):
    assert [type(ask(500, attempt=number)) for number in (1, 2, 3, 4)] == [Retry, Retry, Retry, GiveUp]


def test_number_of_retries_is_configurable(make_rules, make_event):
    rules = make_rules(attempts=1)
    assert [type(rules.answer(make_event(500, attempt=number))) for number in (1, 2)] == [Retry, GiveUp]
    assert isinstance(make_rules(attempts=0).answer(make_event(500)), GiveUp)


def test_cap_bounds_the_wait(make_rules, make_event):
    answer = make_rules(chance=1.0, attempts=100, cap=10).answer(make_event(500, attempt=90))
    assert answer.delay == 10


def test_wait_is_never_shorter_than_the_provider_names(make_rules, make_event):
    event = make_event(429, headers={"retry-after": "20"}, attempt=2)
    assert make_rules(chance=0.0).answer(event).delay == 20
    assert make_rules(chance=0.5, cap=1).answer(event).delay == 20.5


def test_named_wait_may_exceed_the_cap(make_rules, make_event):
    assert make_rules(cap=1).answer(make_event(503, headers={"retry-after": "100"})).delay == 100


def test_named_wait_above_the_limit_parks_the_run(make_rules, make_event, now):
    rules = make_rules(longest_wait=30)
    assert isinstance(rules.answer(make_event(429, headers={"retry-after": "30"})), Retry)
    answer = rules.answer(make_event(429, headers={"retry-after": "31"}))
    assert (answer.until, answer.kind) == (now + 31, "rate_limit")
    assert "2025-11-22 12:00 UTC" in answer.hint


def test_retry_after_the_deadline_is_not_made(make_rules, make_event):
    rules = make_rules(chance=1.0, deadline=100)
    assert isinstance(rules.answer(make_event(500, elapsed=98)), Retry)
    assert isinstance(rules.answer(make_event(500, elapsed=98.1)), GiveUp)


def test_named_wait_past_the_deadline_parks_the_run(make_rules, make_event, now):
    answer = make_rules(deadline=100).answer(make_event(429, headers={"retry-after": "60"}, elapsed=50))
    assert answer == Park(now + 60, "rate_limit", answer.hint)


def test_named_wait_after_the_last_retry_is_given_up(ask):
    assert isinstance(ask(429, headers={"retry-after": "1"}, attempt=4), GiveUp)
