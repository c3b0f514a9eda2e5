"""Every op of the repository declares whether it leaves the machine."""

from importlib.metadata import entry_points

import pytest
from sideband_secrets import Config

LEAVING = {
    "http": {"delete", "download", "fetch_blob", "get", "head", "options", "patch", "post", "put", "request"}
    | {"session_request"},
    "llm": {"embed", "generate", "models"},
    "mcp": {"accept", "answer", "authorize", "call", "changes", "list", "login", "logout", "prompt", "prompts"}
    | {"install", "read", "resources"},
    "skills": {"install"},
}
VARYING = {
    "secrets": {"set", "rotate", "rollback", "list", "delete", "read", "read_binary"},
    "shell": {"run", "start"},
    "skills": {"run"},
}


@pytest.mark.parametrize("family", sorted(one.name for one in entry_points(group="sideband.v1.op")))
def test_family_declares_which_ops_leave_the_machine(family):
    (entry_point,) = entry_points(group="sideband.v1.op", name=family)
    ops = entry_point.load().sideband_ops().ops
    assert [spec.name for spec in ops if spec.egress is None] == []
    assert {spec.verb for spec in ops if spec.egress is True} == LEAVING.get(family, set())
    assert {spec.verb for spec in ops if callable(spec.egress)} == VARYING.get(family, set())


@pytest.mark.parametrize("network", [False, True])
def test_program_leaves_the_machine_if_it_may_use_the_network(network):
    (entry_point,) = entry_points(group="sideband.v1.op", name="shell")
    for spec in entry_point.load().sideband_ops().ops:
        if spec.verb in VARYING["shell"]:
            assert spec.leaves_machine(spec.params(binary="git", args=[], network=network), None) is network


@pytest.mark.parametrize("table", [{}, {"sources": ["vault"], "vault": {"address": "https://vault.example.org"}}])
def test_secrets_leave_the_machine_if_a_server_is_asked_for_them(table):
    config = Config.model_validate(table)
    (entry_point,) = entry_points(group="sideband.v1.op", name="secrets")
    ops = [spec for spec in entry_point.load().sideband_ops().ops if spec.verb in VARYING["secrets"]]
    assert {spec.leaves_machine(object(), config) for spec in ops} == {bool(table)}
