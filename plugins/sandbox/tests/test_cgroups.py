"""Control groups: the real ones of this machine, and, for discovery, imitations in ordinary folders."""

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
    """Return the control groups of this machine."""
    found = find_cgroups()
    if found is None and not os.environ.get("CI"):
        pytest.skip("control groups are not available")
    assert found is not None, "control groups must be available in CI"
    return found


@contextmanager
def waiting(code):
    """Start a process that runs the code once it reads a line."""
    command = [sys.executable, "-I", "-S", "-c", f"input()\n{code}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def confined_run(groups, code, limits=SMALL):
    """Run code in a group. Return its exit code, its output, and whether it ran out of memory."""
    with waiting(code) as child:
        group = groups.confine(child.pid, limits)
        try:
            output, _ = child.communicate(b"\n", timeout=60)
            return child.returncode, output.decode(), group.was_out_of_memory()
        finally:
            group.close()


def test_process_over_its_memory_limit_is_killed_and_reported(groups):
    code, _, out_of_memory = confined_run(groups, "kept = bytearray(256 << 20)\nprint('alive')")
    assert code == -signal.SIGKILL
    assert out_of_memory


def test_shared_memory_counts_against_the_limit(groups):
    code, _, out_of_memory = confined_run(
        groups, "import mmap\nkept = mmap.mmap(-1, 256 << 20)\nkept.write(b'x' * (256 << 20))"
    )
    assert code == -signal.SIGKILL
    assert out_of_memory


def test_process_within_its_memory_limit_keeps_running(groups):
    assert confined_run(groups, "kept = bytearray(32 << 20)\nprint('alive')") == (0, "alive\n", False)


def test_killed_process_is_not_reported_as_out_of_memory(groups):
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


def test_thread_limit_is_enforced(groups):
    assert confined_run(groups, THREADS)[1] == "8\n"


def test_process_in_another_group_is_unaffected(groups):
    with waiting("kept = bytearray(32 << 20)\nprint('alive')") as neighbor:
        group = groups.confine(neighbor.pid, SMALL)
        confined_run(groups, "kept = bytearray(256 << 20)")
        output, _ = neighbor.communicate(b"\n", timeout=60)
        assert (output, group.was_out_of_memory()) == (b"alive\n", False)
        group.close()


def test_close_removes_the_groups(groups):
    with waiting("") as child:
        group = groups.confine(child.pid, SMALL)
        assert all(folder.is_dir() for folder in group.folders)
    group.close()
    assert not any(folder.exists() for folder in group.folders)
    group.close()


def test_close_returns_soon_while_the_process_runs(groups):
    with waiting("") as child:
        group = groups.confine(child.pid, SMALL)
        started = time.monotonic()
        group.close()
        assert time.monotonic() - started < 5
        assert all(folder.is_dir() for folder in group.folders)
    group.close()
    assert not any(folder.exists() for folder in group.folders)


def test_confining_an_exited_process_fails_and_leaves_no_group(groups):
    with waiting("") as child:
        child.kill()
        child.wait()
    with pytest.raises(ProcessLookupError):
        groups.confine(child.pid, SMALL)
    assert not groups_of_host(groups, os.getpid())


def groups_of_host(groups, pid):
    return [folder for parent in groups.parents for folder in parent.folder.glob(f"sideband-{pid}-*")]


def test_groups_of_exited_hosts_are_removed_whatever_their_process_id(groups):
    for parent in groups.parents:
        for name in (f"{os.getpid()}-00", f"{os.getpid()}-notours", f"1{'0' * 30}-00"):
            parent.folder.joinpath(f"sideband-{name}").mkdir()
    find_cgroups()
    assert not groups_of_host(groups, int(f"1{'0' * 30}"))
    left = groups_of_host(groups, os.getpid())
    for folder in left:
        folder.rmdir()
    assert [folder.name for folder in left] == [f"sideband-{os.getpid()}-notours"] * len(groups.parents)


HOST_IN_CONTAINER = "from sideband_sandbox._machine._cgroups import find_cgroups; assert find_cgroups() is not None"


def test_groups_of_a_host_in_another_process_namespace_are_kept(groups):
    with waiting("") as child:
        group = groups.confine(child.pid, SMALL)
        child.kill()
        child.wait()
        # Its group is empty now, as between its creation and the worker's first message.
        command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", HOST_IN_CONTAINER]
        subprocess.run(command, check=True)
        assert all(folder.is_dir() for folder in group.folders)
    group.close()
    assert not any(folder.exists() for folder in group.folders)


def test_find_cgroups_leaves_no_group(groups):
    assert find_cgroups() == groups
    assert not groups_of_host(groups, os.getpid())


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user")
def test_find_cgroups_returns_none_without_permission(groups):
    found = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert found.stdout == "None\nrefused\n"


class Tree:
    """An imitation of the kernel's files: control groups, and the ``/proc`` folder of a process."""

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
    """Return a version 2 tree in which the host's group has a delegated parent."""
    tree.group("fs")
    tree.group("fs/unit", cgroup__subtree_control="cpu memory pids")
    tree.group("fs/unit/host", cgroup__subtree_control="", memory__max="max", pids__max="max", cpu__max="max 100000")
    tree.mount("fs", "cgroup2", "rw,nsdelegate")
    tree.member("0::/unit/host")
    return tree


def test_version_2_creates_siblings_of_the_host_group(delegated):
    found = delegated.found()
    assert found.version == 2
    assert [parent.folder for parent in found.parents] == [delegated.folder / "fs/unit"]


@pytest.mark.parametrize("controllers", ["", "memory", "pids", "cpu io memory", "memory_pids"])
def test_version_2_requires_both_controllers(delegated, controllers):
    delegated.group("fs/unit", cgroup__subtree_control=controllers)
    assert delegated.found() is None


@pytest.mark.parametrize("limit", ["memory__max", "memory__high", "pids__max", "cpu__max", "cpuset__cpus"])
def test_host_group_with_limits_is_not_left(delegated, limit):
    delegated.group("fs/unit/host", **{limit: "1000"})
    assert delegated.found() is None


def test_groups_that_cannot_be_removed_are_not_used(delegated):
    # These are ordinary folders, so they are not empty after files were written.
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


def test_version_2_reports_only_the_own_limit_as_out_of_memory(delegated):
    group = delegated.found().confine(4321, SMALL)
    events = group.folders[0] / "memory.events"
    for content, answer in (
        ("low 0\nhigh 0\nmax 9\noom 1\noom_kill 1", True),
        ("max 9\noom 0\noom_kill 1", False),  # the whole machine was out of memory
        ("max 9\noom 1\noom_kill 0", False),
    ):
        events.write_text(content + "\n")
        assert group.was_out_of_memory() == answer


def test_version_1_reports_only_the_own_limit_as_out_of_memory(tree):
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


def test_root_group_of_version_2_is_used(tree):
    tree.group("fs", cgroup__subtree_control="memory pids")
    tree.mount("fs", "cgroup2", "rw")
    tree.member("0::/")
    assert [parent.folder for parent in tree.found().parents] == [tree.folder / "fs"]


def test_version_1_creates_children_of_the_host_group(tree):
    tree.group("memory/box")
    tree.group("pids")
    tree.mount("memory", "cgroup", "rw,memory")
    tree.mount("pids", "cgroup", "rw,pids")
    for line in ("8:pids:/", "4:memory:/box", "0::/"):
        tree.member(line)
    found = tree.found()
    assert found.version == 1
    assert [parent.folder for parent in found.parents] == [tree.folder / "memory/box", tree.folder / "pids"]


def test_version_1_requires_both_controllers(tree):
    tree.mount("memory", "cgroup", "rw,memory")
    tree.member("4:memory:/")
    assert tree.found() is None


def test_mount_of_a_subtree_is_supported(tree):
    tree.group("one two/inner")
    tree.mount("one two", "cgroup", "rw,memory,pids", root="/box")
    tree.member("4:memory,pids:/box/inner")
    assert [parent.folder for parent in tree.found().parents] == [tree.folder / "one two/inner"]


def test_controllers_in_one_tree_share_a_group(tree):
    folder = tree.group("both")
    tree.mount("both", "cgroup", "rw,memory,pids")
    tree.member("4:memory,pids:/")
    group = tree.found().confine(4321, SMALL)
    assert {path.parent for path in group.folders} == {folder}
    assert {file.name for path in group.folders for file in path.iterdir()} >= {"memory.limit_in_bytes", "pids.max"}


@pytest.mark.parametrize("path", ["/elsewhere", "/..", "/box/../elsewhere", "/boxes"])
def test_group_outside_the_mount_is_not_used(tree, path):
    tree.mount("fs", "cgroup", "rw,memory,pids", root="/box")
    tree.member(f"4:memory,pids:{path}")
    assert tree.found() is None


@pytest.mark.parametrize("line", ["", "nothing", "30 20 0:26 / - cgroup2", "30 20 0:26 / /x rw -"])
def test_malformed_mountinfo_is_ignored(tree, line):
    tree.mounts.append(line)
    assert tree.found() is None


def test_missing_proc_files_are_ignored(tmp_path):
    assert find_cgroups(tmp_path) is None
