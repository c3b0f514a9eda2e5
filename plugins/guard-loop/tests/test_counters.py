import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st
from sideband_guard_loop._counters import Counters, Seen, fingerprint

TOOLS = st.sampled_from(["a.read", "a.write", "b.read"])
ARGUMENTS = st.sampled_from([{}, {"x": 1}, {"x": 1, "y": [2]}])
RESULTS = st.sampled_from(["one", "two", {"three": 3}])
CALLS = st.lists(st.tuples(TOOLS, ARGUMENTS, st.sampled_from(["fails", "refused", "works"]), RESULTS), max_size=30)


def model(history, tool, arguments):
    """Compute the counts for a call from the whole history."""
    same = [one for one in history if one[:2] == (tool, arguments)]
    exact = 0
    for _, _, how, _ in same:
        exact = 0 if how == "works" else exact + (how == "fails")
    failures = 0
    for name, _, how, _ in history:
        if name == tool:
            failures = 0 if how == "works" else failures + 1
    unchanged, last = 0, None
    for name, these, how, result in history:
        if how == "works" and name.endswith("write"):
            unchanged, last = 0, None
        elif how == "works" and (name, these) == (tool, arguments):
            unchanged = unchanged + 1 if result == last else 1
            last = result
    return Seen(exact, failures, unchanged)


@settings(max_examples=60)
@given(CALLS)
def test_counters_match_a_simple_model(history):
    counters = Counters()
    for index, (tool, arguments, how, result) in enumerate(history):
        if how == "fails":
            counters.failed(tool, arguments)
        elif how == "refused":
            counters.refused(tool)
        else:
            counters.succeeded(tool, arguments, result, read_only=tool.endswith("read"))
        for name, these, _, _ in history[: index + 1]:
            assert counters.seen(name, these) == model(history[: index + 1], name, these)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(), JSON))
def test_fingerprint_ignores_the_order_of_keys(value):
    assert fingerprint(dict(reversed(value.items()))) == fingerprint(value)


@settings(max_examples=60)
@given(JSON, JSON)
def test_different_data_has_different_fingerprints(one, other):
    assert (fingerprint(one) == fingerprint(other)) == (repr(sorted_keys(one)) == repr(sorted_keys(other)))


def sorted_keys(value):
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return [sorted_keys(item) for item in value] if isinstance(value, list) else value


def test_memory_is_bounded():
    counters = Counters()
    tracemalloc.start()
    try:
        for number in range(3_000):
            counters.failed(f"tool.t{number}", {"x": number})
            counters.succeeded("tool.read", {"x": number}, "x" * 1_000, read_only=True)
        assert tracemalloc.get_traced_memory()[0] < 3_000_000
    finally:
        tracemalloc.stop()


def test_least_recently_counted_call_is_evicted_first():
    counters = Counters()
    for number in range(2_048):
        counters.failed("a.b", {"x": number})
    counters.failed("a.b", {"x": 0})
    counters.failed("a.b", {"x": "one more"})
    assert counters.seen("a.b", {"x": 0}).exact == 2
    assert counters.seen("a.b", {"x": 1}).exact == 0
