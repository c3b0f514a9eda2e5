"""Programs that hang, print too much, leave processes behind or look for private files; and hosts without isolation."""

import os
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
import sideband_shell.plugin
import sideband_store_sqlite.plugin
from sideband import CallRequest, Host, Plugin
from sideband.broker import Call
from sideband.ops import Capability, Grant, Origin
from sideband_shell import ShellIsolation, ShellOutput, ShellTimeout

pytestmark = pytest.mark.anyio


def marked_processes(marker):
    """Return the processes of this machine that have the marker in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if marker.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found


@pytest.fixture
def marker(tmp_path):
    return {"MARKER": f"{tmp_path.name}-{os.getpid()}"}


IGNORES_SIGNALS = """
import os, signal, sys, time
for number in (1, 2, 3, 13, 15): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print('ready', flush=True)
        while True: time.sleep(1000)
while True: time.sleep(1000)
"""


async def test_timeout_kills_a_daemon_that_ignores_signals(run_python, marker):
    answer = await run_python(IGNORES_SIGNALS, timeout=2, stream=True, env=marker)
    assert (answer["timed_out"], answer["stdout"]) == (True, "ready\n")
    assert marked_processes(marker["MARKER"]) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_call_kills_all_processes(run_python, marker):
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: run_python(IGNORES_SIGNALS, timeout=1000, env=marker))
            while not marked_processes(marker["MARKER"]):  # noqa: ASYNC110  there is no event for the start of another process's child
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert marked_processes(marker["MARKER"]) == []


BOMB = """
import os
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
"""


@pytest.mark.parametrize("settings", [{"max_processes": 30}])
async def test_timeout_kills_a_fork_bomb(run_python, marker):
    with pytest.raises(ShellTimeout):
        await run_python(BOMB, timeout=1, env=marker)
    assert marked_processes(marker["MARKER"]) == []


@pytest.mark.parametrize("settings", [{"max_total_bytes": 5_000_000}])
async def test_output_limit_applies_to_both_streams_together(run_python):
    code = "import os\nwhile True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)"
    with pytest.raises(ShellOutput):
        await run_python(code)


async def test_daemon_that_keeps_the_output_open_does_not_delay_the_result(run_python, marker):
    code = "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(1000)"
    assert (await run_python(code, env=marker))["exit_code"] == 0
    assert marked_processes(marker["MARKER"]) == []


async def test_program_that_closes_its_output_is_awaited(run_python):
    code = "import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(5)"
    assert (await run_python(code))["exit_code"] == 5


async def test_temporary_folder_is_limited_in_size(run_python):
    code = "import os; f = open(os.environ['TMPDIR'] + '/x', 'wb'); os.posix_fallocate(f.fileno(), 0, 300 << 20)"
    answer = await run_python(code)
    assert "No space left" in answer["stderr"]


async def test_program_cannot_see_private_files_of_the_host(run_python, home, monkeypatch):
    for path in (home, Path.home(), Path("/etc/shadow"), Path("/root/.ssh"), Path("/var/run/docker.sock")):
        answer = await run_python(
            f"import os; os.stat({str(path / 'ledger' if path == home else path)!r}); print('seen')"
        )
        if path == Path.home() and "seen" in answer["stdout"]:
            # The interpreter is installed there; the other files must be hidden.
            answer = await run_python(f"import os; print(sorted(os.listdir({str(path)!r})))")
            assert ".bashrc" not in answer["stdout"]
            continue
        assert "seen" not in answer["stdout"], path


async def test_program_is_refused_below_the_required_tier(tmp_path):
    plugins = [
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    async with Host(home=tmp_path / "home", plugins=plugins, autoload=False) as host:
        with pytest.raises(ShellIsolation) as caught:
            await host.op("shell.run", {"binary": "touch", "args": [str(tmp_path / "ran")]}, grants=["shell"])
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.isolation", True)
    assert not (tmp_path / "ran").exists()


async def test_progress_is_reported(host):
    reports = []
    request = {"binary": "sh", "args": ["-c", "echo one; sleep 0.4; echo two"]}
    await host.op("shell.run", request, grants=["shell:binary=sh,runs=any"], on_progress=reports.append)
    reports = [one for one in reports if one.current is not None]
    assert reports[0].message == "one"
    assert (reports[-1].current, reports[-1].unit) == (len("one\ntwo\n"), "bytes")


@pytest.fixture
def printed(host):
    """Return a function that runs a script, and returns its streamed output by stream."""

    async def printed(script):
        texts = {"stdout": "", "stderr": ""}

        async def take(part):
            texts[part["stream"]] += part["text"]

        grant = Grant.of([Capability.parse("shell:binary=sh,code=yes,runs=any")])
        call = Call("c1", grant, "test", Origin(), anyio.current_time() + 60, on_part=take)
        await host.broker.dispatch(call, "shell.run", {"binary": "sh", "args": ["-c", script]})
        return texts

    return printed


async def test_output_is_streamed(printed):
    assert await printed("echo one; echo two >&2") == {"stdout": "one\n", "stderr": "two\n"}


@pytest.mark.parametrize("settings", [{"max_output_bytes": 1024}])
async def test_streamed_output_is_limited_like_the_result(printed):
    texts = await printed("head -c 1000000 /dev/zero | tr '\\0' x; echo two >&2")
    assert len(texts["stdout"]) <= 1024
    assert texts["stderr"] == "two\n"


async def test_record_contains_arguments_but_not_input_or_variables(host, run):
    await run("true", "an-argument", input="an-input", env={"ONE": "a-value"})
    text = "".join([path.read_text() for path in (host.home / "ledger").rglob("*.jsonl")])
    assert "an-argument" in text
    assert "an-input" not in text
    assert "a-value" not in text


async def test_undo_plan_explains_that_it_has_no_steps(host, run):
    effects = []
    request = {"binary": "true"}
    await host.op("shell.run", request, grants=["shell"], on_effect=effects.append)
    plan = await host.plan_undo(effects[0].id)
    assert not plan.steps
    assert any("`true`" in reason for reason in plan.remains)


SKILL = """
from sideband.skill import shell, tool

@tool
async def known(folder: str) -> str:
    answer = await shell.run("cat", "known", cwd=folder, timeout=20)
    return answer["stdout"]

@tool
async def by_name(folder: str) -> str:
    return (await shell.run("cat", args=["known"], cwd=folder))["stdout"]

@tool
async def both(folder: str) -> str:
    try:
        await shell.run("cat", "known", args=["known"])
    except TypeError as error:
        return str(error)
"""


async def test_skill_runs_programs_through_the_sdk(home, place, tmp_path):
    folder = tmp_path / "skills" / "reader"
    folder.mkdir(parents=True)
    front = (
        "---\nname: reader\ndescription: Reads.\nmetadata:\n  sideband.capabilities: shell:binary=cat,place=*\n---\n"
    )
    (folder / "SKILL.md").write_text(front)
    (folder / "reader.py").write_text(SKILL)
    async with Host(home=home, skill_dirs=[tmp_path / "skills"]) as host:

        async def call(tool):
            request = CallRequest(tool, {"folder": str(place)}, grants=(f"shell:binary=cat,place={place}",))
            return (await host.run(request)).output

        assert await call("reader.known") == "known\n"
        assert await call("reader.by_name") == "known\n"
        assert "not both" in await call("reader.both")
