"""A standard test is overridden only by name and with a reason."""

import pytest
from sideband_testing import OpFamilyConformance, OverrideInvalid

NAME = "test_schemas_are_valid"


def derive(**attributes):
    return type("TestClock", (OpFamilyConformance,), {"__module__": __name__, **attributes})


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"overrides": {"test_nothing": "no"}}, "is not a standard test"),
        ({"overrides": {NAME: " "}}, "gives no reason"),
        ({NAME: lambda self: None}, "redefines the standard test"),
        ({NAME: None}, "redefines the standard test"),
        ({"overrides": [NAME]}, "is a list"),
        ({"__init_subclass__": classmethod(lambda cls: None)}, "redefines `__init_subclass__`"),
    ],
    ids=["unknown", "no reason", "no entry", "removed", "list", "check"],
)
def test_override_without_name_and_reason_is_refused(attributes, problem):
    with pytest.raises(OverrideInvalid, match=problem):
        derive(**attributes)


def test_test_of_a_mixin_does_not_replace_a_standard_one():
    mixin = type("Mixin", (), {NAME: lambda self: None})
    with pytest.raises(OverrideInvalid, match="redefines the standard test"):
        type("TestClock", (mixin, OpFamilyConformance), {"__module__": __name__})


def test_override_with_a_reason_may_have_a_test_of_its_own():
    assert derive(overrides={NAME: "the schemas are written by hand"}, **{NAME: lambda self: None}).overrides
