"""Commands that mean harm, hang, flood or stay; and hosts that can't hold them."""

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


def marked(marker):
    """The processes of this machine that have the marker in their environment."""
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


DEAF = """
import os, signal, sys, time
for number in (1, 2, 3, 13, 15): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print('ready', flush=True)
        while True: time.sleep(1000)
while True: time.sleep(1000)
"""


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_deaf_daemon_ends_when_its_time_is_over(run_python, marker):
    answer = await run_python(DEAF, timeout=3, stream=True, env=marker)
    assert (answer["timed_out"], answer["stdout"]) == (True, "ready\n")
    assert marked(marker["MARKER"]) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_cancelled_call_ends_everything(run_python, marker):
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: run_python(DEAF, timeout=1000, env=marker))
            while not marked(marker["MARKER"]):  # noqa: ASYNC110  nothing tells when a process begins
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert marked(marker["MARKER"]) == []


BOMB = """
import os
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
"""


@pytest.mark.parametrize("settings", [{"max_processes": 30}])
async def test_a_fork_bomb_ends_when_its_time_is_over(run_python, marker):
    with pytest.raises(ShellTimeout):
        await run_python(BOMB, timeout=2, env=marker)
    assert marked(marker["MARKER"]) == []


@pytest.mark.parametrize("settings", [{"max_total_bytes": 50_000_000}])
async def test_floods_on_both_streams_are_ended(run_python):
    code = "import os\nwhile True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)"
    with pytest.raises(ShellOutput):
        await run_python(code)


async def test_a_daemon_that_holds_the_output_open_does_not_keep_anybody_waiting(run_python, marker):
    code = "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(1000)"
    assert (await run_python(code, env=marker))["exit_code"] == 0
    assert marked(marker["MARKER"]) == []


async def test_a_command_that_closes_its_output_and_goes_on_is_waited_for(run_python):
    code = "import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(5)"
    assert (await run_python(code))["exit_code"] == 5


async def test_a_disk_can_not_be_filled_through_the_folder_of_its_own(run_python):
    code = "import os; f = open(os.environ['TMPDIR'] + '/x', 'wb'); os.posix_fallocate(f.fileno(), 0, 300 << 20)"
    answer = await run_python(code)
    assert "No space left" in answer["stderr"]


async def test_the_hosts_own_folder_and_home_can_not_be_seen(run_python, home, monkeypatch):
    for path in (home, Path.home(), Path("/etc/shadow"), Path("/root/.ssh"), Path("/var/run/docker.sock")):
        answer = await run_python(
            f"import os; os.stat({str(path / 'ledger' if path == home else path)!r}); print('seen')"
        )
        if path == Path.home() and "seen" in answer["stdout"]:
            # The interpreter lies there: what is beside it is not to be seen.
            answer = await run_python(f"import os; print(sorted(os.listdir({str(path)!r})))")
            assert ".bashrc" not in answer["stdout"]
            continue
        assert "seen" not in answer["stdout"], path


async def test_a_command_runs_on_no_weaker_tier_than_the_host_demands(tmp_path):
    plugins = [
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    async with Host(home=tmp_path / "home", plugins=plugins, autoload=False) as host:
        with pytest.raises(ShellIsolation) as caught:
            await host.op("shell.run", {"binary": "touch", "args": [str(tmp_path / "ran")]}, grants=["shell"])
    assert (caught.value.code, bool(caught.value.hint)) == ("shell.isolation", True)
    assert not (tmp_path / "ran").exists()


async def test_who_watches_hears_how_far_it_is(host):
    heard = []
    request = {"binary": "sh", "args": ["-c", "echo one; sleep 0.4; echo two"]}
    await host.op("shell.run", request, grants=["shell:binary=sh"], on_progress=heard.append)
    assert heard[0].message == "one"
    assert heard[-1].current == len("one\ntwo\n")


@pytest.fixture
def printed(host):
    """What is heard of a script's output while it comes: by stream."""

    async def printed(script):
        texts = {"stdout": "", "stderr": ""}

        async def take(part):
            texts[part["stream"]] += part["text"]

        grant = Grant.of([Capability.parse("shell:binary=sh,code=yes")])
        call = Call("c1", grant, "test", Origin(), anyio.current_time() + 60, on_part=take)
        await host.broker.dispatch(call, "shell.run", {"binary": "sh", "args": ["-c", script]})
        return texts

    return printed


async def test_whoever_asks_for_it_gets_the_output_while_it_comes(printed):
    assert await printed("echo one; echo two >&2") == {"stdout": "one\n", "stderr": "two\n"}


@pytest.mark.parametrize("settings", [{"max_output_bytes": 1024}])
async def test_no_more_is_heard_while_it_comes_than_is_answered(printed):
    texts = await printed("head -c 1000000 /dev/zero | tr '\\0' x; echo two >&2")
    assert len(texts["stdout"]) <= 1024
    assert texts["stderr"] == "two\n"


async def test_arguments_are_in_the_record_and_neither_input_nor_variables(host, run):
    await run("true", "an-argument", input="an-input", env={"ONE": "a-value"})
    text = "".join([path.read_text() for path in (host.home / "ledger").rglob("*.jsonl")])
    assert "an-argument" in text
    assert "an-input" not in text
    assert "a-value" not in text


async def test_taking_it_back_says_that_it_can_not_be(host, run):
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


async def test_a_skill_runs_commands_with_the_sdk(home, place, tmp_path):
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
