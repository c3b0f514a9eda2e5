"""The command line of two machines that share a store, which settings in the environment choose."""

import json
import os
import subprocess
import sys
from pathlib import Path

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


class Machines:
    """Runs commands on machines, each with its own home.

    Args:
        folder: a new folder.
        settings: the variables that choose the store.
    """

    def __init__(self, folder, settings):
        self._folder, self._settings = folder, settings
        (folder / "turns.toml").write_text(TURNS)

    def run(self, number, *words, status=0):
        home = self._folder / f"machine-{number}"
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
                "SIDEBAND_PLUGINS__SCRIPTED__SCRIPT": str(self._folder / "turns.toml"),
                **self._settings,
            },
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def read(self, number, *words):
        """Run a command, and return what it prints as JSON."""
        return json.loads(self.run(number, *words, "--json"))


def check_sessions_and_ledgers(machines):
    """Check that both machines list all sessions, and can query and verify all ledgers."""
    for number in (1, 2):
        assert machines.run(number, "run", f"from {number}", "--model", "scripted:test").strip() == "one"
    listed = [machines.read(number, "sessions", "list") for number in (1, 2)]
    assert listed[0] == listed[1]
    assert {one["first"] for one in listed[0]} == {"from 1", "from 2"}
    (other,) = (one["id"] for one in listed[0] if one["first"] == "from 2")
    assert "from 2" in machines.run(1, "sessions", "show", other)
    own, every = (machines.read(1, "audit", "query", *more) for more in ((), ("--all-hosts",)))
    sessions = [{_origins(one).get("session") for one in found} - {None} for found in (own, every)]
    assert sessions[0] < sessions[1] == {one["id"] for one in listed[0]}
    times = [one["entries"][0]["time"] for one in every]
    assert times == sorted(times, reverse=True)
    assert len(machines.read(1, "audit", "query", "--all-hosts", "--limit", "1")) == 1
    verdict = machines.read(1, "audit", "verify", "--all-hosts")
    assert verdict["ok"]
    assert len(verdict["ledgers"]) == 2
    assert machines.run(1, "audit", "verify", "--all-hosts").count("is intact") == 2


def check_approvals(machines, folder):
    """Check that a request of one machine can be approved on the other."""
    skill = folder / "asker"
    skill.mkdir()
    (skill / "SKILL.md").write_text(
        "---\nname: asker\ndescription: A test skill.\nmetadata:\n  sideband.capabilities: 'blobs:mode=write'\n---\n"
    )
    (skill / "tools.py").write_text(ASKER)
    machines.run(1, "call", "asker.keep", "--skill-dir", str(skill), status=3)
    (request,) = machines.read(2, "approvals", "list")
    machines.run(2, "approvals", "approve", request["request"]["id"], "--yes")
    assert "kept" in machines.run(1, "call", "asker.keep", "--skill-dir", str(skill))


def _origins(record):
    return {key: value for entry in record["entries"] for key, value in entry.get("origin", {}).items()}
