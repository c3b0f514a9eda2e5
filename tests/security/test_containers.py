"""Hosts in process namespaces of their own, as in containers: as process 1, below process 1, and two beside each other.

The process namespaces are real. An ordinary user creates them in a user namespace, as rootless containers do.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ORDINARY_USER = 61_234
SKILL = """
import os
from sideband.skill import tool

@tool
async def number() -> int:
    return os.getpid()
"""


class Container:
    """A host in namespaces of its own, which carries out orders."""

    def __init__(self, process, shell):
        self.process = process
        self.shell = shell
        self.pid = 0

    def order(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def ask(self, **order):
        self.order(**order)
        return self.answer()

    def run(self, script):
        """Run a program."""
        return self.ask(command=[self.shell, "-c", script])

    def start(self, script):
        """Start a program that keeps running."""
        self.order(start=True, command=[self.shell, "-c", script])

    def end(self):
        """Close the host. Return the children that it has not reaped, and its exit code."""
        self.process.stdin.close()
        return self.answer()["left"], self.process.wait()

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def containers(area):
    """Return ``start(where, tier, who)``: opens a host. All hosts of a test share home and temporary folder."""
    shared = Path(tempfile.mkdtemp(dir=area))
    shared.chmod(0o755)
    home, temporary, skill = shared / "home", shared / "temporary", shared / "skills" / "counter"
    shell = shared / "programs" / "sh"
    for folder in (home, temporary, skill, shell.parent):
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    # The system's programs belong to an unknown user if root has no number in the user namespace.
    shutil.copy2("/bin/sh", shell)
    (skill / "SKILL.md").write_text("---\nname: counter\ndescription: A skill of a test.\n---\n")
    (skill / "tools.py").write_text(SKILL)
    with contextlib.ExitStack() as stack:

        def start(where, tier="full", who="root"):
            other = who == "user" and os.geteuid() == 0
            if other:
                for path in (home, temporary, shell.parent, shell):
                    os.chown(path, ORDINARY_USER, ORDINARY_USER)
            user = [str(ORDINARY_USER)] if other else []
            process = subprocess.Popen(
                [sys.executable, str(HERE / "harness_container.py"), where, *user],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "TMPDIR": str(temporary)},
                start_new_session=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            container = Container(process, str(shell))
            container.pid = container.ask(tier=tier, home=str(home), skills=[str(skill.parent)])["pid"]
            return container

        start.temporary = temporary
        yield start


PLACES = {"first": 1, "second": 2}
USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]
TIERS = ["full", "no-namespaces"]
# `make test` runs each user on each tier, in one place; `make long` in the other place too.
COMBINATIONS = [
    pytest.param(where, who, tier, marks=[] if (place + user + level) % 2 else [pytest.mark.long])
    for place, where in enumerate(PLACES)
    for user, who in enumerate(USERS)
    for level, tier in enumerate(TIERS)
]


@pytest.mark.parametrize(("where", "who", "tier"), COMBINATIONS)
def test_host_in_a_container_runs_skills_and_programs_and_leaves_no_process(containers, where, who, tier):
    container = containers(where, tier, who)
    assert container.pid == PLACES[where]
    called = container.ask(call="counter.number")
    assert called.get("isolation") == tier, called
    ran = container.run("echo it runs")
    assert ran.get("stdout") == "it runs\n", ran
    assert container.run("sleep 1000 & sleep 1000 & exit 3")["exit_code"] == 3
    assert container.end() == ([], 0)
    assert list(containers.temporary.iterdir()) == []


@pytest.mark.parametrize("where", ["first", "second"])
def test_isolation_in_a_container_is_verified_with_all_attempts(containers, where):
    inside, outside = (containers(place).ask(probe=True) for place in (where, "same-processes"))
    assert inside == outside
    assert len(inside["proofs"]) > 60


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has no capabilities")
def test_root_without_the_capability_for_namespaces_gets_them_in_a_user_namespace(containers):
    container = containers("without-administrator")
    assert container.ask(call="counter.number")["isolation"] == "full"
    assert container.run("echo it runs")["stdout"] == "it runs\n"
    assert container.end() == ([], 0)


def test_proc_of_another_process_namespace_is_refused_with_a_remedy(containers):
    # Process IDs in /proc would be those of other processes.
    answer = containers("without-proc").ask(call="counter.number")
    assert answer["code"] == "isolation.unavailable"
    assert "unshare --mount-proc" in answer["hint"]


@pytest.mark.parametrize("neighbor", ["first", pytest.param("second", marks=pytest.mark.long), "outside"])
def test_host_keeps_folders_of_a_host_in_another_process_namespace(containers, neighbor):
    # Without namespaces of its own a program uses a folder of the machine, and would miss it.
    one = containers("outside", "no-namespaces")
    assert one.run("true")["exit_code"] == 0
    one.start('echo >"$TMPDIR/running"; kill -STOP $$')
    held = eventually(lambda: list(containers.temporary.glob("*/**/running")))
    assert held
    other = containers(neighbor, "no-namespaces")
    assert other.run("true")["exit_code"] == 0
    assert other.ask(call="counter.number")["isolation"] == "no-namespaces"
    assert all(path.exists() for path in held)
    assert other.end() == ([], 0)
    assert one.end() == ([], 0)
    assert list(containers.temporary.iterdir()) == []


@pytest.mark.parametrize("where", ["first", pytest.param("second", marks=pytest.mark.long), "outside"])
def test_host_removes_folders_of_a_killed_host_in_another_process_namespace(containers, where):
    one = containers(where, "no-namespaces")
    assert one.run("true")["exit_code"] == 0
    # The shell stops itself, because it may not be able to run other programs in a user namespace.
    one.start('echo >"$TMPDIR/running"; kill -STOP $$')
    assert eventually(lambda: list(containers.temporary.glob("*/**/running")))
    one.kill()
    other = containers("first", "no-namespaces")
    assert other.run("true")["exit_code"] == 0
    assert list(containers.temporary.glob("*/**/running")) == []
    assert other.end() == ([], 0)
    assert list(containers.temporary.iterdir()) == []


def eventually(condition):
    deadline = time.monotonic() + 30
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found
