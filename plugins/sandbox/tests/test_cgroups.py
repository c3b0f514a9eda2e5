"""Control groups: those of this machine's kernel, and, for discovery, folders laid out like it lays them out."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from sideband.workers import WorkerLimits
from sideband_sandbox._machine._cgroups import WorkerCgroup, _candidates, find_cgroups

MIB = 1 << 20
SMALL = WorkerLimits(memory=64 * MIB, threads=8)


@pytest.fixture(scope="session")
def groups():
    """Those of this machine."""
    found = find_cgroups()
    if found is None and not os.environ.get("CI"):
        pytest.skip("no control groups can be made here")
    assert found is not None, "CI runs as root where they can be made"
    return found


@contextmanager
def waiting(code):
    """A process that runs the code once a line comes in."""
    command = [sys.executable, "-I", "-S", "-c", f"input()\n{code}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def confined_run(groups, code, limits=SMALL):
    """How the process ended, what it wrote, and whether it ran out of memory."""
    with waiting(code) as child:
        group = groups.confine(child.pid, limits)
        try:
            output, _ = child.communicate(b"\n", timeout=60)
            return child.returncode, output.decode(), group.was_out_of_memory()
        finally:
            group.close()


def test_a_process_over_its_memory_is_ended_and_the_reason_known(groups):
    code, _, out_of_memory = confined_run(groups, "kept = bytearray(256 << 20)\nprint('alive')")
    assert code == -signal.SIGKILL
    assert out_of_memory


def test_shared_memory_counts_as_well(groups):
    code, _, out_of_memory = confined_run(
        groups, "import mmap\nkept = mmap.mmap(-1, 256 << 20)\nkept.write(b'x' * (256 << 20))"
    )
    assert code == -signal.SIGKILL
    assert out_of_memory


def test_memory_within_the_limit_is_nobodys_business(groups):
    assert confined_run(groups, "kept = bytearray(32 << 20)\nprint('alive')") == (0, "alive\n", False)


def test_what_was_ended_otherwise_is_not_out_of_memory(groups):
    code, _, out_of_memory = confined_run(groups, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert code == -signal.SIGKILL
    assert not out_of_memory


THREADS = """
import threading
stop = threading.Event()
started = 1
try:
    for _ in range(50):
        threading.Thread(target=stop.wait).start()
        started += 1
except RuntimeError:
    print(started)
stop.set()
"""


def test_no_more_threads_than_the_limit_can_be_started(groups):
    assert confined_run(groups, THREADS)[1] == "8\n"


def test_a_neighbour_does_not_notice(groups):
    with waiting("kept = bytearray(32 << 20)\nprint('alive')") as neighbour:
        group = groups.confine(neighbour.pid, SMALL)
        confined_run(groups, "kept = bytearray(256 << 20)")
        output, _ = neighbour.communicate(b"\n", timeout=60)
        assert (output, group.was_out_of_memory()) == (b"alive\n", False)
        group.close()


def test_the_groups_are_gone_after_closing(groups):
    with waiting("") as child:
        group = groups.confine(child.pid, SMALL)
        assert all(folder.is_dir() for folder in group.folders)
    group.close()
    assert not any(folder.exists() for folder in group.folders)
    group.close()


def test_closing_while_the_process_lives_gives_up_soon(groups):
    with waiting("") as child:
        group = groups.confine(child.pid, SMALL)
        started = time.monotonic()
        group.close()
        assert time.monotonic() - started < 5
        assert all(folder.is_dir() for folder in group.folders)
    group.close()
    assert not any(folder.exists() for folder in group.folders)


def test_a_process_that_has_ended_is_an_error_and_leaves_nothing(groups):
    with waiting("") as child:
        child.kill()
        child.wait()
    with pytest.raises(ProcessLookupError):
        groups.confine(child.pid, SMALL)
    assert not left_by(groups, os.getpid())


def left_by(groups, pid):
    return [folder for parent in groups.parents for folder in parent.folder.glob(f"sideband-{pid}-*")]


def test_what_an_ended_host_left_is_removed_and_a_living_ones_is_not(groups):
    with waiting("") as host:
        for parent in groups.parents:
            parent.folder.joinpath(f"sideband-{host.pid}-00").mkdir()
            parent.folder.joinpath(f"sideband-{host.pid}-notours").mkdir()
            parent.folder.joinpath(f"sideband-{host.pid}{'0' * 30}-00").mkdir()
        find_cgroups()
        assert len(left_by(groups, host.pid)) == 2 * len(groups.parents)
    find_cgroups()
    assert not left_by(groups, int(f"{host.pid}{'0' * 30}"))
    left = left_by(groups, host.pid)
    for folder in left:
        folder.rmdir()
    assert [folder.name for folder in left] == [f"sideband-{host.pid}-notours"] * len(groups.parents)


def test_looking_leaves_nothing(groups):
    assert find_cgroups() == groups
    assert not left_by(groups, os.getpid())


UNPRIVILEGED = """
import os
from sideband.workers import WorkerLimits
from sideband_sandbox._machine._cgroups import find_cgroups
groups = find_cgroups()
os.setgroups([])
os.setresgid(61234, 61234, 61234)
os.setresuid(61234, 61234, 61234)
print(find_cgroups())
try:
    groups.confine(os.getpid(), WorkerLimits())
except PermissionError:
    print("refused")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_who_may_not_make_groups_gets_none_and_no_error(groups):
    found = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert found.stdout == "None\nrefused\n"


class Tree:
    """Folders and files as the kernel shows them, for the process that ``process`` stands for."""

    def __init__(self, folder):
        self.folder = folder
        self.process = folder / "process"
        self.process.mkdir()
        self.mounts = []
        self.memberships = []

    def group(self, path, **files):
        folder = self.folder / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name.replace("__", ".")).write_text(content + "\n")
        return folder

    def mount(self, path, kind, options, *, root="/"):
        point = str(self.folder / path).replace(" ", "\\040")
        self.mounts.append(f"30 20 0:26 {root} {point} rw,relatime shared:9 - {kind} {kind} {options}")

    def member(self, line):
        self.memberships.append(line)

    def found(self):
        (self.process / "mountinfo").write_text("".join(line + "\n" for line in self.mounts))
        (self.process / "cgroup").write_text("".join(line + "\n" for line in self.memberships))
        return next(_candidates(self.process), None)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def delegated(tree):
    """Version 2, with the host in a group of its own in one that was given to it."""
    tree.group("fs")
    tree.group("fs/unit", cgroup__subtree_control="cpu memory pids")
    tree.group("fs/unit/host", cgroup__subtree_control="", memory__max="max", pids__max="max", cpu__max="max 100000")
    tree.mount("fs", "cgroup2", "rw,nsdelegate")
    tree.member("0::/unit/host")
    return tree


def test_version_2_makes_groups_beside_the_hosts_own(delegated):
    found = delegated.found()
    assert found.version == 2
    assert [parent.folder for parent in found.parents] == [delegated.folder / "fs/unit"]


@pytest.mark.parametrize("controllers", ["", "memory", "pids", "cpu io memory", "memory_pids"])
def test_version_2_needs_both_controllers(delegated, controllers):
    delegated.group("fs/unit", cgroup__subtree_control=controllers)
    assert delegated.found() is None


@pytest.mark.parametrize("limit", ["memory__max", "memory__high", "pids__max", "cpu__max", "cpuset__cpus"])
def test_a_worker_does_not_leave_the_limits_of_the_hosts_own_group(delegated, limit):
    delegated.group("fs/unit/host", **{limit: "1000"})
    assert delegated.found() is None


def test_groups_that_do_not_go_away_are_none(delegated):
    # Folders that are only folders: what is written stays in them.
    assert delegated.found()
    assert find_cgroups(delegated.process) is None


def test_version_2_writes_its_limits_and_moves_the_process(delegated):
    group = delegated.found().confine(4321, WorkerLimits(memory=7 * MIB, threads=5))
    (folder,) = group.folders
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "memory.max": str(7 * MIB),
        "pids.max": "5",
        "cgroup.procs": "4321",
    }


def test_version_2_tells_who_ran_out_of_memory(delegated):
    group = delegated.found().confine(4321, SMALL)
    events = group.folders[0] / "memory.events"
    for content, answer in (
        ("low 0\nhigh 0\nmax 9\noom 1\noom_kill 1", True),
        ("max 9\noom 0\noom_kill 1", False),  # the whole machine was out of memory
        ("max 9\noom 1\noom_kill 0", False),
    ):
        events.write_text(content + "\n")
        assert group.was_out_of_memory() == answer


def test_version_1_tells_who_ran_out_of_memory(tree):
    tree.group("both")
    tree.mount("both", "cgroup", "rw,memory,pids")
    tree.member("4:memory,pids:/")
    (folder,) = tree.found().confine(4321, SMALL).folders
    for killed, peak, answer in (
        (1, SMALL.memory, True),
        (1, SMALL.memory // 2, False),  # the whole machine was out of memory
        (0, SMALL.memory, False),
    ):
        (folder / "memory.oom_control").write_text(f"oom_kill_disable 0\nunder_oom 0\noom_kill {killed}\n")
        (folder / "memory.max_usage_in_bytes").write_text(f"{peak}\n")
        assert WorkerCgroup((folder,)).was_out_of_memory() == answer


def test_the_root_of_version_2_may_have_processes_and_groups(tree):
    tree.group("fs", cgroup__subtree_control="memory pids")
    tree.mount("fs", "cgroup2", "rw")
    tree.member("0::/")
    assert [parent.folder for parent in tree.found().parents] == [tree.folder / "fs"]


def test_version_1_makes_groups_below_the_hosts_own(tree):
    tree.group("memory/box")
    tree.group("pids")
    tree.mount("memory", "cgroup", "rw,memory")
    tree.mount("pids", "cgroup", "rw,pids")
    for line in ("8:pids:/", "4:memory:/box", "0::/"):
        tree.member(line)
    found = tree.found()
    assert found.version == 1
    assert [parent.folder for parent in found.parents] == [tree.folder / "memory/box", tree.folder / "pids"]


def test_version_1_needs_both_controllers(tree):
    tree.mount("memory", "cgroup", "rw,memory")
    tree.member("4:memory:/")
    assert tree.found() is None


def test_a_mount_that_shows_only_a_part_is_understood(tree):
    tree.group("one two/inner")
    tree.mount("one two", "cgroup", "rw,memory,pids", root="/box")
    tree.member("4:memory,pids:/box/inner")
    assert [parent.folder for parent in tree.found().parents] == [tree.folder / "one two/inner"]


def test_controllers_that_share_a_tree_share_a_group(tree):
    folder = tree.group("both")
    tree.mount("both", "cgroup", "rw,memory,pids")
    tree.member("4:memory,pids:/")
    group = tree.found().confine(4321, SMALL)
    assert {path.parent for path in group.folders} == {folder}
    assert {file.name for path in group.folders for file in path.iterdir()} >= {"memory.limit_in_bytes", "pids.max"}


@pytest.mark.parametrize("path", ["/elsewhere", "/..", "/box/../elsewhere", "/boxes"])
def test_a_group_that_the_mount_does_not_show_is_not_used(tree, path):
    tree.mount("fs", "cgroup", "rw,memory,pids", root="/box")
    tree.member(f"4:memory,pids:{path}")
    assert tree.found() is None


@pytest.mark.parametrize("line", ["", "nothing", "30 20 0:26 / - cgroup2", "30 20 0:26 / /x rw -"])
def test_lines_that_nobody_understands_are_no_error(tree, line):
    tree.mounts.append(line)
    assert tree.found() is None


def test_a_system_without_such_files_has_none(tmp_path):
    assert find_cgroups(tmp_path) is None
