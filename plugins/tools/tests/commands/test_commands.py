"""The tools that run commands: what the model sees, what commands may do, and what the user is asked."""

import re

import pytest
from sideband.hooks import ToolProgress, hookimpl
from sideband_agent import Agent
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


async def test_output_and_exit_code_are_shown(call):
    result = await call("command", command="cat a.txt; echo bad >&2; exit 3")
    assert re.fullmatch(r"inside\nbad\n\[exit code 3 after \d+\.\d s\]", result.text)
    assert (result.is_error, result.metadata["exit_code"]) == (False, 3)


async def test_command_runs_with_bash_in_the_folder_that_is_named(call, work):
    (work / "sub").mkdir()
    result = await call("command", command="[[ $PWD == */work/sub ]] && echo here", folder="sub")
    assert result.text.startswith("here\n[exit code 0 ")


async def test_folder_outside_of_the_places_is_refused(call):
    assert "is outside of the folders" in (await call("command", command="ls", folder="/usr")).text


async def test_command_can_change_and_execute_files_in_the_places(call, work):
    script = "printf '#!/bin/sh\\necho ran\\n' > run.sh && chmod +x run.sh && ./run.sh"
    assert (await call("command", command=script)).text.startswith("ran\n[exit code 0 ")
    assert (work / "run.sh").exists()


async def test_command_reaches_nothing_else(call, tmp_path, monkeypatch):
    monkeypatch.setenv("FROM_THE_HOST", "leaked")
    (tmp_path / "secret.txt").write_text("secret")
    result = await call("command", command="env; cat ../secret.txt; echo > /usr/new; cat < /dev/tcp/127.0.0.1/9")
    assert not re.search(r"leaked|secret$", result.text, re.MULTILINE)
    assert result.text.count("No such file") + result.text.count("Permission denied") >= 1
    assert "Read-only file system" in result.text or "Permission denied" in result.text
    assert "Address family not supported" in result.text


async def test_beginning_and_end_of_long_output_stay_visible(call):
    result = await call("command", command="echo first; seq 1 300000; echo failed >&2; exit 1")
    assert result.text.startswith("first\n")
    assert re.search(r"failed\n\[exit code 1 after [\d.]+ s\]\Z", result.text)
    assert len(result.text) < 100_000


async def test_expired_time_is_an_error_with_the_output_so_far(call):
    result = await call("command", command="echo begun; sleep 60", timeout=0.5)
    assert re.search(r"begun\n\[killed after .* raise `timeout`", result.text)
    assert result.is_error


async def test_empty_output_is_stated(call):
    assert re.fullmatch(r"\[no output; exit code 0 after \d\.\d s\]", (await call("command", command="true")).text)


async def test_one_question_covers_files_and_commands(call, requests, work):
    await call("read", path="a.txt")
    await call("command", command="true")
    await call("grep", pattern="x")
    (request,) = requests
    assert request.effect["capabilities"] == [
        f"files:hidden=*,mode=read|write,path={work}/*,place=system",
        f"shell:binary=bash|sh,env=none/,mode=execute,network=no,place={work},runs=any,sockets=no",
    ]


@pytest.mark.parametrize("has_shell", [False])
async def test_question_names_no_ops_that_are_not_installed(call, requests):
    assert "inside" in (await call("read", path="a.txt")).text
    assert "shell" not in str(requests[0].effect["capabilities"])
    assert (await call("command", command="true")).is_error


@pytest.mark.parametrize("configured", [{"commands": False}])
async def test_commands_can_be_switched_off(call, requests):
    await call("read", path="a.txt")
    assert "shell" not in str(requests[0].effect["capabilities"])
    assert "unknown tool" in (await call("command", command="true")).text


@pytest.mark.parametrize("configured", [{"network": True}])
async def test_network_is_shown_in_the_question(call, requests):
    result = await call("command", command="cat < /dev/tcp/127.0.0.1/9")
    assert "Connection refused" in result.text
    assert "network=yes" in str(requests[0].effect["capabilities"])


async def test_command_in_the_background_survives_its_turn_and_is_read_by_offsets(call):
    started = await call("command", command="echo one; sleep 0.2; echo two; exit 3", background=True)
    program = re.search(r"[0-9a-f]{32}", started.text)[0]
    first = await call("command_output", program=program)
    assert re.fullmatch(r"one\n\[still running after .* s; continue with offset 4\]", first.text)
    second = await call("command_output", program=program, offset=4, until="end", wait=30)
    assert re.fullmatch(r"two\n\[exit code 3 after .* s\]", second.text)


async def test_command_in_the_background_can_be_stopped(call):
    started = await call("command", command="exec sleep 60", background=True)
    program = re.search(r"[0-9a-f]{32}", started.text)[0]
    stopped = await call("command_stop", program=program)
    assert re.fullmatch(r"\[stopped after .* s\]", stopped.text)
    assert "stopped" in (await call("command_output", program=program)).text


async def test_command_in_the_background_ends_with_the_session(call, agent):
    started = await call("command", command="exec sleep 60", background=True)
    program = re.search(r"[0-9a-f]{32}", started.text)[0]
    state = agent.host.plugins.active("op", "shell").context.state
    (running,) = state._programs.values()
    await agent.new_session()
    assert running.ended.is_set()
    assert "no program in the background has the id" in (await call("command_output", program=program)).text


async def test_command_in_the_background_ends_with_its_agent(agent, script, work):
    async with Agent(agent.host, folder=work) as other:
        script.turns += [Turn(tool_calls=[("command", {"command": "exec sleep 60", "background": True})]), "done"]
        await other.invoke("go")
        (running,) = agent.host.plugins.active("op", "shell").context.state._programs.values()
        assert not running.ended.is_set()
    assert running.ended.is_set()


async def test_output_is_shown_while_the_command_runs(call, agent):
    seen = []

    class Watch:
        @hookimpl
        def tool_progress(self, event: ToolProgress):
            seen.append(event.text or "")

    agent.hooks.register("watch", Watch())
    await call("command", command="echo one; echo two >&2")
    assert "one\ntwo\n" in "".join(seen)


async def test_next_shell_runs_commands_if_the_first_one_is_not_installed(monkeypatch, call):
    for module in ("_places", "_commands._command_tool"):
        monkeypatch.setattr(f"sideband_tools.{module}.SHELLS", ("no-such-shell", "sh"))
    result = await call("command", command="echo $0")
    assert result.text.startswith("/usr/bin/sh\n")


class TestPrograms:
    @pytest.fixture
    def more(self, tmp_path):
        folder = (tmp_path / "more").resolve()
        folder.mkdir()
        (folder / "tool").write_text("#!/bin/sh\necho found\n")
        (folder / "tool").chmod(0o755)
        return folder

    @pytest.fixture
    def configured(self, more):
        return {"programs": [str(more)]}

    async def test_further_folders_can_be_executed_but_not_changed(self, call, more):
        result = await call("command", command=f"{more}/tool; echo > {more}/new")
        assert result.text.startswith("found\n")
        assert not (more / "new").exists()

    async def test_further_folders_are_in_the_question(self, call, more, requests):
        await call("command", command="true")
        assert f"mode=read,network=no,place={more}" in str(requests[0].effect["capabilities"])
