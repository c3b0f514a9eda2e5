"""Commands that the sandbox runs, on both tiers: what they get, what they leave, and how they end."""

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import anyio
import pytest
from attrs import evolve
from sideband.workers import Isolation, Place, ProgramLimits, ProgramRequest, WorkerStartFailed

PYTHON = os.path.realpath(sys.executable)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def read_all(descriptor):
    read = b""
    while True:
        await anyio.wait_readable(descriptor)
        part = os.read(descriptor, 65536)
        if not part:
            return read
        read += part


async def finish(command, data=b""):
    """Feed it, and read it to its end: ``(code, output, errors)``."""
    found = {}

    async def collect(name, descriptor):
        found[name] = await read_all(descriptor)

    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as reading:
                reading.start_soon(collect, "out", command.stdout)
                reading.start_soon(collect, "err", command.stderr)
                if data:
                    await anyio.wait_writable(command.stdin)
                    os.write(command.stdin, data)
                command.end_input()
            return await command.wait(), found["out"].decode(), found["err"].decode()
    finally:
        await command.close()


@pytest.fixture
async def run(commands):
    """Runs a request, or a program with arguments, to its end."""

    async def run(*arguments, data=b"", **options):
        request = ProgramRequest(arguments=arguments, **{"folder": Path("/tmp"), **options})
        return await finish(await commands.launch(request), data)

    return run


@pytest.fixture
def run_python(run, python_places):
    """Runs a piece of Python."""

    async def run_python(code, *arguments, places=(), **options):
        program = (PYTHON, "-I", "-S", "-B", "-c", code, *arguments)
        return await run(*program, places=(*python_places, *places), **options)

    return run_python


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "known").write_text("known\n")
    return folder


@BACKENDS
async def test_a_command_runs_on_the_tier_that_was_proved_and_tells_how_it_ended(tier, commands, run):
    assert await run("/bin/sh", "-c", "cat; echo bad >&2; exit 3", data=b"good\n") == (3, "good\n", "bad\n")
    command = await commands.launch(ProgramRequest(arguments=("/bin/true",), folder=Path("/tmp")))
    assert command.isolation.label == tier
    assert (await finish(command))[0] == 0


async def test_a_throw_away_command_has_tried_to_break_out(tier_sandbox):
    proofs = await tier_sandbox.prove_programs()
    assert "could not read a file outside its places" in proofs
    assert "could not leave a process behind" in proofs
    assert len(proofs) > 30


async def test_the_signal_that_ends_it_is_told(run):
    assert (await run("/bin/sh", "-c", "kill -TERM $$"))[0] == -signal.SIGTERM


async def test_it_has_the_environment_of_its_request_and_folders_of_its_own(run, monkeypatch):
    monkeypatch.setenv("FROM_THE_HOST", "leaked")
    _, output, _ = await run("/usr/bin/env", environment={"ONE": "1"})
    found = dict(line.split("=", 1) for line in output.splitlines())
    assert set(found) == {"ONE", "HOME", "TMPDIR"}
    assert found["HOME"] == found["TMPDIR"]


async def test_it_inherits_no_descriptor(run_python):
    with socket.socket() as leaked, socket.socket() as other:
        os.set_inheritable(leaked.fileno(), True)
        os.set_inheritable(other.fileno(), True)
        code = "import os\nfor n in range(256):\n try: os.fstat(n); print(n)\n except OSError: pass"
        assert (await run_python(code))[1].split() == ["0", "1", "2"]


async def test_signals_that_the_host_ignores_are_not_ignored_by_it(run_python):
    code = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_DFL, signal.pthread_sigmask(0, []))"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert (await run_python(code))[1] == "True set()\n"
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_what_it_writes_in_a_place_belongs_to_the_hosts_user(run, place):
    code, _, errors = await run(
        "/bin/sh", "-c", "cat known >new && mkdir f", folder=place, places=(Place(place, True),)
    )
    assert (code, errors) == (0, "")
    assert (place / "new").read_text() == "known\n"
    assert {(path.stat().st_uid, path.stat().st_gid) for path in place.iterdir()} == {(os.geteuid(), os.getegid())}


async def test_a_place_that_is_not_writable_can_only_be_read(run, place):
    code, output, _ = await run("/bin/sh", "-c", "cat known; : >new", folder=place, places=(Place(place),))
    assert (code != 0, output) == (True, "known\n")
    assert [path.name for path in place.iterdir()] == ["known"]


async def test_a_writable_place_inside_of_a_readable_one_is_writable(run, place):
    inner = place / "inner"
    inner.mkdir()
    places = (Place(place), Place(inner, True))
    code, output, errors = await run("/bin/sh", "-c", "cat known; : >inner/new", folder=place, places=places)
    assert (code, output, errors) == (0, "known\n", "")
    assert (await run("/bin/sh", "-c", ": >new", folder=place, places=places))[0] != 0


async def test_a_single_file_can_be_a_place(run, place):
    neighbour = place / "neighbour"
    neighbour.write_text("private\n")
    places = (Place(place / "known"),)
    _, output, _ = await run("/bin/sh", "-c", f"cat {place}/known; cat {neighbour}", places=places)
    assert output == "known\n"


async def test_a_program_outside_of_the_systems_folders_can_be_run_and_nothing_beside_it(run, place):
    program = place / "own"
    shutil.copy("/bin/cat", program)
    assert (await run(str(program), data=b"x"))[:2] == (0, "x")
    assert (await run(str(program), str(place / "known")))[0] != 0


async def test_a_place_whose_path_has_become_a_link_is_refused(commands, place, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (place / "inner").symlink_to(secret)
    request = ProgramRequest(("/bin/true",), Path("/tmp"), places=(Place(place / "inner", True),))
    with pytest.raises(WorkerStartFailed, match="Too many levels of symbolic links"):
        await commands.launch(request)


@pytest.mark.parametrize("folder", ["/none", "/etc/passwd"])
async def test_a_folder_that_can_not_be_entered_is_an_error(commands, folder):
    with pytest.raises(WorkerStartFailed, match="can't be run in"):
        await commands.launch(ProgramRequest(("/bin/true",), Path(folder)))


@pytest.mark.parametrize("kind", ["missing", "no program"])
async def test_what_can_not_be_run_is_an_error(commands, place, kind):
    program = place / ("known" if kind == "no program" else "none")
    with pytest.raises(WorkerStartFailed):
        await commands.launch(ProgramRequest((str(program),), Path("/tmp"), places=(Place(place),)))


CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"


async def test_the_network_is_there_only_if_it_was_asked_for(run_python):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert (await run_python(CONNECT, port))[0] != 0
        code, _, errors = await run_python(CONNECT, port, network=True)
        assert (code, errors) == (0, "")


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def marked(marker):
    """The processes of this machine that have the marker in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if marker.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found


LEAVES = {
    "a child": "import os, time\nif os.fork() == 0: time.sleep(1000)",
    "a session of its own": "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(1000)",
    "a daemon": "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(1000)",
    "a stopped one": "import os, signal\nif os.fork() == 0: os.setsid(); os.kill(os.getpid(), signal.SIGSTOP)",
    "a deaf one": """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for number in (1, 2, 3, 13, 15): signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)
""",
    "many": "import os, time\nfor _ in range(30):\n if os.fork() == 0: os.setsid(); time.sleep(1000)",
}


@pytest.mark.parametrize("what", LEAVES)
async def test_nothing_is_left_when_it_has_ended(run_python, tmp_path, what):
    marker = f"MARKER={tmp_path.name}-{os.getpid()}-{what.replace(' ', '-')}"
    # It says so once all of them are there; the marker shows a process of the interpreter only.
    code = LEAVES[what] + "\nelse: print('left', flush=True)"
    environment = dict([marker.split("=")])
    ended, output, errors = await run_python(code, environment=environment)
    assert (ended, output.strip(), errors) == (0, "left", "")
    assert marked(marker) == []


BOMB = """
import os
print('started', flush=True)
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError:
        pass
"""


async def test_a_fork_bomb_is_limited_and_ended_with_all_of_it(commands, python_places, tmp_path, until):
    marker = f"BOMB={tmp_path.name}-{os.getpid()}"
    request = ProgramRequest(
        arguments=(PYTHON, "-I", "-S", "-B", "-c", BOMB),
        folder=Path("/tmp"),
        environment=dict([marker.split("=")]),
        places=python_places,
        limits=ProgramLimits(processes=40),
    )
    command = await commands.launch(request)
    try:
        with anyio.fail_after(30):
            await anyio.wait_readable(command.stdout)
            await until(lambda: len(marked(marker)) >= 40)
            assert len(marked(marker)) <= 42
            command.kill()
            assert await command.wait() == -signal.SIGKILL
        assert marked(marker) == []
    finally:
        await command.close()


async def test_the_kernel_says_that_it_has_no_rights_and_can_get_none(commands, tier):
    command = await commands.launch(ProgramRequest(("/bin/cat",), Path("/tmp")))
    try:
        lines = (await anyio.Path(f"/proc/{command.pid}/status").read_text()).splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    finally:
        await command.close()
    none = "0" * 16
    assert [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [none] * 4
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    if os.geteuid() == 0:
        assert status["CapBnd"] == none
    if os.geteuid() == 0 and tier == "full":
        assert int(status["Uid"].split()[0]) >= 0x70000000
        assert not status["Groups"].strip()


@BACKENDS
async def test_a_killed_command_is_gone_with_all_that_it_has_started(commands, python_places, tmp_path):
    marker = f"KILLED={tmp_path.name}-{os.getpid()}"
    code = LEAVES["many"] + "\nimport signal; print('x', flush=True); signal.pause()"
    request = ProgramRequest(
        arguments=(PYTHON, "-I", "-S", "-B", "-c", code),
        folder=Path("/tmp"),
        environment=dict([marker.split("=")]),
        places=python_places,
    )
    command = await commands.launch(request)
    with anyio.fail_after(30):
        await anyio.wait_readable(command.stdout)
        assert len(marked(marker)) > 1
        assert command.usage().memory > 0
        command.kill()
        command.kill()
        assert await command.wait() == -signal.SIGKILL
    assert marked(marker) == []
    assert command.usage() is None
    await command.close()
    await command.close()


HOST = """
import os, sys, json
from pathlib import Path
import anyio
from sideband.workers import ProgramRequest, Place
from sideband_sandbox import SystemSandbox
from sideband_sandbox._machine._inspection import inspect_machine
from attrs import evolve

async def main():
    orders = json.loads(sys.stdin.readline())
    machine, _ = inspect_machine()
    if orders["tier"] != "full":
        machine = evolve(machine, architecture=evolve(machine.architecture, pivot_root=10_000))
    sandbox = SystemSandbox(machine)
    places = tuple(Place(Path(path)) for path in orders["places"])
    request = ProgramRequest(tuple(orders["arguments"]), Path("/tmp"), orders["environment"], places)
    command = await sandbox.launch_program(request)
    await anyio.wait_readable(command.stdout)
    print(command.isolation.label, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@BACKENDS
async def test_a_command_ends_with_its_host(tier, python_places, tmp_path, until):
    marker = f"ORPHAN={tmp_path.name}-{os.getpid()}"
    code = LEAVES["a daemon"] + "\nimport signal; print('x', flush=True); signal.pause()"
    orders = {
        "tier": tier,
        "arguments": [PYTHON, "-I", "-S", "-B", "-c", code],
        "environment": dict([marker.split("=")]),
        "places": [str(place.path) for place in python_places],
    }
    async with await anyio.open_process([sys.executable, "-c", HOST], stderr=None) as host:
        await host.stdin.send(json.dumps(orders).encode() + b"\n")
        with anyio.fail_after(30):
            assert (await host.stdout.receive()).decode().strip() == tier
        assert marked(marker)
        host.kill()
        await until(lambda: not marked(marker))


GREEDY = """
import os
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(100 << 20)
        kept[::4096] = b'x' * (len(kept) // 4096)
        import signal; signal.pause()
raise SystemExit(os.wait()[1])
"""


@pytest.mark.parametrize("counted_by", ["the kernel, where it does", "its first process"])
async def test_memory_of_all_its_processes_together_is_limited(commands, run_python, counted_by):
    if counted_by == "its first process":
        commands._ground = evolve(commands._ground, cgroups=None)
    ended, _, errors = await run_python(GREEDY, limits=ProgramLimits(memory=256 << 20))
    assert (abs(ended), errors) == (signal.SIGKILL, "")


async def test_memory_of_one_process_is_limited(run_python):
    _, _, errors = await run_python("bytearray(400 << 20)", limits=ProgramLimits(memory=256 << 20))
    assert "MemoryError" in errors
    assert (await run_python("bytearray(100 << 20)", limits=ProgramLimits(memory=256 << 20)))[0] == 0


async def test_the_size_of_a_file_is_limited(run, place):
    limits = ProgramLimits(file_size=1 << 20)
    script = "head -c 3000000 /dev/zero >large"
    ended, _, _ = await run("/bin/sh", "-c", script, folder=place, places=(Place(place, True),), limits=limits)
    assert ended != 0
    assert (place / "large").stat().st_size == 1 << 20


async def test_processor_time_is_limited(run_python):
    assert (await run_python("while True: pass", limits=ProgramLimits(cpu_seconds=1)))[0] in (
        -signal.SIGXCPU,
        -signal.SIGKILL,
    )


async def test_descriptors_are_limited(run_python):
    code = "import os; [os.pipe() for _ in range(40)]"
    assert "Too many open files" in (await run_python(code, limits=ProgramLimits(files=64)))[2]


async def test_what_it_keeps_for_itself_is_gone_with_it(run, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert (await run("/bin/sh", "-c", "echo x >$TMPDIR/x && cat $HOME/x"))[:2] == (0, "x\n")
    assert list(folder.iterdir()) == []


@BACKENDS
async def test_cancelling_the_start_leaves_nothing(commands, tmp_path, monkeypatch, until):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    marker = f"CANCELLED={tmp_path.name}-{os.getpid()}"
    request = ProgramRequest(("/bin/sleep", "1000"), Path("/tmp"), dict([marker.split("=")]))
    descriptors = open_descriptors()
    for delay in (0, 0.01, 0.03):
        with anyio.move_on_after(delay) as scope:
            command = await commands.launch(request)
            await command.close()
        assert scope.cancelled_caught or not delay
    await until(lambda: not marked(marker))
    assert list(folder.iterdir()) == []
    assert open_descriptors() == descriptors


async def test_a_vector_longer_than_one_argument_may_be_arrives_whole(run):
    words = [f"{number:060}" for number in range(10_000)]
    assert (await run("/bin/echo", *words))[1].split() == words


async def test_commands_run_at_the_same_time(commands):
    codes = []

    async def one(number):
        request = ProgramRequest(("/bin/sh", "-c", f"exit {number}"), Path("/tmp"))
        codes.append((await finish(await commands.launch(request)))[0])

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(one, number)
    assert sorted(codes) == [0, 1, 2, 3, 4]


async def test_a_command_without_a_tier_runs_only_where_workers_have_none_either(machine):
    from sideband_sandbox import SystemSandbox

    broken = SystemSandbox(evolve(machine, landlock=evolve(machine.landlock, files=1 << 60)))
    command = await broken.launch_program(ProgramRequest(("/bin/true",), Path("/tmp")))
    assert command.isolation is Isolation.NONE
    assert (await finish(command))[0] == 0
    assert await broken.prove_programs() == ()
    await broken.close()
