"""What must be impossible: every attempt runs in a real worker of a real host, on both tiers, as root and as a user.

Without confinement each of them gets what it wants; so none is stopped by chance, or because something is missing.
"""

import json
import os
import runpy
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("impossible")
TABLES = {name: runpy.run_path(str(FOLDER / f"{name}.py")) for name in (
    "processes", "reading", "writing", "memory", "signals", "sockets"
)}  # fmt: skip
ATTEMPTS = [(table, name) for table, content in TABLES.items() for name in content["HOSTILE"]]
DEADLY = [("processes", name) for name in TABLES["processes"]["DEADLY"]]
ONLY_IN_NAMESPACES = {(table, name) for table in ("reading", "sockets") for name in TABLES[table]["ONLY_IN_NAMESPACES"]}
NEEDS_ROOT = {(table, name) for table, content in TABLES.items() for name in content["NEEDS_ROOT"]}
SECONDS = 120
WHO_RUNS = "root" if os.geteuid() == 0 else "user"

HEADER = """---
name: {name}
description: A skill of a test.
---
"""
TOOL = """
@tool
async def attempt_{index}(facts: dict) -> None:
    async def attempt(facts):
{code}

    await attack(attempt, facts)
"""


def called(table, name):
    """The full name of its tool. What ends its worker is a skill of its own."""
    index = list(TABLES[table]["HOSTILE"]).index(name)
    skill = f"{table}_{index}" if (table, name) in DEADLY else table
    return f"{skill}.attempt_{index}"


def write_skills(folder):
    """All skills: two quiet ones, one of each table, and those that end their workers."""
    neighbour = (FOLDER / "neighbour.py").read_text()
    skills = {"neighbour": neighbour, "latecomer": neighbour}
    for table, name in ATTEMPTS:
        skill, _, tool = called(table, name).partition(".")
        code = textwrap.indent(textwrap.dedent(TABLES[table]["HOSTILE"][name]), " " * 8)
        start = skills.get(skill) or (FOLDER / "prelude.py").read_text()
        skills[skill] = start + TOOL.format(index=tool.removeprefix("attempt_"), code=code)
    for skill, code in skills.items():
        (folder / skill).mkdir(parents=True)
        (folder / skill / "SKILL.md").write_text(HEADER.format(name=skill))
        (folder / skill / "tools.py").write_text(code)
        for name in ("own", "spare", "short"):
            (folder / skill / f"{name}.txt").write_text("its own")
    return [str(folder / skill) for skill in skills]


@pytest.fixture(scope="session")
def report(area):
    """What came of all attempts, made at once for a user and a tier."""
    made = {}

    def report(who, tier):
        if (who, tier) not in made:
            made[who, tier] = attack(area / f"{who}-{tier}", who, tier)
            assert made[who, tier]["tier"] == tier
        return made[who, tier]

    return report


def attack(place, who, tier):
    as_user = ["--as-user", "61234"] if who == "user" and os.geteuid() == 0 else []
    orders = {
        "tier": tier,
        "home": str(place / "home"),
        "area": str(place),
        "skills": write_skills(place / "skills"),
        "neighbour": "neighbour.settle",
        "latecomer": "latecomer.settle",
        "calls": [called(*attempt) for attempt in ATTEMPTS],
    }
    if as_user:
        shutil.chown(place, 61_234, 61_234)
    answer = subprocess.run(
        [sys.executable, FOLDER.with_name("harness_host.py"), *as_user],
        input=json.dumps(orders) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env={**os.environ, "SIDEBAND_CANARY": "canary of the host", "SIDEBAND_HOME": orders["home"]},
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def named(attempts):
    return [pytest.param(attempt, id=": ".join(attempt)) for attempt in attempts]


@pytest.mark.parametrize("attempt", named(ATTEMPTS))
def test_without_confinement_a_hostile_skill_gets_what_it_wants(report, who, attempt):
    if who == "user" and attempt in NEEDS_ROOT:
        return
    assert report(who, "none")["outcomes"][called(*attempt)] is None


@pytest.mark.parametrize("attempt", named(ATTEMPTS))
def test_a_hostile_skill_is_stopped(report, who, tier, attempt):
    if tier != "full" and attempt in ONLY_IN_NAMESPACES:
        return
    stopped = report(who, tier)["outcomes"][called(*attempt)]
    assert stopped is not None
    if attempt in DEADLY:
        assert "SIGSYS" in stopped
        return
    # By the system, and not because an attempt before it has used up what this one needs.
    assert "OSError" in stopped
    assert not any(reason in stopped for reason in ("Too many open files", "No space left", "Cannot allocate"))


def test_the_neighbour_of_hostile_skills_notices_nothing(report, who, tier):
    assert report(who, tier)["unharmed"]


def traces(place):
    """What can be found after the attempts: in the open folder, and where the host keeps skills and SDKs."""
    found = {}
    for folder in (place / "open", place / "home" / "skills", place / "home" / "sdk"):
        for path in folder.rglob("*"):
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[str(path.relative_to(place))] = (status.st_mode, status.st_uid, content)
    return found


def test_hostile_skills_leave_no_trace(report, area, who, tier):
    report(who, tier)
    found = traces(area / f"{who}-{tier}")
    kept = {name: entry for name, entry in found.items() if name.startswith("open/")}
    assert sorted(kept) == [f"open/{name}" for name in ("known", "linked", "moved", "removed", "shortened")]
    assert {content for _, _, content in kept.values()} == {b"canary-2f91c07e5ab3"}
    assert {content for name, (_, _, content) in found.items() if name.endswith(".txt")} == {b"its own"}
    assert not [name for name in found if "written" in name or name.endswith((".pyc", "renamed.txt", "hard"))]


def test_without_confinement_they_would_leave_traces(report, area):
    report(WHO_RUNS, "none")
    found = traces(area / f"{WHO_RUNS}-none")
    assert {"open/written", "open/hard", "open/elsewhere"} <= set(found)


@pytest.mark.parametrize("tier", ["full", "no-namespaces", "none"])
def test_a_worker_is_given_nothing_of_the_hosts_environment_and_no_file_of_the_host(report, who, tier):
    """No tier has to stop what was never handed over. The host has a descriptor that could be inherited."""
    first, last = report(who, tier)["given"]
    assert set(first["environment"]) <= {"LANG", "LC_ALL", "LC_CTYPE", "MALLOC_ARENA_MAX", "PYTHONUTF8", "TZ"}
    kinds = first["descriptors"]
    assert {kinds[number] for number in "123"} == {stat.S_IFSOCK}
    # The others are the event loop's. A pipe could be opened anew in its other direction; a file could be read.
    assert set(kinds.values()) <= {stat.S_IFSOCK, stat.S_IFCHR, 0}
    assert last == {**first, **{name: last[name] for name in last if name.startswith("neighbour_")}}


def tables_of(path):
    """Whatever a module of this folder names in capitals and looks up by name, in words."""
    for name, table in runpy.run_path(str(path)).items():
        if name.isupper() and isinstance(table, dict):
            yield from (code for code in table.values() if isinstance(code, str))


def test_there_are_enough_of_them_and_no_two_are_the_same():
    own = [code for content in TABLES.values() for code in content["HOSTILE"].values()]
    assert len(own) == len(set(own)) >= 300
    others = {
        path for path in FOLDER.parent.glob("test_*.py") if path.stem not in {Path(__file__).stem, "test_ordinary"}
    }
    assert len({*own, *(code for path in others for code in tables_of(path))}) >= 400
