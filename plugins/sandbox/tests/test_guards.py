"""Attempts with each layer of the isolation removed: they succeed, so the other tests do not pass by accident."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from sideband.workers import WorkerLimits
from sideband_sandbox._workers._plan import Variant

EXIT_CODE = 97

# Actions that an ordinary user may do unless this step stops them.
LANDLOCK = {
    "read the users of the machine": "open('/etc/passwd').read()",
    "read a neighbor's file": "open(area + '/secret.txt').read()",
    "read through a link in its own folder": "open(snapshot + '/way_out').read()",
    "list the root": "os.listdir('/')",
    "read its own memory map": "open('/proc/self/maps').read()",
    "create a file": "os.close(os.open(area + '/open/new', os.O_CREAT | os.O_WRONLY))",
    "open a file to write": "os.close(os.open(area + '/open/known', os.O_WRONLY))",
    "truncate a file": "os.close(os.open(area + '/open/known', os.O_WRONLY | os.O_TRUNC))",
}
SECCOMP = {
    "open a socket": "import socket; socket.socket()",
    "create a datagram socket pair": "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "fork": "reap(os.fork())",
    "execute a missing program": """
try:
    os.execv('/none', ['none'])
except OSError as error:
    if error.errno == 1:
        raise
""",
    "change a mode": "os.chmod(area + '/open/known', 0o666)",
    "change times": "os.utime(area + '/open/known')",
    "make a file in memory": "os.memfd_create('x')",
    "outlive the host": "demand(libc.prctl(1, 0, 0, 0, 0))",
    "start a session": "os.setsid()",
    "read the limits of another": "__import__('resource').prlimit(os.getpid(), 7)",
    "watch files": "demand(libc.inotify_init1(0))",
    "make shared memory": "demand(libc.shmget(0, 4096, 0o1600))",
    "open a process as a descriptor": "os.pidfd_open(os.getpid())",
    "change its priority": "os.setpriority(os.PRIO_PROCESS, 0, 19)",
    "run a program": "__import__('subprocess').run(['/bin/sh', '-c', 'true'], check=True)",
}


@pytest.fixture(scope="module")
def open_folder(bench):
    folder = bench.area / "open"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def known_file(open_folder):
    (open_folder / "new").unlink(missing_ok=True)
    known = open_folder / "known"
    known.unlink(missing_ok=True)
    known.write_text("known")
    known.chmod(0o666)
    if os.geteuid() == 0:
        os.chown(known, 61_234, 61_234)
    return known


def bare(bench, without):
    """Return an ordinary user's plan on the lower tier, without the given steps."""
    return bench.worker_plan(Variant(), without=without)


def check_layer(bench, layer, attempts):
    """Make the attempts with one layer of the isolation, where all must fail, and without, where all must succeed."""
    # The limit of threads would count those of other tests of the same user.
    without = {"landlock", "seccomp", "limits"}
    stopped = bench.run("user", bare(bench, without - {layer}), attempts)
    unstopped = bench.run("user", bare(bench, without), attempts)
    assert (stopped.code, unstopped.code) == (0, 0), stopped.errors + unstopped.errors
    assert stopped.report.keys() == unstopped.report.keys() == attempts.keys()
    assert [attempt for attempt, error in stopped.report.items() if error is None] == []
    assert {attempt: error for attempt, error in unstopped.report.items() if error is not None} == {}


def test_landlock_alone_stops_attempts(bench, known_file):
    check_layer(bench, "landlock", LANDLOCK)


def test_filter_alone_stops_attempts(bench, known_file):
    check_layer(bench, "seccomp", SECCOMP)


def test_landlock_and_the_filter_each_stop_signals(bench, who):
    with bench.start(who, {"steps": []}, {}, wait=True) as victim:
        code = f"os.kill({victim.pid}, 0)"
        for kept in ("landlock", "seccomp"):
            plan = bare(bench, {"landlock", "seccomp"} - {kept})
            assert "PermissionError" in bench.attempt(who, plan, code)
        assert bench.attempt(who, bare(bench, ["landlock", "seccomp"]), code) is None
        victim.communicate()


def test_landlock_alone_stops_loopback_connections(bench):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        assert "Permission" in bench.attempt("user", bare(bench, ["seccomp"]), code)
        assert bench.attempt("user", bare(bench, ["landlock", "seccomp"]), code) is None


def test_namespaces_alone_hide_files_processes_and_network(bench, who):
    bared = ["landlock", "seccomp", "identity"]
    with bench.start(who, {"steps": []}, {}, wait=True) as victim, socket.create_server(("127.0.0.1", 0)) as server:
        codes = {
            "stat": "os.stat('/etc/passwd')",
            "proc": "os.stat('/proc/self')",
            "process": f"os.kill({victim.pid}, 0)",
            "network": f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)",
        }
        hidden = bench.run(who, bench.plan(bench.variant(who, "full"), without=bared), codes).report
        seen = bench.run(who, bench.worker_plan(Variant(), without=bared), codes).report
        victim.communicate()
    assert all(hidden.values()), hidden
    assert not any(seen.values()), seen


THREADS = """
import threading
stop = threading.Event()
threads = []
try:
    for _ in range(20):
        threads.append(threading.Thread(target=stop.wait))
        threads[-1].start()
finally:
    stop.set()
"""


def test_thread_limit_alone_stops_threads(bench, who, tier):
    limits = WorkerLimits(threads=8)
    variant = bench.variant(who, tier)
    assert "start new thread" in bench.attempt(who, bench.plan(variant, limits=limits), THREADS)
    assert bench.attempt(who, bench.plan(variant, limits=limits, without=["limits"]), THREADS) is None


def test_memory_limit_includes_shared_memory(bench, who, tier):
    variant = bench.variant(who, tier)
    limits = WorkerLimits(memory=256 << 20)
    # Neither allocation touches its pages.
    attempts = {"private": "bytes(1300 << 20)", "shared": "__import__('mmap').mmap(-1, 1300 << 20)"}
    stopped = bench.run(who, bench.plan(variant, limits=limits), attempts).report
    unstopped = bench.run(who, bench.plan(variant, without=["limits"]), attempts).report
    assert [name for name in attempts if stopped[name] is None] == []
    assert unstopped == dict.fromkeys(attempts)


def test_descriptor_limit_alone_stops_descriptors(bench, who, tier):
    code = "[os.pipe() for _ in range(40)]"
    variant = bench.variant(who, tier)
    assert "Too many open files" in bench.attempt(who, bench.plan(variant), code)
    assert bench.attempt(who, bench.plan(variant, without=["limits"]), code) is None


def test_inherited_descriptors_are_closed(bench, who, tier):
    with Path("/etc/passwd").open() as leaked:
        code = f"os.read({leaked.fileno()}, 10)"
        options = {"pass_fds": [leaked.fileno()]}
        variant = bench.variant(who, tier)
        assert "Bad file descriptor" in bench.attempt(who, bench.plan(variant), code, **options)
        assert bench.attempt(who, bench.plan(variant, without=["descriptors"]), code, **options) is None


RUNNING_THREAD = """
import threading
asked, answers = threading.Event(), []
def look():
    asked.wait()
    try:
        answers.append(open('/etc/passwd').read())
    except OSError as error:
        answers.append(error)
thread = threading.Thread(target=look, daemon=True)
thread.start()
"""
ASK_IT = "asked.set(); thread.join(); assert isinstance(answers[0], OSError) is False, answers"


def test_lock_down_refuses_a_running_thread(bench, who):
    outcome = bench.run(who, bare(bench, []), {}, before=RUNNING_THREAD)
    assert outcome.code == EXIT_CODE
    assert "another thread is running" in outcome.errors
    assert bench.attempt(who, bare(bench, ["single_thread"]), ASK_IT, before=RUNNING_THREAD) is None


def status(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def kernel_status(bench, who, without):
    with bench.start(who, bare(bench, without), {}, wait=True) as worker:
        worker.stdout.readline()
        seen = status(worker.pid)
        worker.communicate()
    return seen


@pytest.mark.parametrize(
    ("step", "line", "guarded"), [("seccomp", "Seccomp", "2"), ("no_new_privileges", "NoNewPrivs", "1")]
)
def test_kernel_status_confirms_each_step(bench, step, line, guarded):
    who = "root" if os.geteuid() == 0 else "user"
    assert kernel_status(bench, who, [])[line] == guarded
    # Without no_new_privileges an ordinary user cannot install the others; root can.
    removed = [step] if who == "root" else ["landlock", "seccomp", step]
    assert kernel_status(bench, who, removed)[line] != guarded


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has no capabilities to drop")
def test_root_loses_every_capability(bench):
    none = "0" * 16
    seen = kernel_status(bench, "root", [])
    assert [seen[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [none] * 5
    assert kernel_status(bench, "root", ["capabilities"])["CapEff"] != none
    assert kernel_status(bench, "root", ["bounding_set"])["CapBnd"] != none


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another identity")
def test_worker_of_root_gets_an_unused_user_id(bench):
    code = "assert os.getuid() >= 0x70000000 and os.getgid() == os.getuid() and not os.getgroups()"
    variant = bench.variant("root", "full")
    assert bench.attempt("root", bench.plan(variant), code) is None
    assert bench.attempt("root", bench.plan(variant, without=["identity"]), code) is not None


# A host that starts a spinning worker and is then killed.
HOST = """
import json, os, subprocess, sys
orders = json.loads(sys.stdin.readline())
for name, arguments in orders["plan"].get("zygote", orders["plan"])["steps"]:
    if name == "namespaces":
        arguments["host"] = os.getpid()
    if name == "parent":
        arguments["pid"] = os.getpid()
worker = subprocess.Popen(orders["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
worker.stdin.write(json.dumps(orders).encode() + b"\\n")
worker.stdin.flush()
print(worker.stdout.readline().decode().strip(), flush=True)
sys.stdin.read()
"""


def spinning_worker(bench, who, plan):
    """Kill the host of a spinning worker. Return a pipe that stays open while the worker runs, and the host's ID."""
    options = {} if who == "root" or os.geteuid() else {"user": 61_234, "group": 61_234, "extra_groups": []}
    orders = {
        "command": [str(bench.platform.python), "-I", "-S", "-B", str(bench.area / "harness_worker.py")],
        "lockdown": str(bench.area / "_lockdown.py"),
        "plan": plan,
        "before": "",
        "snippets": {"say": "print('spinning', flush=True)", "spin": "while True: pass"},
        "facts": {},
        "wait": False,
    }
    reading, writing = os.pipe()
    host = subprocess.Popen(
        [str(bench.platform.python), "-I", "-S", "-c", HOST],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=writing,
        cwd="/",
        start_new_session=True,
        **options,
    )
    os.close(writing)
    with host:
        host.stdin.write(json.dumps(orders).encode() + b"\n")
        host.stdin.flush()
        assert host.stdout.readline() == b"spinning\n"
        host.kill()
    return reading, host.pid


def ended(reading, seconds):
    """Return whether the other end is closed within this time."""
    ready, _, _ = select.select([reading], [], [], seconds)
    return bool(ready) and os.read(reading, 1) == b""


def test_spinning_worker_is_killed_with_its_host(bench, who, tier):
    reading, group = spinning_worker(bench, who, bench.plan(bench.variant(who, tier)))
    try:
        assert ended(reading, 5)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        os.close(reading)


def test_worker_survives_its_host_without_the_parent_step(bench, who):
    reading, group = spinning_worker(bench, who, bare(bench, ["parent"]))
    try:
        assert not ended(reading, 0.3)
    finally:
        os.killpg(group, signal.SIGKILL)
        assert ended(reading, 5)
        os.close(reading)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("landlock", ["landlock", {"files": 1 << 60, "network": 0, "scopes": 0, "rules": []}]),
        ("landlock", ["landlock", {"files": 4, "network": 0, "scopes": 0, "rules": [[4, "/none", []]]}]),
        ("seccomp", ["seccomp", {"code": "AAAAAAAAAAA=", "own_pid_at": []}]),
        ("parent", ["parent", {"pid": 1}]),
        ("limits", ["limits", {"memory": "much", "threads": 1, "files": 1}]),
        ("enchantment", ["enchantment", {}]),
    ],
)
def test_failing_step_ends_the_worker_before_any_code_runs(bench, who, name, step):
    plan = {"steps": [step, ["no_new_privileges", {}]]}
    if name in {"landlock", "seccomp"}:
        plan["steps"].reverse()
    outcome = bench.run(who, plan, {"it": "print('ran')"})
    assert outcome.code == EXIT_CODE
    assert name in outcome.errors
    assert outcome.report == {}
