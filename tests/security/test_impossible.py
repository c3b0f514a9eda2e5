"""Attempts that must fail. Each runs in a real worker of a real host, on both tiers, as root and as an ordinary user.

A few workers make all attempts. Without isolation all attempts succeed, so none fails by accident or because a target
is missing.
"""

import importlib
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
ATTEMPT = """
ATTEMPTS = globals().get("ATTEMPTS", {{}})

async def attempt(facts):
{code}

ATTEMPTS[{name!r}] = attempt
"""
TOOL = """
@tool
async def make_attempts(facts: dict) -> dict:
    outcomes = {}
    for name, attempt in ATTEMPTS.items():
        print(name, flush=True)
        outcomes[name] = await attack(attempt, facts)
    return outcomes
"""


def skill_of(table, name):
    """Return the name of the skill of an attempt. Attempts that kill their worker have a skill of their own."""
    index = list(TABLES[table]["HOSTILE"]).index(name)
    return f"{table}_{index}" if (table, name) in DEADLY else table


def write_skills(folder):
    """Write all skills: two harmless ones, one for each table, and those that kill their workers."""
    neighbor = (FOLDER / "neighbor.py").read_text()
    skills = {"neighbor": neighbor, "latecomer": neighbor}
    for table, name in ATTEMPTS:
        skill = skill_of(table, name)
        code = textwrap.indent(textwrap.dedent(TABLES[table]["HOSTILE"][name]), " " * 4)
        start = skills.get(skill) or (FOLDER / "prelude.py").read_text() + TOOL
        skills[skill] = start + ATTEMPT.format(name=name, code=code)
    for skill, code in skills.items():
        (folder / skill).mkdir(parents=True)
        (folder / skill / "SKILL.md").write_text(HEADER.format(name=skill))
        (folder / skill / "tools.py").write_text(code)
        for name in ("own", "spare", "short"):
            (folder / skill / f"{name}.txt").write_text("its own")
    return [str(folder / skill) for skill in skills]


@pytest.fixture(scope="session")
def report(area):
    """Return a function that makes all attempts on one host, once for each user and tier."""
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
        "neighbor": "neighbor.settle",
        "latecomer": "latecomer.settle",
        "calls": [f"{skill}.make_attempts" for skill in dict.fromkeys(skill_of(*attempt) for attempt in ATTEMPTS)],
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


def errors_of(attempts, report):
    """Return the error of each attempt, ``None`` for success. If a call failed, that is the error of its attempts."""
    outcomes = {skill_of(*attempt): report["outcomes"][f"{skill_of(*attempt)}.make_attempts"] for attempt in attempts}
    found = {(table, name): (outcomes[skill_of(table, name)], name) for table, name in attempts}
    return {attempt: made if isinstance(made, str) else made[name] for attempt, (made, name) in found.items()}


def test_attempts_succeed_without_isolation(report, who):
    expected = [attempt for attempt in ATTEMPTS if who == "root" or attempt not in NEEDS_ROOT]
    errors = errors_of(expected, report(who, "none"))
    assert {": ".join(attempt): error for attempt, error in errors.items() if error is not None} == {}


def stopped_as_expected(attempt, error):
    """Return whether the system stopped an attempt, rather than a resource that earlier attempts used up."""
    if error is None or attempt in DEADLY:
        return error is not None and "SIGSYS" in error
    exhausted = ("Too many open files", "No space left", "Cannot allocate")
    return "OSError" in error and not any(reason in error for reason in exhausted)


def test_attempts_fail_with_isolation(report, who, tier):
    expected = [attempt for attempt in ATTEMPTS if tier == "full" or attempt not in ONLY_IN_NAMESPACES]
    errors = errors_of(expected, report(who, tier))
    assert {
        ": ".join(attempt): error for attempt, error in errors.items() if not stopped_as_expected(attempt, error)
    } == {}


def test_neighbor_survives_the_attempts(report, who, tier):
    assert report(who, tier)["unharmed"]


def traces(place):
    """Return the files in the world-writable folder, and in the host's folders of skills and SDKs."""
    found = {}
    for folder in (place / "open", place / "home" / "skills", place / "home" / "sdk"):
        for path in folder.rglob("*"):
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[str(path.relative_to(place))] = (status.st_mode, status.st_uid, content)
    return found


def test_attempts_leave_no_trace_with_isolation(report, area, who, tier):
    report(who, tier)
    found = traces(area / f"{who}-{tier}")
    kept = {name: entry for name, entry in found.items() if name.startswith("open/")}
    assert sorted(kept) == [f"open/{name}" for name in ("known", "linked", "moved", "removed", "shortened")]
    assert {content for _, _, content in kept.values()} == {b"canary-2f91c07e5ab3"}
    assert {content for name, (_, _, content) in found.items() if name.endswith(".txt")} == {b"its own"}
    assert not [name for name in found if "written" in name or name.endswith((".pyc", "renamed.txt", "hard"))]


def test_attempts_leave_traces_without_isolation(report, area):
    report(WHO_RUNS, "none")
    found = traces(area / f"{WHO_RUNS}-none")
    assert {"open/written", "open/hard", "open/elsewhere"} <= set(found)


@pytest.mark.parametrize("tier", ["full", "no-namespaces", "none"])
def test_worker_inherits_no_environment_or_file_of_the_host(report, who, tier):
    """The host has an inheritable descriptor of a file, and a canary in its environment."""
    first, last = report(who, tier)["given"]
    assert set(first["environment"]) <= {"LANG", "LC_ALL", "LC_CTYPE", "MALLOC_ARENA_MAX", "PYTHONUTF8", "TZ"}
    kinds = first["descriptors"]
    assert {kinds[number] for number in "123"} == {stat.S_IFSOCK}
    # The others belong to the event loop. A pipe could be reopened in its other direction; a file could be read.
    assert set(kinds.values()) <= {stat.S_IFSOCK, stat.S_IFCHR, 0}
    assert last == {**first, **{name: last[name] for name in last if name.startswith("neighbor_")}}


def tables_of(path):
    """Yield the source code in the uppercase dictionaries of a module."""
    for name, table in vars(importlib.import_module(f"{__package__}.{path.stem}")).items():
        if name.isupper() and isinstance(table, dict):
            yield from (code for code in table.values() if isinstance(code, str))


def test_attempts_are_numerous_and_unique():
    own = [code for content in TABLES.values() for code in content["HOSTILE"].values()]
    assert len(own) == len(set(own)) >= 300
    others = {
        path for path in FOLDER.parent.glob("test_*.py") if path.stem not in {Path(__file__).stem, "test_ordinary"}
    }
    assert len({*own, *(code for path in others for code in tables_of(path))}) >= 400
