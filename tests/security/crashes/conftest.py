"""Fixtures: hosts that tests can kill, as root and as an ordinary user, and functions that find their leftovers."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import define, field, frozen

ORDINARY_USER = 61_234
IS_ROOT = os.geteuid() == 0
# Root also runs the tests as an ordinary user.
WHO = ["root", "user"] if IS_ROOT else ["user"]
SECONDS = 30.0


def eventually(condition, seconds=SECONDS):
    """Wait for a condition on other processes. Return its last value."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.003)
    return found


@frozen
class Process:
    """A process, identified by its ID and its start time, because IDs are reused."""

    pid: int
    began: str
    parent: int = field(eq=False)
    state: str = field(eq=False)

    @property
    def is_alive(self):
        found = all_processes().get(self.pid)
        return found == self and found.state != "Z"

    @property
    def name(self):
        try:
            words = Path(f"/proc/{self.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return "gone"
        return b" ".join(words)[:200].decode(errors="replace")

    def signal(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return


def all_processes():
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        pid, fields = int(path.parent.name), text.rpartition(")")[2].split()
        found[pid] = Process(pid, fields[19], int(fields[1]), fields[0])
    return found


def descendants(root):
    """Return all descendants of a process including zombies, parents first."""
    processes = all_processes()
    children = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    found = list(children.get(root, ()))
    for process in found:
        found += children.get(process.pid, ())
    return found


def marked(marker):
    """Return the processes with the marker in their command line or environment."""
    found = []
    for process in all_processes().values():
        for file in ("cmdline", "environ"):
            try:
                content = Path(f"/proc/{process.pid}/{file}").read_bytes()
            except OSError:
                continue
            if os.fsencode(marker) in content:
                found.append(process)
                break
    return found


@define
class Hosts:
    """The process that forks the hosts of one user."""

    process: subprocess.Popen
    python: Path
    received: bytes = b""

    def send(self, order):
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def event(self, deadline):
        """Return the next event, or ``None`` after the deadline."""
        while b"\n" not in self.received:
            readable, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                return None
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            assert data, "the script that forks hosts has exited"
            self.received += data
        line, _, self.received = self.received.partition(b"\n")
        event = json.loads(line)
        assert event["event"] != "broken", event["trace"]
        return event

    def expect(self, kind, seconds=SECONDS):
        """Return the next event of this kind, and drop others before it."""
        deadline = time.monotonic() + seconds
        while (event := self.event(deadline)) is not None:
            if event["event"] == kind:
                return event
        # The host writes its stack traces to standard error.
        for process in descendants(self.process.pid)[:1]:
            process.signal(signal.SIGUSR1)
        raise AssertionError(f"no `{kind}` within {seconds:g} s")

    def close(self):
        with self.process:
            self.process.stdin.close()
            try:
                self.process.wait(SECONDS)
            finally:
                self.process.kill()


@define
class Crashing:
    """Hosts that run one after the other with the same home."""

    hosts: Hosts
    home: Path
    temporary: Path
    skills: Path
    order: dict
    commands: int = -1
    pid: int = 0
    pids: list = field(factory=list)
    count: int = 0
    answers: dict = field(factory=dict)

    def start(self, work, **options):
        """Fork a host without waiting for it."""
        self.hosts.send({**self.order, "work": work, **options})
        self.pid = self.hosts.expect("forked")["pid"]
        self.pids.append(self.pid)

    def open(self):
        """Start a host that executes commands, and wait until it is open."""
        self.close_commands()
        path = self.temporary.with_name("commands")
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        path.chmod(0o666)
        self.commands = os.open(path, os.O_RDWR)
        self.start("obey", commands=str(path))
        self.hosts.expect("open")

    def command(self, **command):
        os.write(self.commands, json.dumps(command).encode() + b"\n")

    def close_commands(self):
        if self.commands >= 0:
            os.close(self.commands)
            self.commands = -1

    def skill(self, name, code):
        folder = self.skills / name
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: A skill of a test.\n---\n")
        imports = "from sideband.skill import OpError, crash, http, progress, sql, tool\n"
        (folder / "tools.py").write_text(imports + code)
        for path in (self.skills, folder, *folder.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
        self.order["skills"].append(str(folder))

    def ask(self, tool, *, timeout=20.0, **arguments):
        """Start a call. Return its number."""
        self.count += 1
        self.command(id=self.count, tool=tool, arguments=arguments, timeout=timeout)
        return self.count

    def answer(self, number, seconds=SECONDS):
        """Return the answer to a call, with its ``output`` or the ``code`` of its error."""
        deadline = time.monotonic() + seconds
        while number not in self.answers:
            event = self.hosts.event(deadline)
            assert event is not None, f"no answer to call {number} within {seconds:g} s"
            self.take(event)
        return self.answers.pop(number)

    def has_answer(self, number):
        """Return whether a call has been answered."""
        event = self.hosts.event(time.monotonic())
        if event is not None:
            self.take(event)
        return number in self.answers

    def take(self, event):
        if event["event"] == "answer":
            self.answers[event["id"]] = event

    def until_waiting(self, count):
        """Wait until this number of ops is pending."""
        deadline = time.monotonic() + SECONDS
        while True:
            event = self.hosts.event(deadline)
            assert event is not None, f"{count} ops are not pending within {SECONDS:g} s"
            self.take(event)
            if event["event"] == "waiting" and event["count"] == count:
                return

    def call(self, tool, **options):
        """Make a call that must succeed. Return its output."""
        answer = self.answer(self.ask(tool, **options))
        assert "output" in answer, answer
        return answer["output"]

    def kill(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def ended(self):
        """Wait for the host to exit. Return its exit code."""
        return self.hosts.expect("ended")["status"]

    def close(self):
        self.command(close=True)
        assert self.ended() == 0

    @property
    def below(self):
        """The descendants of the host."""
        return descendants(self.pid)

    def worker(self, name):
        """Make the first call of a skill. Return the process that was started for it."""
        before = self.below
        assert self.call(f"{name}.ping") == "pong"
        (worker,) = [process for process in self.below if process not in before]
        return worker

    def call_again(self, tool):
        """Make a call right after a crash, and repeat it once if it used a worker that was exiting."""
        answer = self.answer(self.ask(tool))
        if "output" not in answer:
            assert answer["code"] in {"worker.exited", "worker.start"}, str(answer)
            answer = self.answer(self.ask(tool))
        assert "output" in answer, str(answer)
        return answer["output"]

    def eventually(self, condition):
        return eventually(condition)

    def survivors(self):
        """Return the processes of all previous hosts with this home that still run."""
        orphans = [process for process in descendants(self.hosts.process.pid) if process.state != "Z"]
        return orphans + [process for process in marked(self.home.parent.name) if process not in orphans]

    def check_no_survivors(self, seconds=10.0):
        eventually(lambda: not self.survivors(), seconds)
        left = self.survivors()
        assert not left, [(process, process.name) for process in left]

    def names(self):
        """Return the descendants of the host, for messages."""
        return [(process.pid, process.parent, process.state, process.name) for process in self.below]

    def descriptors(self):
        """Return the open files of the host, apart from those of its ledger: it is indexed in the background."""
        found = Counter()
        for path in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                target = path.readlink()
                if self.home / "ledger" not in (target, *target.parents):
                    found[re.sub(r"[0-9a-f]*\d[0-9a-f]*", "N", str(target))] += 1
        return found

    def groups(self):
        """Return the control groups of all hosts with this home."""
        folders = [folder for folder, _, _ in os.walk("/sys/fs/cgroup")]
        return [folder for folder in folders for pid in self.pids if f"/sideband-{pid}-" in folder]

    def memory(self):
        """Return the resident memory of the host in bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def is_open(path):
    """Return whether every user can access and read a path."""
    real = path.resolve()
    return all(each.stat().st_mode & 0o001 for each in real.parents) and bool(real.stat().st_mode & 0o004)


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture(scope="session")
def area():
    """Return a folder that every user can access, unlike pytest's ``tmp_path``."""
    folder = Path(tempfile.mkdtemp(prefix="sideband-crash-tests-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def open_python(area):
    """Return this interpreter, copied to a folder where every user can run it if necessary."""
    python, library = Path(sys.executable).resolve(), Path(os.__file__).parent
    if is_open(python) and is_open(library):
        return python
    prefix = area / "python"
    unneeded = shutil.ignore_patterns("site-packages", "test", "tests", "idlelib", "tkinter", "config-*", "ensurepip")
    shutil.copytree(library, prefix / "lib" / library.name, ignore=unneeded, copy_function=link_or_copy)
    (prefix / "bin").mkdir()
    real = prefix / "bin" / python.name
    shutil.copy2(python, real)
    for shared in library.parent.glob("libpython*.so*"):
        shutil.copy2(shared, prefix / "lib" / shared.name)
    # Without this the copy would load the shared library of the original.
    start = prefix / "bin" / "start"
    start.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={prefix}/lib exec {real} "$@"\n')
    subprocess.run(["chmod", "-R", "a+rX", str(prefix)], check=True)
    start.chmod(0o755)
    return start


@pytest.fixture(scope="session")
def open_packages(area):
    """Return the folders of ``sys.path``, copied if not every user can read them."""
    library = Path(os.__file__).parent
    folders = []
    for number, name in enumerate(sys.path):
        folder = Path(name)
        if not folder.is_dir() or folder == library or (library in folder.parents and folder.name != "site-packages"):
            continue
        if not is_open(folder):
            copy = area / "packages" / str(number)
            shutil.copytree(folder, copy, copy_function=link_or_copy, ignore=shutil.ignore_patterns("__pycache__"))
            subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
            folder = copy
        folders.append(str(folder))
    return folders


@pytest.fixture(scope="session")
def start_hosts(area, open_python, open_packages):
    """Return a function that starts the process that forks hosts, once for each user."""
    started = {}
    script = area / "crash_host.py"
    shutil.copy(Path(__file__).with_name("crash_host.py"), script)
    script.chmod(0o644)

    def start(who):
        if who not in started:
            other = who == "user" and IS_ROOT
            identity = {"user": ORDINARY_USER, "group": ORDINARY_USER, "extra_groups": []} if other else {}
            python = open_python if other else Path(sys.executable)
            packages = open_packages if other else sys.path
            process = subprocess.Popen(
                [str(python), "-B", str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(packages)},
                cwd="/",
                **identity,
            )
            started[who] = Hosts(process, python)
            started[who].expect("ready", 60)
        return started[who]

    yield start
    for hosts in started.values():
        hosts.close()


@pytest.fixture(params=WHO)
def who(request):
    return request.param


@pytest.fixture(params=["full", "no-namespaces"])
def tier(request):
    return request.param


@pytest.fixture(params=["asyncio", "trio"])
def backend(request):
    return request.param


@pytest.fixture
def make_host(area, start_hosts):
    """Return ``make_host(who, tier, backend)``, which creates a home whose hosts can be started and killed."""
    made = []

    def make(who="root" if IS_ROOT else "user", tier="full", backend="asyncio"):
        hosts = start_hosts(who)
        folder = Path(tempfile.mkdtemp(prefix="case-", dir=area))
        parts = SimpleNamespace(home=folder / "home", temporary=folder / "temporary", skills=folder / "skills")
        parts.temporary.mkdir()
        parts.skills.mkdir()
        if who == "user" and IS_ROOT:
            for path in (folder, parts.temporary):
                os.chown(path, ORDINARY_USER, ORDINARY_USER)
        folder.chmod(0o755)
        order = {
            "home": str(parts.home),
            "temporary": str(parts.temporary),
            "skills": [],
            "backend": backend,
            "tier": tier,
            "python": str(hosts.python),
        }
        made.append(Crashing(hosts, parts.home, parts.temporary, parts.skills, order))
        return made[-1]

    yield make
    for crashing in made:
        crashing.close_commands()
        for process in crashing.survivors():
            process.signal(signal.SIGKILL)
