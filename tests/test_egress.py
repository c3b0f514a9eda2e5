"""Every op of the repository declares whether it leaves the machine."""

from importlib.metadata import entry_points

import pytest

LEAVING = {
    "http": {"delete", "download", "fetch_blob", "get", "head", "options", "patch", "post", "put", "request"}
    | {"session_request"},
    "llm": {"generate", "models"},
}


@pytest.mark.parametrize("family", sorted(one.name for one in entry_points(group="sideband.v1.op")))
def test_family_declares_which_ops_leave_the_machine(family):
    (entry_point,) = entry_points(group="sideband.v1.op", name=family)
    ops = entry_point.load().sideband_ops().ops
    assert [spec.name for spec in ops if spec.egress is None] == []
    assert {spec.verb for spec in ops if spec.egress is True} == LEAVING.get(family, set())
    assert [spec.name for spec in ops if callable(spec.egress)] == (["shell.run"] if family == "shell" else [])


@pytest.mark.parametrize("network", [False, True])
def test_program_leaves_the_machine_if_it_may_use_the_network(network):
    (entry_point,) = entry_points(group="sideband.v1.op", name="shell")
    (spec,) = entry_point.load().sideband_ops().ops
    assert spec.leaves_machine(spec.params(binary="git", args=[], network=network), None) is network
