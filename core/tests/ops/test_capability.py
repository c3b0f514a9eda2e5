"""Capabilities and grants: grammar, comparing, narrowing."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.ops import Capability, CapabilityInvalid, Grant, Scope

NAMES = ("host", "method", "path")
VALUES = st.text(alphabet="ab*%|,= ü/", min_size=1, max_size=4)


@st.composite
def capabilities(draw, families=("http", "sql")):
    """Capabilities as text, with any value percent-encoded where it must be."""
    from urllib.parse import quote

    fields = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
        values = draw(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=3))
        fields.append(f"{name}=" + "|".join(quote(text, safe="/") + "*" * star for text, star in values))
    family = draw(st.sampled_from(families))
    return Capability.parse(f"{family}:{','.join(fields)}" if fields else family)


requests = st.dictionaries(st.sampled_from(NAMES), VALUES)


@attrs.frozen
class HttpScope(Scope, family="http"):
    host: str | None = None
    method: str | None = None


@attrs.frozen
class VaultScope(Scope, family="vault"):
    defaults = {"mode": ("use",)}  # noqa: RUF012  attrs leaves what is not annotated alone

    name: str | None = None
    mode: str | None = None


@given(capabilities())
def test_what_is_printed_parses_to_the_same_capability(capability):
    assert Capability.parse(str(capability)) == capability


@given(capabilities(), capabilities(), requests)
def test_a_meet_allows_what_both_allow_and_nothing_else(one, other, values):
    met = one.meet(other)
    both = one.family == other.family and one.allows(values) and other.allows(values)
    assert both == (met is not None and met.allows(values))


@given(capabilities(), capabilities(), requests)
def test_a_capability_that_covers_another_allows_all_that_it_allows(one, other, values):
    if one.covers(other) and other.allows(values):
        assert one.allows(values)


@given(st.lists(capabilities(), max_size=4), st.lists(capabilities(), max_size=4), requests)
def test_narrowing_a_grant_never_widens_it(mine, wanted, values):
    narrowed = Grant.of(mine).narrow(Grant.of(wanted))
    for family in ("http", "sql"):
        if narrowed.allows(family, values):
            assert Grant.of(mine).allows(family, values)
            assert Grant.of(wanted).allows(family, values)


@given(st.lists(capabilities(), max_size=5), st.randoms())
def test_a_grant_does_not_depend_on_the_order_it_was_written_in(mine, random):
    shuffled = list(mine)
    random.shuffle(shuffled)
    assert Grant.of(mine) == Grant.of(shuffled)


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_refused_by_name(text):
    try:
        capability = Capability.parse(text)
    except CapabilityInvalid as error:
        refused = error
    else:
        assert Capability.parse(str(capability)) == capability
        return
    assert refused.code == "capability.invalid"
    assert refused.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no family"),
        ("Http", "no family"),
        ("http:", "nothing follows"),
        ("http:host", "not field=value"),
        ("http:host=", "empty"),
        ("http:host=a,host=b", "twice"),
        ("http:host=a*b", "inside"),
        ("http:host=100%", "encodes nothing"),
        ("http:host=%ff", "UTF-8"),
        ("http:host=a b", "inside"),
    ],
)
def test_a_malformed_capability_is_refused_with_what_is_wrong(text, problem):
    with pytest.raises(CapabilityInvalid, match=problem):
        Capability.parse(text)


def test_a_limited_field_does_not_allow_a_request_that_leaves_it_open():
    assert not Capability.parse("http:method=GET").allows({"host": "a"})


def test_a_star_matches_what_begins_with_it_only():
    capability = Capability.parse("http:host=api.*")
    assert capability.allows({"host": "api.example"})
    assert not capability.allows({"host": "an.api.example"})


def test_an_encoded_star_is_an_ordinary_character():
    capability = Capability.parse("http:host=api.%2A")
    assert capability.allows({"host": "api.*"})
    assert not capability.allows({"host": "api.example"})


def test_a_field_that_the_family_does_not_have_is_named_with_the_closest_one():
    with pytest.raises(CapabilityInvalid, match="did you mean `host`"):
        Capability.parse("http:hots=a").fit(HttpScope)


def test_a_family_default_stands_for_a_field_that_is_left_out():
    fitted = Capability.parse("vault:name=key").fit(VaultScope)
    assert fitted.allows({"name": "key", "mode": "use"})
    assert not fitted.allows({"name": "key", "mode": "reveal"})


def test_a_default_can_not_be_widened_by_narrowing():
    held = Grant.of([Capability.parse("vault:name=key").fit(VaultScope)])
    wanted = Grant.of([Capability.parse("vault:name=key,mode=reveal").fit(VaultScope)])
    assert not held.narrow(wanted)


def test_missing_capabilities_are_those_that_nothing_covers():
    held = Grant.parse(["http:host=a|b"])
    assert str(held.missing(Grant.parse(["http:host=a", "sql"]))) == "sql"
