"""The command line of two machines that share a store, which one line of configuration chooses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("sideband")
TURNS = """
[models.test]
turns = ["one"]
"""
ASKER = """
from sideband.skill import blobs, tool

@tool
async def keep() -> str:
    await blobs.put(content="a")
    return "kept"
"""


@pytest.fixture
def machine(server, schema, tmp_path):
    """Return a function that runs a command on a machine, with its own home."""
    (tmp_path / "turns.toml").write_text(TURNS)

    def run(number, *words, status=0):
        home = tmp_path / f"machine-{number}"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [COMMAND, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=home,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "SIDEBAND_HOME": str(home / "state"),
                "SIDEBAND_PLUGINS__POSTGRES__ADDRESS": server.address,
                "SIDEBAND_PLUGINS__POSTGRES__SCHEMA": schema,
                "SIDEBAND_PLUGINS__SCRIPTED__SCRIPT": str(tmp_path / "turns.toml"),
            },
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return run


def origins(record):
    return {key: value for entry in record["entries"] for key, value in entry.get("origin", {}).items()}


def test_one_line_of_configuration_lets_machines_share_sessions_and_read_all_ledgers(machine):
    for number in (1, 2):
        assert machine(number, "run", f"from {number}", "--model", "scripted:test").strip() == "one"
    listed = [json.loads(machine(number, "sessions", "list", "--json")) for number in (1, 2)]
    assert listed[0] == listed[1]
    assert {one["first"] for one in listed[0]} == {"from 1", "from 2"}
    (other,) = (one["id"] for one in listed[0] if one["first"] == "from 2")
    assert "from 2" in machine(1, "sessions", "show", other)
    own, every = (json.loads(machine(1, "audit", "query", "--json", *more)) for more in ((), ("--all-hosts",)))
    sessions = [{origins(one).get("session") for one in found} - {None} for found in (own, every)]
    assert sessions[0] < sessions[1] == {one["id"] for one in listed[0]}
    times = [one["entries"][0]["time"] for one in every]
    assert times == sorted(times, reverse=True)
    assert len(json.loads(machine(1, "audit", "query", "--json", "--all-hosts", "--limit", "1"))) == 1
    verdict = json.loads(machine(1, "audit", "verify", "--all-hosts", "--json"))
    assert verdict["ok"]
    assert len(verdict["ledgers"]) == 2
    assert machine(1, "audit", "verify", "--all-hosts").count("is intact") == 2


def test_request_of_one_machine_is_approved_on_another(machine, tmp_path):
    skill = tmp_path / "asker"
    skill.mkdir()
    (skill / "SKILL.md").write_text(
        "---\nname: asker\ndescription: A test skill.\nmetadata:\n  sideband.capabilities: 'blobs:mode=write'\n---\n"
    )
    (skill / "tools.py").write_text(ASKER)
    machine(1, "call", "asker.keep", "--skill-dir", str(skill), status=3)
    (request,) = json.loads(machine(2, "approvals", "list", "--json"))
    machine(2, "approvals", "approve", request["request"]["id"], "--yes")
    assert "kept" in machine(1, "call", "asker.keep", "--skill-dir", str(skill))
