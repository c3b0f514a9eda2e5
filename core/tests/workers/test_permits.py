"""Permits: limits and fairness for any order of requests and releases."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from sideband.workers._slots import Permits

# A letter requests a permit for that domain. A number releases a permit or withdraws a request.
steps = st.lists(st.sampled_from("abcd") | st.integers(0, 30), max_size=60)


def walk(maximum, steps):
    """Yield after each step the permits, the open requests in order, and the granted ones in order."""
    permits, asked, granted = Permits(maximum), [], []
    for step in steps:
        if isinstance(step, str):
            asked.append(permits.ask(step))
        elif asked:
            permits.leave(asked.pop(step % len(asked)))
        granted.extend(permit for permit in asked if permit.granted.is_set() and permit not in granted)
        yield permits, asked, granted


def held_by(asked):
    return Counter(permit.domain for permit in asked if permit.granted.is_set())


@given(st.integers(1, 7), steps)
def test_permits_and_shares_of_domains_are_not_exceeded(maximum, steps):
    for _, asked, _ in walk(maximum, steps):
        held = held_by(asked)
        assert held.total() <= maximum
        assert all(count <= max(1, maximum // 2) for count in held.values())


@given(st.integers(1, 7), steps)
def test_only_domains_with_a_full_share_wait_while_a_permit_is_free(maximum, steps):
    for permits, asked, _ in walk(maximum, steps):
        held = held_by(asked)
        waiting = {permit.domain for permit in asked if not permit.granted.is_set()}
        assert permits.is_waited_for is bool(waiting)
        if held.total() < maximum:
            assert all(held[domain] == max(1, maximum // 2) for domain in waiting)


@given(st.integers(1, 7), steps)
def test_requests_of_a_domain_are_granted_in_order(maximum, steps):
    for _, asked, _ in walk(maximum, steps):
        for domain in "abcd":
            served = [permit.granted.is_set() for permit in asked if permit.domain == domain]
            assert served == sorted(served, reverse=True)


@given(st.integers(1, 7), steps)
def test_domain_does_not_get_two_turns_while_another_eligible_domain_waits(maximum, steps):
    seen = 0
    missed = {}
    for _, asked, granted in walk(maximum, steps):
        held = held_by(asked)
        waiting = {permit.domain for permit in asked if not permit.granted.is_set()}
        for permit in granted[seen:]:
            for domain in waiting - {permit.domain}:
                others = missed.setdefault(domain, set())
                if held[domain] < max(1, maximum // 2):
                    assert permit.domain not in others
                others.add(permit.domain)
            missed.pop(permit.domain, None)
        for domain in set(missed) - waiting:
            del missed[domain]
        seen = len(granted)


@given(st.integers(1, 7), st.text("abcd", max_size=40))
def test_every_request_is_granted_eventually(maximum, domains):
    permits = Permits(maximum)
    waiting = [permits.ask(domain) for domain in domains]
    while waiting:
        served = next(permit for permit in waiting if permit.granted.is_set())
        permits.leave(served)
        waiting.remove(served)
    assert not permits.is_waited_for


@given(st.integers(1, 7), steps)
def test_missing_permits_are_counted_per_domain(maximum, steps):
    for permits, asked, _ in walk(maximum, steps):
        held = held_by(asked)
        share = max(1, maximum // 2)
        waiting = Counter(permit.domain for permit in asked if not permit.granted.is_set())
        lacking = dict(permits.lacking())
        assert lacking.pop(None, 0) == sum(min(count, share - held[domain]) for domain, count in waiting.items())
        assert lacking == {domain: min(count, share) for domain, count in waiting.items() if held[domain] == share}


def test_leave_is_idempotent():
    permits = Permits(2)
    first, _, third = (permits.ask("abc"[n]) for n in range(3))
    permits.leave(first)
    permits.leave(first)
    assert third.granted.is_set()
    assert not permits.ask("d").granted.is_set()
