"""What the calls of a tool have in common is kept, but not for any number of principals."""

import gc
from pathlib import Path
from weakref import ref

import pytest
from sideband.calls._call_plans import CallPlans
from sideband.loading import ToolSpec
from sideband.ops import Grant
from sideband.workers import LaunchRequest

TOOL = ToolSpec("notes", "add", "tools.py", "Add.", {"type": "object"}, validate=dict)
LAUNCH = LaunchRequest(snapshot=Path("/snapshot"), sdk=Path("/sdk"))
GRANT = Grant.parse(["http"])


@pytest.fixture
def plans():
    return CallPlans()


def test_calls_of_a_principal_share_a_plan_and_those_of_others_have_another_domain(plans):
    mine, again, other = (plans.of("notes.add", TOOL, LAUNCH, GRANT, name) for name in ("me", "me", "you"))
    assert mine is again
    assert mine.domain != other.domain


def test_plans_of_many_principals_are_not_all_kept(plans):
    known = [ref(plans.of("notes.add", TOOL, LAUNCH, GRANT, f"user-{number}")) for number in range(3_000)]
    gc.collect()
    assert sum(one() is not None for one in known) <= 1_024
