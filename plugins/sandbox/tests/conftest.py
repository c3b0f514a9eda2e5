import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest
from attrs import evolve, frozen
from sideband.workers import LaunchRequest, Place, ProgramRequest, WorkerLimits, runtime_files
from sideband_sandbox import SystemSandbox
from sideband_sandbox._inside import LOCKDOWN
from sideband_sandbox._machine._inspection import inspect_machine
from sideband_sandbox._machine._interpreter import inspect_interpreter
from sideband_sandbox._machine._processes import fresh_uid
from sideband_sandbox._programs._launcher import ProgramLauncher
from sideband_sandbox._programs._probe import interpreter_places
from sideband_sandbox._workers._plan import (
    Variant,
    WorkerPlatform,
    open_to_everyone,
    worker_orders,
    worker_plan,
    zygote_plan,
)

ORDINARY_USER = 61_234
IS_ROOT = os.geteuid() == 0
# Root also runs the tests as an ordinary user. In CI, make test runs as root.
WHO = ["root", "user"] if IS_ROOT else ["user"]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def area():
    """Return a folder that every user can read, unlike pytest's ``tmp_path``."""
    folder = Path(tempfile.mkdtemp(prefix="sideband-sandbox-tests-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture(scope="session")
def open_python(area):
    """Return this interpreter, copied to a folder where every user can run it if necessary."""
    python = Path(sys.executable).resolve()
    library = Path(os.__file__).parent
    if open_to_everyone([python.parent], parents=True) and open_to_everyone([library], parents=True):
        return python
    prefix = area / "python"
    copied = prefix / "lib" / library.name
    unneeded = shutil.ignore_patterns("site-packages", "test", "tests", "idlelib", "tkinter", "config-*", "ensurepip")
    shutil.copytree(library, copied, ignore=unneeded, copy_function=link_or_copy)
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
def machine():
    found, reason = inspect_machine()
    assert found is not None, reason
    return found


@frozen
class Outcome:
    report: dict
    code: int
    errors: str


@frozen
class Bench:
    """Starts harness workers."""

    platform: WorkerPlatform
    area: Path
    snapshot: Path

    def variant(self, who, tier):
        """Return the strongest variant for this user on this tier."""
        if tier == "full":
            return Variant(namespaces=True, own_user=who == "root", user_namespace=who == "user")
        return Variant(own_user=who == "root", user_namespace=who == "user")

    def plan(self, variant, *, without=(), limits=None):
        """Return the plan of a zygote and its worker."""
        zygote = zygote_plan(self.platform, variant, self.snapshot)
        steps = [step for step in zygote["steps"] if step[0] not in without]
        return {"zygote": {"steps": steps}, "worker": self.worker_plan(variant, without=without, limits=limits)}

    def worker_plan(self, variant, *, without=(), limits=None):
        """Return the plan of a worker without a zygote."""
        request = LaunchRequest(snapshot=self.snapshot, sdk=self.snapshot, limits=limits or WorkerLimits())
        orders = {**worker_orders(variant, request, fresh_uid()), "parent": {"pid": os.getpid()}}
        steps = worker_plan(self.platform, variant)["steps"]
        kept = [[name, {**arguments, **orders.get(name, {})}] for name, arguments in steps if name not in without]
        return {"steps": kept}

    def start(self, who, plan, snippets, *, before="", wait=False, **options):
        identity = {"user": ORDINARY_USER, "group": ORDINARY_USER, "extra_groups": []}
        worker = subprocess.Popen(
            [str(self.platform.python), "-I", "-S", "-B", str(self.area / "harness_worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"MALLOC_ARENA_MAX": "2"},
            cwd="/",
            **(identity if who == "user" and IS_ROOT else {}),
            **options,
        )
        orders = {
            "lockdown": str(self.area / "_lockdown.py"),
            "plan": plan,
            "before": before,
            "snippets": snippets,
            "facts": {"host": os.getpid(), "snapshot": str(self.snapshot), "area": str(self.area)},
            "wait": wait,
        }
        worker.stdin.write(json.dumps(orders).encode() + b"\n")
        worker.stdin.flush()
        return worker

    def run(self, who, plan, snippets, **options):
        with self.start(who, plan, snippets, **options) as worker:
            output, errors = worker.communicate(timeout=60)
        return Outcome(json.loads(output) if output else {}, worker.returncode, errors.decode())

    def attempt(self, who, plan, code, **options):
        """Run one snippet. Return the error that stopped it, or ``None`` if it succeeded."""
        outcome = self.run(who, plan, {"it": code}, **options)
        assert outcome.code == 0, outcome.errors
        return outcome.report["it"]


@pytest.fixture(scope="session")
def bench(machine, open_python, area):
    shutil.copy(Path(__file__).with_name("harness_worker.py"), area)
    shutil.copy(LOCKDOWN, area)
    snapshot = area / "snapshot"
    snapshot.mkdir()
    (snapshot / "skill.py").write_text("answer = 42\n")
    (snapshot / "own.txt").write_text("mine\n")
    (snapshot / "way_out").symlink_to("/etc/passwd")
    (area / "secret.txt").write_text("a neighbor's\n")
    if IS_ROOT:
        os.chown(snapshot / "own.txt", ORDINARY_USER, ORDINARY_USER)
    for path in (snapshot, *snapshot.glob("*.*"), area / "secret.txt"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    interpreter = anyio.run(partial(inspect_interpreter, open_python))
    return Bench(WorkerPlatform(machine, open_python, interpreter), area, snapshot)


SKILL = """
import os

async def who():
    return {"uid": os.getuid(), "files": sorted(os.listdir(os.path.dirname(__file__)))}

async def steal(path):
    with open(path) as file:
        return file.read()

async def spin():
    while True:
        pass

async def leave():
    os._exit(7)

async def fault():
    import ctypes
    ctypes.string_at(0)

async def where():
    import sys
    flags = [sys.flags.isolated, sys.flags.no_site, sys.flags.dont_write_bytecode]
    known = {"argv": sys.argv, "flags": flags, "name": os.uname().nodename, "parent": os.getppid()}
    return {**known, "environment": dict(os.environ)}

async def zone():
    return list(__import__("time").tzname)

async def neighbor(path):
    return os.listdir(path)
"""


@pytest.fixture
def make_request(bench, area, tmp_path):
    """Return a function that creates a skill and its SDK, in the layout of the host."""
    sdk = area / f"sdk-{tmp_path.name}"
    for name, source in runtime_files().items():
        (sdk / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, sdk / name)

    def make(name):
        snapshot = area / f"{name}-{tmp_path.name}"
        snapshot.mkdir()
        (snapshot / "skill.py").write_text(SKILL)
        for path in (snapshot, *snapshot.iterdir(), sdk, *sdk.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return LaunchRequest(snapshot=snapshot, sdk=sdk)

    return make


@pytest.fixture
def request_for_worker(make_request):
    return make_request("skill")


@pytest.fixture
async def sandbox():
    made = SystemSandbox()
    yield made
    await made.close()


@pytest.fixture(scope="session")
def verified_sandbox(area):
    """Return a sandbox that is verified once for all tests, because verification is slow. Only for asyncio."""
    made = SystemSandbox()
    anyio.run(made.probe, [area])
    yield made
    anyio.run(made.close)


@pytest.fixture
async def tier_sandbox(machine, tier):
    """Return a sandbox whose strongest tier is this one."""
    # Without a working pivot_root the tier full is not available.
    lower = evolve(machine, architecture=evolve(machine.architecture, pivot_root=10_000))
    made = SystemSandbox(machine if tier == "full" else lower)
    yield made
    await made.close()


@pytest.fixture(scope="session")
def proved_launchers(machine):
    """Return a verified program launcher for each tier; verification is slow."""

    async def prove(sandbox):
        try:
            await sandbox.prove_programs()
            return sandbox._programs
        finally:
            await sandbox.close()

    lower = evolve(machine, architecture=evolve(machine.architecture, pivot_root=10_000))
    both = {"full": machine, "no-namespaces": lower}
    return {tier: anyio.run(prove, SystemSandbox(of_tier)) for tier, of_tier in both.items()}


@pytest.fixture
def launcher(proved_launchers, tier):
    """Return a launcher of programs on this tier."""
    proved = proved_launchers[tier]
    made = ProgramLauncher(proved._platform, proved._isolation)
    made._variant = proved._variant
    return made


@pytest.fixture(scope="session")
def python_places():
    """Return the places that this interpreter needs."""
    interpreter = anyio.run(partial(inspect_interpreter, Path(sys.executable)))
    return tuple(Place(path) for path in interpreter_places(interpreter))


async def read_all(descriptor):
    read = b""
    while True:
        await anyio.wait_readable(descriptor)
        part = os.read(descriptor, 65536)
        if not part:
            return read
        read += part


@pytest.fixture(scope="session")
def finish():
    """Return a function that writes the input of a program, and returns its exit code, output and errors."""

    async def finish(program, data=b""):
        found = {}

        async def collect(name, descriptor):
            found[name] = await read_all(descriptor)

        try:
            with anyio.fail_after(30):
                async with anyio.create_task_group() as reading:
                    reading.start_soon(collect, "out", program.stdout)
                    reading.start_soon(collect, "err", program.stderr)
                    if data:
                        await anyio.wait_writable(program.stdin)
                        os.write(program.stdin, data)
                    program.end_input()
                return await program.wait(), found["out"].decode(), found["err"].decode()
        finally:
            await program.close()

    return finish


@pytest.fixture
async def run(launcher, finish):
    """Return a function that runs a program until it exits."""

    async def run(*arguments, data=b"", **options):
        request = ProgramRequest(arguments=arguments, **{"folder": Path("/tmp"), **options})
        return await finish(await launcher.launch(request), data)

    return run


@pytest.fixture
def run_python(run, python_places):
    """Return a function that runs Python code until it exits."""

    python = os.path.realpath(sys.executable)

    async def run_python(code, *arguments, places=(), **options):
        program = (python, "-I", "-S", "-B", "-c", code, *arguments)
        return await run(*program, places=(*python_places, *places), **options)

    return run_python


@pytest.fixture
def until():
    """Return a function that waits for a condition."""

    async def wait(condition):
        with anyio.fail_after(10):
            while not condition():  # noqa: ASYNC110  there is no event for the exit of another process's child
                await anyio.sleep(0.01)

    return wait


@pytest.fixture(params=WHO)
def who(request):
    return request.param


@pytest.fixture(params=["full", "no-namespaces"])
def tier(request):
    return request.param
