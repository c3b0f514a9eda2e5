"""Capabilities and grants: parsing, comparison and narrowing."""

from types import MappingProxyType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.ops import Capability, CapabilityInvalid, Grant, Scope

NAMES = ("host", "method", "path")
VALUES = st.text(alphabet="ab*%|,= ü/", min_size=1, max_size=4)


@st.composite
def capabilities(draw, families=("http", "sql")):
    """Draw a capability with percent-encoded values."""
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
    defaults = {"mode": ("use",)}

    name: str | None = None
    mode: str | None = None


@given(capabilities())
def test_str_and_parse_round_trip(capability):
    assert Capability.parse(str(capability)) == capability


@given(capabilities(), capabilities(), requests)
def test_meet_allows_exactly_the_intersection(one, other, values):
    met = one.meet(other)
    both = one.family == other.family and one.allows(values) and other.allows(values)
    assert both == (met is not None and met.allows(values))


@given(capabilities(), capabilities(), requests)
def test_covering_capability_allows_everything_the_other_allows(one, other, values):
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
def test_grant_is_independent_of_order(mine, random):
    shuffled = list(mine)
    random.shuffle(shuffled)
    assert Grant.of(mine) == Grant.of(shuffled)


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_rejected(text):
    try:
        capability = Capability.parse(text)
    except CapabilityInvalid as error:
        rejected = error
    else:
        assert Capability.parse(str(capability)) == capability
        return
    assert rejected.code == "capability.invalid"
    assert rejected.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "invalid family name"),
        ("Http", "invalid family name"),
        ("http:", "expected a field"),
        ("http:host", "expected field=value"),
        ("http:host=", "empty"),
        ("http:host=a,host=b", "duplicate field"),
        ("http:host=a*b", "contains a"),
        ("http:host=100%", "percent-encoding"),
        ("http:host=%ff", "UTF-8"),
        ("http:host=a b", "contains a"),
    ],
)
def test_malformed_capability_is_rejected_with_a_reason(text, problem):
    with pytest.raises(CapabilityInvalid, match=problem):
        Capability.parse(text)


def test_restricted_field_rejects_a_request_that_omits_it():
    assert not Capability.parse("http:method=GET").allows({"host": "a"})


def test_value_without_star_matches_exactly():
    capability = Capability.parse("http:host=api")
    assert capability.allows({"host": "api"})
    assert not capability.allows({"host": "api.example"})


def test_trailing_star_matches_a_prefix():
    capability = Capability.parse("http:host=api.*")
    assert capability.allows({"host": "api.example"})
    assert not capability.allows({"host": "an.api.example"})


def test_encoded_star_is_literal():
    capability = Capability.parse("http:host=api.%2A")
    assert capability.allows({"host": "api.*"})
    assert not capability.allows({"host": "api.example"})


def test_unknown_field_suggests_the_closest_name():
    with pytest.raises(CapabilityInvalid, match="did you mean `host`"):
        Capability.parse("http:hots=a").fit(HttpScope)


def test_family_default_applies_to_an_omitted_field():
    fitted = Capability.parse("vault:name=key").fit(VaultScope)
    assert fitted.allows({"name": "key", "mode": "use"})
    assert not fitted.allows({"name": "key", "mode": "reveal"})


def test_narrowing_does_not_widen_a_default():
    held = Grant.of([Capability.parse("vault:name=key").fit(VaultScope)])
    wanted = Grant.of([Capability.parse("vault:name=key,mode=reveal").fit(VaultScope)])
    assert not held.narrow(wanted)


def test_missing_returns_uncovered_capabilities():
    held = Grant.parse(["http:host=a|b"])
    assert str(held.missing(Grant.parse(["http:host=a", "sql"]))) == "sql"


@attrs.frozen
class DoorScope(Scope, family="door"):
    valid_values = MappingProxyType({"mode": ("open", "close")})
    mode: str | None = None
    name: str | None = None


@pytest.mark.parametrize("text", ["door:mode=foo", "door:mode=open|foo", "door:mode=x*", "door:mode=Open"])
def test_invalid_value_is_rejected_with_the_valid_ones(text):
    with pytest.raises(CapabilityInvalid, match="valid values: open, close"):
        Capability.parse(text).fit(DoorScope)


@pytest.mark.parametrize("text", ["door:mode=open|close", "door:mode=o*", "door:mode=*", "door:name=foo", "door"])
def test_valid_values_and_patterns_are_accepted(text):
    Capability.parse(text).fit(DoorScope)


def test_close_valid_value_is_suggested():
    with pytest.raises(CapabilityInvalid, match="did you mean `close`"):
        Capability.parse("door:mode=clse").fit(DoorScope)


@attrs.frozen
class SpendScope(Scope, family="spend"):
    amounts = ("money",)

    model: str | None = None
    money: str | None = None


def spend(*texts):
    return Grant.of(Capability.parse(text).fit(SpendScope) for text in texts)


AMOUNTS = st.decimals(min_value=0, max_value=10**6, places=3).map(str)


@given(one=AMOUNTS, other=AMOUNTS, asked=AMOUNTS)
def test_amounts_are_compared_as_numbers(one, other, asked):
    from decimal import Decimal

    low, high = sorted((one, other), key=Decimal)
    grant = spend(f"spend:money={one}")
    assert grant.allows("spend", {"money": asked}) == (Decimal(asked) <= Decimal(one))
    assert not grant.allows("spend", {})
    assert spend(f"spend:money={high}").covers(spend(f"spend:money={low}"))
    assert spend(f"spend:money={one}").narrow(spend(f"spend:money={other}")) == spend(f"spend:money={low}")
    assert spend(f"spend:money={one}", f"spend:money={other}") == spend(f"spend:money={high}")
    assert spend("spend:model=m").narrow(grant) == spend(f"spend:model=m,money={one}")
    assert not grant.covers(spend("spend"))
    assert Grant.parse(grant.texts()).texts() == grant.texts()


@pytest.mark.parametrize(
    "amount", ["much", "-1", "1e3", "*", "5*", "1|x", "0x10", "9" * 13, "1.", ".5", "nan", "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_invalid_amount_is_refused(amount):
    with pytest.raises(CapabilityInvalid, match=r"must be an amount such as `money=0\.50`"):
        spend(f"spend:money={amount}")


@pytest.mark.parametrize("asked", ["", "-1", "1e-3", "nan", "0.0000000001"])
def test_no_amount_allows_a_request_that_is_not_an_amount(asked):
    assert not spend("spend:money=5").allows("spend", {"money": asked})
