"""Commands whose output is a pipe that its reader has closed, as ``head`` does."""

import json
import os
import re

import pytest


@pytest.fixture
def start(tmp_path, command_server):
    """Start a command and return it with the read ends of its output and of its errors."""

    def start(*words, joined=False):
        out, out_inside = os.pipe()
        err, err_inside = (os.dup(out), os.dup(out_inside)) if joined else os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path / "home")}
        streams = [null, out_inside, err_inside]
        command = command_server.start(
            [str(word) for word in words], streams=streams, folder=str(tmp_path), environment=environment
        )
        for descriptor in streams:
            os.close(descriptor)
        return command, out, err

    return start


def rest(descriptor):
    with os.fdopen(descriptor) as stream:
        return stream.read()


def test_run_ends_quietly_once_its_events_are_not_read(start, sideband, turns, gate):
    options = turns({"tool_calls": [{"name": "gate__wait", "arguments": {}}]}, "never reached")
    command, out, err = start("run", "--json", "wait", "--yes", "--skill-dir", gate.folder, *options)
    assert gate.reached.wait(20)
    with os.fdopen(out) as events:
        first = json.loads(events.readline())
    assert first["event"] == "session_start"
    gate.opened.set()
    assert command.wait() == 0
    assert re.findall("error|notice|Traceback|Broken", rest(err)) == []
    # The run ends as if it had been interrupted: what happened is stored, and no further step is taken.
    effects = json.loads(sideband("audit", "query", "--json").stdout)
    assert sum(one["op"] == "llm.generate" for one in effects) == 1
    assert sideband("audit", "verify").returncode == 0
    assert first["session"] in sideband("sessions", "list").stdout


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "plugins list",
        "plugins check --json",
        "doctor",
        "skills list",
        "hooks list --json",
        "op progress.report message=hello --json",
        "chat",
        "run --json hello",
        "run hello",
    ],
)
def test_command_ends_quietly_if_its_output_is_not_read(start, turns, words, joined):
    options = turns("hi") if words.startswith(("chat", "run")) else ()
    command, out, err = start(*words.split(), *options, joined=joined)
    os.close(out)
    if joined:
        os.close(err)
    assert command.wait() == 0
    if not joined:
        assert re.findall("error|notice|Traceback|Broken", rest(err)) == []
