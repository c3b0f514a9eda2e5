"""Who gets the next place: whatever is asked for and given back, in any order."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from sideband.workers._places import Places

# A letter asks for a place for that domain; a number gives one back, or waits for it no longer.
steps = st.lists(st.sampled_from("abcd") | st.integers(0, 30), max_size=60)


def walk(maximum, steps):
    """Each state that is passed: the places, all that was asked for in order, and what was granted in order."""
    places, asked, granted = Places(maximum), [], []
    for step in steps:
        if isinstance(step, str):
            asked.append(places.ask(step))
        elif asked:
            places.leave(asked.pop(step % len(asked)))
        granted.extend(place for place in asked if place.granted.is_set() and place not in granted)
        yield places, asked, granted


def held_by(asked):
    return Counter(place.domain for place in asked if place.granted.is_set())


@given(st.integers(1, 7), steps)
def test_no_place_is_held_twice_and_no_domain_has_more_than_half(maximum, steps):
    for _, asked, _ in walk(maximum, steps):
        held = held_by(asked)
        assert held.total() <= maximum
        assert all(count <= max(1, maximum // 2) for count in held.values())


@given(st.integers(1, 7), steps)
def test_nobody_waits_for_a_free_place_unless_the_domain_has_its_share(maximum, steps):
    for places, asked, _ in walk(maximum, steps):
        held = held_by(asked)
        waiting = {place.domain for place in asked if not place.granted.is_set()}
        assert places.is_waited_for is bool(waiting)
        if held.total() < maximum:
            assert all(held[domain] == max(1, maximum // 2) for domain in waiting)


@given(st.integers(1, 7), steps)
def test_within_a_domain_it_is_first_come_first_served(maximum, steps):
    for _, asked, _ in walk(maximum, steps):
        for domain in "abcd":
            served = [place.granted.is_set() for place in asked if place.domain == domain]
            assert served == sorted(served, reverse=True)


@given(st.integers(1, 7), steps)
def test_no_domain_has_two_turns_while_another_that_may_have_one_waits(maximum, steps):
    seen = 0
    missed = {}
    for _, asked, granted in walk(maximum, steps):
        held = held_by(asked)
        waiting = {place.domain for place in asked if not place.granted.is_set()}
        for place in granted[seen:]:
            for domain in waiting - {place.domain}:
                others = missed.setdefault(domain, set())
                if held[domain] < max(1, maximum // 2):
                    assert place.domain not in others
                others.add(place.domain)
            missed.pop(place.domain, None)
        for domain in set(missed) - waiting:
            del missed[domain]
        seen = len(granted)


@given(st.integers(1, 7), st.text("abcd", max_size=40))
def test_everybody_is_served_in_the_end(maximum, domains):
    places = Places(maximum)
    waiting = [places.ask(domain) for domain in domains]
    while waiting:
        served = next(place for place in waiting if place.granted.is_set())
        places.leave(served)
        waiting.remove(served)
    assert not places.is_waited_for


@given(st.integers(1, 7), steps)
def test_as_many_are_lacking_as_wait_and_could_be_served(maximum, steps):
    for places, asked, _ in walk(maximum, steps):
        held = held_by(asked)
        share = max(1, maximum // 2)
        waiting = Counter(place.domain for place in asked if not place.granted.is_set())
        lacking = dict(places.lacking())
        assert lacking.pop(None, 0) == sum(min(count, share - held[domain]) for domain, count in waiting.items())
        assert lacking == {domain: min(count, share) for domain, count in waiting.items() if held[domain] == share}


def test_a_place_can_be_left_twice():
    places = Places(2)
    first, _, third = (places.ask("abc"[n]) for n in range(3))
    places.leave(first)
    places.leave(first)
    assert third.granted.is_set()
    assert not places.ask("d").granted.is_set()
