"""The digest to which an approval is bound: different for whatever differs, and equal for what is equal."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr
from sideband.approvals import Approvals
from sideband.approvals._canonical import canonical
from sideband.ops import Origin


class Point(BaseModel):
    x: int


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 1),
    st.sampled_from([0.0, 1.0, -0.0, 16, 1e300]),
    st.sampled_from(["", "1", "a", "b", "None", "true", '"', ",", "list()", "int(1)", "\ud800"]),
    st.sampled_from([b"", b"1", b"a", SecretStr("a"), Point(x=1), date(2026, 1, 1), frozenset({1}), frozenset({"1"})]),
)
KEYS = st.one_of(st.booleans(), st.integers(-1, 1), st.sampled_from(["", "1", "a", "x"]), st.none(), st.just(b"1"))
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
PARTS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["mail.send", "mail.look"]),
        "params": st.dictionaries(st.sampled_from(["a", "b"]), VALUES, max_size=2),
        "grant": st.sampled_from([("mail",), ("mail:to=ann",), ("mail", "sql")]),
        "policy": st.sampled_from([{"timeout": 60}, {"timeout": 59}]),
        "versions": st.sampled_from([("careful 1",), ("careful 2",), ("careful 1", "strict 1")]),
        "code": st.sampled_from(["", "1"]),
        "origin": st.sampled_from([Origin(), Origin(session="s"), Origin(principal="guest"), Origin(skill="a")]),
    }
)


def typed(value):
    """Return a value that equals another one only if that has the same types, too."""
    if isinstance(value, dict):
        return "map", frozenset((typed(key), typed(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return "list", tuple(map(typed, value))
    if isinstance(value, frozenset):
        return "set", frozenset(map(typed, value))
    return type(value), repr(value) if isinstance(value, float | BaseModel) else value


def digest(parts):
    approvals = Approvals(
        store=None,
        key=lambda: b"key",
        policy=lambda: parts["policy"],
        versions=lambda _: parts["versions"],
        holders=lambda _: (),
        redact=lambda value: value,
        remember=None,
        forget=None,
        record=None,
        asked=None,
        ended=None,
    )
    return approvals.request(
        "effect",
        parts["op"],
        "Really?",
        {"shown": "in part"},
        origin=parts["origin"],
        exact=[parts["params"], parts["grant"]],
        code=parts["code"],
    ).digest


@given(VALUES, VALUES)
def test_texts_are_equal_exactly_if_the_values_are(one, other):
    assert (canonical(one) == canonical(other)) == (typed(one) == typed(other))


@given(PARTS, PARTS)
def test_digests_are_equal_exactly_if_all_parts_are(one, other):
    same = {name: typed(part) for name, part in one.items()} == {name: typed(part) for name, part in other.items()}
    assert (digest(one) == digest(other)) == same


@given(PARTS, PARTS, st.sampled_from(["op", "params", "grant", "policy", "versions", "code", "origin"]))
def test_digests_differ_if_one_part_does(one, other, name):
    changed = {**one, name: other[name]}
    assert (digest(one) == digest(changed)) == (typed(one[name]) == typed(other[name]))


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_order_of_keys_does_not_matter(value):
    assert canonical(dict(reversed(value.items()))) == canonical(value)


def test_values_of_a_replaced_plugin_are_as_they_were():
    kept, replaced = (type("Color", (), {"__str__": lambda _: "red", "__module__": name}) for name in ("a.b", "a@1.b"))
    assert canonical(kept()) == canonical(replaced())
