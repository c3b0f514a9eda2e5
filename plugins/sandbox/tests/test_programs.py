"""Programs run by the sandbox on both tiers: their environment, their limits, and how they end."""

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


BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "known").write_text("known\n")
    return folder


async def test_program_runs_on_the_verified_tier_and_returns_its_exit_code(tier, launcher, run, finish):
    assert await run("/bin/sh", "-c", "cat; echo bad >&2; exit 3", data=b"good\n") == (3, "good\n", "bad\n")
    program = await launcher.launch(ProgramRequest(arguments=("/bin/true",), folder=Path("/tmp")))
    assert program.isolation.label == tier
    assert (await finish(program))[0] == 0


async def test_probe_program_fails_to_break_out(tier_sandbox):
    proofs = await tier_sandbox.prove_programs()
    assert "could not read a file outside its places" in proofs
    assert "could not leave a process behind" in proofs
    assert len(proofs) > 30


async def test_signal_is_returned_as_negative_exit_code(run):
    assert (await run("/bin/sh", "-c", "kill -TERM $$"))[0] == -signal.SIGTERM


async def test_terminated_program_and_its_group_get_a_signal(launcher, finish):
    script = "trap 'wait; exit 3' TERM; sh -c 'trap \"echo bye; exit\" TERM; echo up; sleep 60 & wait' & wait"
    program = await launcher.launch(ProgramRequest(("/bin/sh", "-c", script), Path("/tmp")))
    await anyio.wait_readable(program.stdout)
    program.terminate()
    code, output, _ = await finish(program)
    assert (code, output) == (3, "up\nbye\n")
    program.terminate()


async def test_environment_is_that_of_the_request_plus_own_folders(run, monkeypatch):
    monkeypatch.setenv("FROM_THE_HOST", "leaked")
    _, output, _ = await run("/usr/bin/env", environment={"ONE": "1"})
    found = dict(line.split("=", 1) for line in output.splitlines())
    assert set(found) == {"ONE", "HOME", "TMPDIR"}
    assert found["HOME"] == found["TMPDIR"]


async def test_program_inherits_no_descriptor(run_python):
    with socket.socket() as leaked, socket.socket() as other:
        os.set_inheritable(leaked.fileno(), True)
        os.set_inheritable(other.fileno(), True)
        code = "import os\nfor n in range(256):\n try: os.fstat(n); print(n)\n except OSError: pass"
        assert (await run_python(code))[1].split() == ["0", "1", "2"]


async def test_signals_ignored_by_the_host_have_default_handling(run_python):
    code = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_DFL, signal.pthread_sigmask(0, []))"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert (await run_python(code))[1] == "True set()\n"
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_files_created_in_a_place_belong_to_the_host_user(run, place):
    code, _, errors = await run(
        "/bin/sh", "-c", "cat known >new && mkdir f", folder=place, places=(Place(place, True),)
    )
    assert (code, errors) == (0, "")
    assert (place / "new").read_text() == "known\n"
    assert {(path.stat().st_uid, path.stat().st_gid) for path in place.iterdir()} == {(os.geteuid(), os.getegid())}


async def test_file_in_a_writable_place_is_executed_only_if_the_place_is_executable(run, place):
    script = "cp /bin/true copy && ./copy && echo ran"
    places = Place(place, writable=True), Place(place, writable=True, executable=True)
    code, output, _ = await run("/bin/sh", "-c", script, folder=place, places=places[:1])
    assert (code, output) == (126, "")
    code, output, _ = await run("/bin/sh", "-c", script, folder=place, places=places[1:])
    assert (code, output) == (0, "ran\n")


async def test_read_only_place_rejects_writes(run, place):
    code, output, _ = await run("/bin/sh", "-c", "cat known; : >new", folder=place, places=(Place(place),))
    assert (code != 0, output) == (True, "known\n")
    assert [path.name for path in place.iterdir()] == ["known"]


async def test_writable_place_inside_a_read_only_place_accepts_writes(run, place):
    inner = place / "inner"
    inner.mkdir()
    places = (Place(place), Place(inner, True))
    code, output, errors = await run("/bin/sh", "-c", "cat known; : >inner/new", folder=place, places=places)
    assert (code, output, errors) == (0, "known\n", "")
    assert (await run("/bin/sh", "-c", ": >new", folder=place, places=places))[0] != 0


async def test_place_can_be_a_single_file(run, place):
    neighbor = place / "neighbor"
    neighbor.write_text("private\n")
    places = (Place(place / "known"),)
    _, output, _ = await run("/bin/sh", "-c", f"cat {place}/known; cat {neighbor}", places=places)
    assert output == "known\n"


async def test_program_outside_system_folders_cannot_read_its_own_folder(run, place):
    program = place / "own"
    shutil.copy("/bin/cat", program)
    assert (await run(str(program), data=b"x"))[:2] == (0, "x")
    assert (await run(str(program), str(place / "known")))[0] != 0


async def test_place_whose_path_contains_a_link_is_rejected(launcher, place, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (place / "inner").symlink_to(secret)
    request = ProgramRequest(("/bin/true",), Path("/tmp"), places=(Place(place / "inner", True),))
    with pytest.raises(WorkerStartFailed, match="Too many levels of symbolic links"):
        await launcher.launch(request)


@pytest.mark.parametrize("folder", ["/none", "/etc/passwd"])
async def test_inaccessible_working_directory_is_rejected(launcher, folder):
    with pytest.raises(WorkerStartFailed, match=f"`{folder}`"):
        await launcher.launch(ProgramRequest(("/bin/true",), Path(folder)))


@pytest.mark.parametrize("kind", ["missing", "not executable"])
async def test_file_that_is_not_executable_is_rejected(launcher, place, kind):
    program = place / ("known" if kind == "not executable" else "none")
    with pytest.raises(WorkerStartFailed):
        await launcher.launch(ProgramRequest((str(program),), Path("/tmp"), places=(Place(place),)))


CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"


async def test_network_is_available_only_on_request(run_python):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert (await run_python(CONNECT, port))[0] != 0
        code, _, errors = await run_python(CONNECT, port, network=True)
        assert (code, errors) == (0, "")


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def marked_processes(marker):
    """Return the processes of this machine that have the marker in their environment."""
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
    "a stopped child": "import os, signal\nif os.fork() == 0: os.setsid(); os.kill(os.getpid(), signal.SIGSTOP)",
    "a child that ignores signals": """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for number in (1, 2, 3, 13, 15): signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)
""",
    "many children": "import os, time\nfor _ in range(30):\n if os.fork() == 0: os.setsid(); time.sleep(1000)",
}


@pytest.mark.parametrize("what", LEAVES)
async def test_exit_kills_descendants(run_python, tmp_path, what):
    marker = f"MARKER={tmp_path.name}-{os.getpid()}-{what.replace(' ', '-')}"
    # The program prints a line once all children exist.
    code = LEAVES[what] + "\nelse: print('left', flush=True)"
    environment = dict([marker.split("=")])
    ended, output, errors = await run_python(code, environment=environment)
    assert (ended, output.strip(), errors) == (0, "left", "")
    assert marked_processes(marker) == []


BOMB = """
import os
print('started', flush=True)
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError:
        pass
"""


async def test_fork_bomb_is_limited_and_killed(launcher, python_places, tmp_path, until):
    marker = f"BOMB={tmp_path.name}-{os.getpid()}"
    request = ProgramRequest(
        arguments=(PYTHON, "-I", "-S", "-B", "-c", BOMB),
        folder=Path("/tmp"),
        environment=dict([marker.split("=")]),
        places=python_places,
        limits=ProgramLimits(processes=20),
    )
    program = await launcher.launch(request)
    try:
        with anyio.fail_after(30):
            await anyio.wait_readable(program.stdout)
            await until(lambda: len(marked_processes(marker)) >= 20)
            # The limit includes the other threads of the user, some of which may have ended since.
            assert len(marked_processes(marker)) <= 2 * 20
            program.kill()
            assert await program.wait() == -signal.SIGKILL
        assert marked_processes(marker) == []
    finally:
        await program.close()


async def test_kernel_status_shows_no_privileges(launcher, tier):
    program = await launcher.launch(ProgramRequest(("/bin/cat",), Path("/tmp")))
    try:
        lines = (await anyio.Path(f"/proc/{program.pid}/status").read_text()).splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    finally:
        await program.close()
    none = "0" * 16
    assert [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [none] * 4
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    if os.geteuid() == 0:
        assert status["CapBnd"] == none
    if os.geteuid() == 0 and tier == "full":
        assert int(status["Uid"].split()[0]) >= 0x70000000
        assert not status["Groups"].strip()


@BACKENDS
async def test_kill_ends_the_program_with_its_descendants(launcher, python_places, tmp_path):
    marker = f"KILLED={tmp_path.name}-{os.getpid()}"
    code = LEAVES["many children"] + "\nimport signal; print('x', flush=True); signal.pause()"
    request = ProgramRequest(
        arguments=(PYTHON, "-I", "-S", "-B", "-c", code),
        folder=Path("/tmp"),
        environment=dict([marker.split("=")]),
        places=python_places,
    )
    program = await launcher.launch(request)
    with anyio.fail_after(30):
        await anyio.wait_readable(program.stdout)
        assert len(marked_processes(marker)) > 1
        assert program.usage().memory > 0
        program.kill()
        program.kill()
        assert await program.wait() == -signal.SIGKILL
    assert marked_processes(marker) == []
    assert program.usage() is None
    await program.close()
    await program.close()


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
    program = await sandbox.launch_program(request)
    await anyio.wait_readable(program.stdout)
    print(program.isolation.label, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


async def test_program_is_killed_with_its_host(tier, python_places, tmp_path, until):
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
        assert marked_processes(marker)
        host.kill()
        await until(lambda: not marked_processes(marker))


GREEDY = """
import os
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(100 << 20)
        kept[::4096] = b'x' * (len(kept) // 4096)
        import signal; signal.pause()
raise SystemExit(os.wait()[1])
"""


@pytest.mark.parametrize("counted_by", ["control group", "keeper"])
async def test_memory_limit_applies_to_all_processes_together(launcher, run_python, counted_by):
    if counted_by == "keeper":
        launcher._platform = evolve(launcher._platform, cgroups=None)
    ended, _, errors = await run_python(GREEDY, limits=ProgramLimits(memory=256 << 20))
    assert (abs(ended), errors) == (signal.SIGKILL, "")


async def test_memory_limit_applies_to_one_process(run_python):
    _, _, errors = await run_python("bytearray(400 << 20)", limits=ProgramLimits(memory=256 << 20))
    assert "MemoryError" in errors
    assert (await run_python("bytearray(100 << 20)", limits=ProgramLimits(memory=256 << 20)))[0] == 0


async def test_file_size_is_limited(run, place):
    limits = ProgramLimits(file_size=1 << 20)
    script = "head -c 3000000 /dev/zero >large"
    ended, _, _ = await run("/bin/sh", "-c", script, folder=place, places=(Place(place, True),), limits=limits)
    assert ended != 0
    assert (place / "large").stat().st_size == 1 << 20


@pytest.mark.parametrize("tier", ["full"])  # the limit is the same on both tiers, and takes a second
async def test_processor_time_is_limited(run_python):
    assert (await run_python("while True: pass", limits=ProgramLimits(cpu_seconds=1)))[0] in (
        -signal.SIGXCPU,
        -signal.SIGKILL,
    )


async def test_descriptors_are_limited(run_python):
    code = "import os; [os.pipe() for _ in range(40)]"
    assert "Too many open files" in (await run_python(code, limits=ProgramLimits(files=64)))[2]


async def test_temporary_folder_is_removed_on_exit(run, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert (await run("/bin/sh", "-c", "echo x >$TMPDIR/x && cat $HOME/x"))[:2] == (0, "x\n")
    assert list(folder.iterdir()) == []


@BACKENDS
async def test_cancelled_start_leaves_no_process_file_or_descriptor(launcher, tmp_path, monkeypatch, until):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    marker = f"CANCELLED={tmp_path.name}-{os.getpid()}"
    request = ProgramRequest(("/bin/sleep", "1000"), Path("/tmp"), dict([marker.split("=")]))
    descriptors = open_descriptors()
    for delay in (0, 0.01, 0.03):
        with anyio.move_on_after(delay) as scope:
            program = await launcher.launch(request)
            await program.close()
        assert scope.cancelled_caught or delay  # a start may be faster than its cancellation
    await until(lambda: not marked_processes(marker))
    assert list(folder.iterdir()) == []
    assert open_descriptors() == descriptors


async def test_arguments_longer_than_the_limit_of_one_argument_arrive_complete(run):
    words = [f"{number:060}" for number in range(10_000)]
    assert (await run("/bin/echo", *words))[1].split() == words


async def test_programs_run_concurrently(launcher, finish):
    codes = []

    async def one(number):
        request = ProgramRequest(("/bin/sh", "-c", f"exit {number}"), Path("/tmp"))
        codes.append((await finish(await launcher.launch(request)))[0])

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(one, number)
    assert sorted(codes) == [0, 1, 2, 3, 4]


async def test_program_runs_without_isolation_only_if_workers_do(machine, finish):
    from sideband_sandbox import SystemSandbox

    broken = SystemSandbox(evolve(machine, landlock=evolve(machine.landlock, files=1 << 60)))
    program = await broken.launch_program(ProgramRequest(("/bin/true",), Path("/tmp")))
    assert program.isolation is Isolation.NONE
    assert (await finish(program))[0] == 0
    assert await broken.prove_programs() == ()
    await broken.close()
