"""What a family says about its fields: what they mean when left out, and which are known only while an op runs."""

from attrs import frozen
from sideband.ops import Capability, Grant, Scope


@frozen
class RoadScope(Scope, family="road"):
    to: str | None = None
    surface: str | None = None
    known_later = ("surface",)

    @classmethod
    def complete(cls, fields):
        return {"surface": ("gravel",) if fields.get("to") == ("farm",) else ("paved",)}


def fitted(text):
    return str(Capability.parse(text).fit(RoadScope))


def test_a_family_completes_a_capability_from_the_fields_that_it_has():
    assert fitted("road:to=farm") == "road:surface=gravel,to=farm"
    assert fitted("road:to=town") == "road:surface=paved,to=town"
    assert fitted("road") == "road:surface=paved"


def test_a_field_that_is_written_stays_as_it_is():
    assert fitted("road:to=farm,surface=paved") == "road:surface=paved,to=farm"


def test_completing_twice_is_the_same_as_once():
    assert fitted(fitted("road:to=farm")) == fitted("road:to=farm")


def test_the_values_that_it_completes_from_are_decoded_and_keep_their_star():
    seen = []

    @frozen
    class Seeing(Scope, family="road"):
        to: str | None = None

        @classmethod
        def complete(cls, fields):
            seen.append(fields)
            return {}

    Capability.parse("road:to=a%2Cb|town*").fit(Seeing)
    assert seen == [{"to": ("a,b", "town*")}]


def test_a_field_that_is_known_later_is_compared_then():
    grant = Grant.of([Capability.parse("road:to=farm,surface=gravel")])
    assert grant.match("road", {"to": "farm"}, known_later=["surface"])
    assert not grant.match("road", {"to": "farm"})
    assert not grant.match("road", {"to": "farm", "surface": "paved"}, known_later=["surface"])
    assert not grant.match("road", {"surface": "gravel"}, known_later=["surface"])
