"""Scopes: values of omitted fields, and fields that are known only while an op runs."""

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


def test_family_derives_omitted_fields_from_given_ones():
    assert fitted("road:to=farm") == "road:surface=gravel,to=farm"
    assert fitted("road:to=town") == "road:surface=paved,to=town"
    assert fitted("road") == "road:surface=paved"


def test_given_field_is_not_overridden():
    assert fitted("road:to=farm,surface=paved") == "road:surface=paved,to=farm"


def test_fit_is_idempotent():
    assert fitted(fitted("road:to=farm")) == fitted("road:to=farm")


def test_complete_receives_decoded_values_with_their_star():
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


def test_field_known_only_at_run_time_is_checked_then():
    grant = Grant.of([Capability.parse("road:to=farm,surface=gravel")])
    assert grant.match("road", {"to": "farm"}, known_later=["surface"])
    assert not grant.match("road", {"to": "farm"})
    assert not grant.match("road", {"to": "farm", "surface": "paved"}, known_later=["surface"])
    assert not grant.match("road", {"surface": "gravel"}, known_later=["surface"])
