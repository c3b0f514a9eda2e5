"""Levels follow what a capability and a request allow: lowered by rules, and never above the declared level."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from sideband.ops import LIMITED, Capability, Grant, Level, Lower, OpContext, Scope, level_of, op, reach
from sideband.ops._reach import level_problem, level_within


class Nothing(BaseModel):
    pass


@attrs.frozen
class RoadScope(Scope, family="road"):
    valid_values = {"load": ("none", "grain", "oil")}

    to: str | None = None
    load: str | None = None
    lane: str | None = None


def declared(name="road.take", level=Level.RESTRICTED, **options):
    async def handler(params: Nothing, ctx: OpContext) -> None:
        return None

    options = {"requires": "road", "scope": lambda params: RoadScope(), **options}
    return op(name, level=level, **options)(handler)


TAKE = declared(
    lower=[
        Lower(Level.SAFE, to=LIMITED, load=("none",)),
        Lower(Level.MONITORED, load=("none", "grain")),
        Lower(Level.CONTROLLED, to=LIMITED),
    ]
)


@pytest.mark.parametrize(
    ("capability", "requested", "level"),
    [
        ("road", {}, Level.RESTRICTED),
        ("road:to=farm", {}, Level.CONTROLLED),
        ("road:to=farm|town", {}, Level.CONTROLLED),
        ("road:to=*", {}, Level.RESTRICTED),
        ("road:to=farm*", {}, Level.RESTRICTED),
        ("road:to=farm|town*", {}, Level.RESTRICTED),
        ("road:load=grain", {}, Level.MONITORED),
        ("road:load=grain|oil", {}, Level.RESTRICTED),
        ("road:load=grain|oil", {"load": "grain"}, Level.MONITORED),
        ("road:load=g*", {}, Level.RESTRICTED),
        ("road", {"load": "grain"}, Level.MONITORED),
        ("road", {"load": "oil"}, Level.RESTRICTED),
        ("road", {"to": "farm"}, Level.RESTRICTED),
        ("road:to=farm", {"to": "farm", "load": "none"}, Level.SAFE),
        ("road:to=farm,load=none", {}, Level.SAFE),
        ("road:lane=left", {}, Level.RESTRICTED),
    ],
)
def test_lowest_rule_that_applies_gives_the_level(capability, requested, level):
    assert level_of(TAKE, Capability.parse(capability), requested) is level


def grant(*texts):
    return Grant.parse(texts)


def test_grant_reaches_the_highest_level_of_its_ops():
    look = declared("road.look", Level.MONITORED)
    assert reach([look, TAKE], grant("road:to=farm")) is Level.CONTROLLED
    assert reach([look, TAKE], grant("road:load=none,to=farm")) is Level.MONITORED


def test_grant_has_the_level_of_its_widest_capability():
    assert reach([TAKE], grant("road:load=none,to=farm", "road:load=oil|none,to=farm,lane=left")) is Level.CONTROLLED
    assert reach([TAKE], grant("road:lane=left", "road:load=none,to=farm")) is Level.RESTRICTED
    assert reach([TAKE], grant("road:lane=left,load=none,to=farm", "road:to=town*")) is Level.RESTRICTED


def test_rule_above_the_declared_level_does_not_raise_it():
    raising = declared(level=Level.MONITORED, lower=[Lower(Level.PRIVILEGED, to=LIMITED)])
    assert level_of(raising, Capability.parse("road:to=farm"), {}) is Level.MONITORED


def test_grant_does_not_reach_an_op_that_needs_another_value():
    specs = [declared("road.sell", needs={"load": ("grain", "oil")}), declared("road.look", Level.SAFE)]
    assert reach(specs, grant("road:load=none")) is Level.SAFE
    assert reach(specs, grant("road:load=n*")) is Level.SAFE
    for text in ("road", "road:load=oil", "road:load=none|oil", "road:load=o*", "road:to=farm"):
        assert reach(specs, grant(text)) is Level.RESTRICTED


def test_grant_does_not_reach_ops_of_other_families_or_without_a_capability():
    specs = [declared(), declared("road.free", requires=None, scope=None), declared("sea.cross", requires="sea")]
    assert reach(specs, grant("sea")) is Level.RESTRICTED
    assert reach(specs, grant("air")) is Level.SAFE
    assert reach(specs, grant()) is Level.SAFE


def test_use_has_the_level_of_every_capability_that_it_could_need_later():
    both = grant("road:to=farm,load=none", "road:load=none,lane=left")
    assert level_within(TAKE, both, [RoadScope(to="farm", load="none", lane="right")]) is Level.MONITORED
    assert level_within(TAKE, grant("road:to=farm,load=none"), [RoadScope(to="farm", load="none")]) is Level.SAFE


def test_capability_without_the_requested_value_does_not_raise_the_level():
    both = grant("road:to=farm,load=none", "road:load=oil")
    assert level_within(TAKE, both, [RoadScope(to="farm", load="none")]) is Level.SAFE


def test_capability_that_an_op_cannot_use_does_not_raise_its_level():
    sell = declared(needs={"load": ("grain",)}, lower=[Lower(Level.SAFE, to=LIMITED)])
    both = grant("road:to=farm,load=grain", "road:load=oil")
    assert level_within(sell, both, [RoadScope(to="farm", load="grain")]) is Level.SAFE


def test_use_of_several_scopes_has_the_highest_level():
    both = [RoadScope(to="farm", load="none"), RoadScope(to="farm", load="oil")]
    assert level_within(TAKE, grant("road:to=farm"), both) is Level.CONTROLLED


def test_use_that_requests_nothing_of_its_family_has_the_declared_level():
    assert level_within(TAKE, grant("road:to=farm,load=none"), []) is Level.RESTRICTED


def test_level_of_a_use_is_computed_once_for_each_grant():
    spec, scopes = declared(lower=TAKE.lower), [RoadScope(to="farm", load="none")]
    assert level_within(spec, grant("road:to=farm"), scopes) is Level.SAFE
    (known,) = spec.levels
    spec.levels[known] = Level.PRIVILEGED
    assert level_within(spec, grant("road:to=farm"), scopes) is Level.PRIVILEGED
    assert level_within(spec, grant("road"), scopes) is Level.MONITORED


def test_known_levels_are_forgotten_before_they_fill_the_memory():
    spec = declared(lower=TAKE.lower)
    for number in range(3_000):
        level_within(spec, grant("road:to=farm"), [RoadScope(load=str(number))])
    assert len(spec.levels) <= 1_024


@pytest.mark.parametrize("values", [["x" * 10_000], [f"x{number}" for number in range(1_000)]])
def test_values_of_a_huge_request_are_not_remembered(values):
    spec = declared(lower=[Lower(Level.MONITORED, lane=("left",))])
    grant = Grant.parse(["road"])
    assert level_within(spec, grant, [RoadScope(lane=value) for value in values]) is Level.RESTRICTED
    assert level_within(spec, grant, [RoadScope(lane="left")] * 10_000) is Level.MONITORED
    assert len(str(spec.levels)) < 2_000


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"lower": [Lower(Level.SAFE, tto=LIMITED)]}, "`lower[0].tto` is an unknown field (did you mean `to`?)"),
        ({"lower": [Lower(Level.SAFE, load=("gran",))]}, "`lower[0].load` has the invalid value 'gran' (did you mean"),
        ({"lower": [Lower(Level.SAFE, load="none")]}, "`lower[0].load` must be a tuple of one or more texts"),
        ({"lower": [Lower(Level.SAFE, load=())]}, "`lower[0].load` must be a tuple of one or more texts"),
        ({"lower": [Lower(Level.SAFE, to=(7,))]}, "`lower[0].to` must be a tuple of one or more texts"),
        ({"lower": [Lower(Level.SAFE, to=("farm*",))]}, "`lower[0].to` has the value 'farm*', but patterns are not"),
        ({"lower": [Lower(Level.PRIVILEGED, to=LIMITED)]}, "`lower[0]` has the level PRIVILEGED, which is not below"),
        ({"lower": [Lower(Level.RESTRICTED, to=LIMITED)]}, "`lower[0]` has the level RESTRICTED, which is not below"),
        ({"lower": [Lower(Level.SAFE)]}, "`lower[0]` has no fields, so it applies to every use"),
        (
            {"lower": [Lower(Level.SAFE, to=LIMITED), Lower(Level.MONITORED, to=LIMITED)]},
            "`lower[1]` has the same fields as an earlier rule; remove one of them",
        ),
        ({"needs": {"mode": ("a",)}}, "`needs.mode` is an unknown field; the fields of the scope are to, load, lane"),
        ({"needs": {"load": ("sand",)}}, "`needs.load` has the invalid value 'sand'; use none, grain, oil"),
        ({"needs": {"load": ()}}, "`needs.load` must be a tuple of one or more texts"),
        ({"needs": {"load": "oil"}}, "`needs.load` must be a tuple of one or more texts"),
        ({"needs": {"load": ("oil",)}, "scope": None}, "`needs` has no effect without `scope`"),
        ({"lower": [Lower(Level.SAFE, to=LIMITED)], "requires": "sea"}, "`lower` applies to capabilities of"),
        (
            {"lower": [Lower(Level.SAFE, to=LIMITED)], "requires": None, "scope": None},
            "`lower` applies to capabilities",
        ),
        ({"needs": {"depth": ()}, "requires": "sea"}, "`needs.depth` must be a tuple of one or more texts"),
    ],
)
def test_invalid_rule_is_named_with_its_remedy(options, problem):
    assert level_problem(declared(**options), RoadScope).startswith(problem)


def test_rule_without_a_scope_is_named_with_its_remedy():
    assert level_problem(TAKE, None) == "`lower[0].load` is an unknown field; its family has no `scope`; add one"


def test_valid_rules_have_no_problem():
    assert level_problem(TAKE, RoadScope) is None
    assert level_problem(declared(needs={"load": ("oil",)}), RoadScope) is None
    assert level_problem(declared(needs={"depth": ("low",)}, requires="sea"), RoadScope) is None


FIELDS = ("to", "load", "lane")
VALUES = st.sampled_from(["a", "ab", "b", "c"])
PATTERNS = st.sampled_from(["a", "ab", "b", "c", "a*", "*"])
CAPABILITIES = st.dictionaries(st.sampled_from(FIELDS), st.lists(PATTERNS, min_size=1, max_size=3)).map(
    lambda fields: Capability.parse(
        "road" + (":" if fields else "") + ",".join(f"{name}={'|'.join(values)}" for name, values in fields.items())
    )
)
ALLOWED = st.one_of(st.just(LIMITED), st.lists(VALUES, min_size=1, max_size=2).map(tuple))
RULES = st.lists(
    st.builds(
        lambda level, fields: Lower(level, **fields),
        st.sampled_from(Level),
        st.dictionaries(st.sampled_from(FIELDS), ALLOWED),
    ),
    max_size=4,
)
NEEDS = st.dictionaries(st.sampled_from(FIELDS), st.lists(VALUES, min_size=1, max_size=2).map(tuple), max_size=2)
SPECS = st.builds(
    lambda level, lower, needs: declared(level=level, lower=lower, needs=needs), st.sampled_from(Level), RULES, NEEDS
)
REQUESTS = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES))
GRANTS = st.lists(CAPABILITIES, max_size=3).map(Grant.of)


@given(SPECS, CAPABILITIES, REQUESTS)
def test_level_never_exceeds_the_declared_one(spec, capability, requested):
    assert level_of(spec, capability, requested) <= spec.level


@given(SPECS, GRANTS, st.lists(REQUESTS.map(lambda fields: RoadScope(**fields)), max_size=3))
def test_level_of_a_use_never_exceeds_the_declared_one(spec, held, scopes):
    assert level_within(spec, held, scopes) <= spec.level
    assert reach([spec], held) <= spec.level


@given(SPECS, CAPABILITIES, CAPABILITIES, REQUESTS)
def test_narrower_capability_never_has_a_higher_level(spec, wider, other, requested):
    narrower = wider.meet(other)
    if narrower is not None:
        assert level_of(spec, narrower, requested) <= level_of(spec, wider, requested)


@given(SPECS, GRANTS, REQUESTS)
def test_allowed_use_never_exceeds_what_its_grant_reaches(spec, held, requested):
    scope = RoadScope(**requested)
    if held.allows("road", scope.fields()) and all(requested.get(name) in spec.needs[name] for name in spec.needs):
        assert level_within(spec, held, [scope]) <= reach([spec], held)


@given(SPECS, GRANTS, REQUESTS, REQUESTS)
def test_level_holds_for_all_that_a_use_may_require_later(spec, held, requested, later):
    """The values that rules and needs name stay the same; the others may be those of a redirect."""
    kept = {name: value for name, value in requested.items() if name in spec.kept}
    later = {name: value for name, value in later.items() if name not in spec.kept} | kept
    decided = level_within(spec, held, [RoadScope(**requested)])
    for capability in held.capabilities:
        if held.allows("road", requested) and capability.allows(later):
            assert level_of(spec, capability, later) <= decided
