"""``sideband completion``: real shells complete commands, options and names."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte
import pytest

SECONDS = 60
NAME = "water $(plants)"
PROGRAMS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
SETUP = {
    "bash": "PS1='ready> '; source <(sideband completion bash)",
    "zsh": "PS1='ready> '; autoload -Uz compinit; compinit -u -D; source <(sideband completion zsh)",
    "fish": "function fish_prompt; echo 'ready> '; end; sideband completion fish | source",
}
START = {"bash": ["bash", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"], "fish": ["fish", "--no-config", "-i"]}


@pytest.fixture
def environment(tmp_path):
    return {"PATH": PROGRAMS, "HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path / "home"), "TERM": "xterm"}


class Shell:
    """A shell at a pseudo-terminal, in which keys are pressed."""

    def __init__(self, name, environment, folder):
        self._screen = pyte.Screen(150, 40)
        self._screen.write_process_input = self.type  # fish asks what terminal this is
        self._stream = pyte.ByteStream(self._screen)
        child, self._master = pty.fork()
        if child == 0:
            os.chdir(folder)
            os.execvpe(START[name][0], START[name], environment)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 150, 0, 0))
        self._child = child
        self.type(f"{SETUP[name]}\r")
        self.wait_until(lambda lines: lines[-1:] == ["ready>"])

    @property
    def line(self):
        """The command line, which may have a list of choices below it."""
        return next(line for line in reversed(self._lines()) if "ready>" in line)

    @property
    def text(self):
        return "\n".join(self._lines())

    def type(self, text):
        os.write(self._master, text.encode())

    def press_tab_after(self, text):
        """Type a text, and press the key once it is displayed."""
        self.type(text)
        self.wait_until(lambda _: self.line.endswith(text.strip()))
        self.type("\t")

    def wait_until(self, is_done):
        until = time.monotonic() + SECONDS
        while not is_done(self._lines()):
            ready, _, _ = select.select([self._master], [], [], max(0, until - time.monotonic()))
            assert ready, f"timeout:\n{self.text}"
            self._stream.feed(os.read(self._master, 65_536))

    def _lines(self):
        return [line.rstrip() for line in self._screen.display if line.strip()]

    def close(self):
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        os.close(self._master)


@pytest.fixture(params=SETUP)
def shell(request, environment, tmp_path):
    opened = Shell(request.param, environment, tmp_path)
    yield opened
    opened.close()


def test_tab_completes_a_command_an_action_and_an_option(shell):
    shell.press_tab_after("sideband sess")
    shell.wait_until(lambda _: shell.line.endswith("sideband sessions"))
    shell.press_tab_after("pru")
    shell.wait_until(lambda _: shell.line.endswith("sessions prune"))
    shell.press_tab_after("--older")
    shell.wait_until(lambda _: shell.line.endswith("prune --older-than"))


def test_tab_completes_the_name_of_a_session_quoted(shell, sessions):
    shell.press_tab_after("sideband sessions show wat")
    shell.wait_until(
        lambda _: re.search(r"show (water\\ \$\(plants\)|water\\ \\\$\\\(plants\\\)|'water \$\(plants\)')", shell.line)
    )


def test_tab_completes_a_file_and_a_model(shell, tmp_path, environment):
    (tmp_path / "picture.png").touch()
    shell.press_tab_after("sideband run --file pic")
    shell.wait_until(lambda _: shell.line.endswith("--file picture.png"))
    shell.press_tab_after("--model openai-oll")
    shell.wait_until(lambda _: shell.line.endswith("--model openai-ollama:"))


@pytest.fixture
def sessions(environment, tmp_path):
    """A session whose name a shell must not execute."""
    lines = [
        {"type": "session", "version": 1, "id": "1" * 16, "time": "2026-01-01T00:00:00.000Z", "channel": "cli"},
        {"id": "a" * 16, "parent": None, "time": "2026-01-01T00:00:00.000Z", "type": "name", "name": NAME},
    ]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    subprocess.run(["sideband", "sessions", "import", file], env=environment, check=True, capture_output=True)


def asked(line, environment):
    """Return what the command answers to a shell."""
    asking = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    code = "import os, sys; os.dup2(1, 8); os.execvp('sideband', ['sideband', 'completion'])"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env={**environment, **asking}, capture_output=True, text=True, check=True)
    return [one.strip() for one in done.stdout.split("\n")]


def test_names_are_found_without_importing_plugins(environment, plugin):
    code = "from pathlib import Path\nPath(__file__).with_suffix('.imported').touch()\n"
    found = plugin("gardening", "command", code)
    assert "gardening" in asked("sideband gar", {**environment, **found})
    assert not list(Path(found["PYTHONPATH"]).glob("*.imported"))


def test_sessions_that_were_renamed_are_found_again(environment, sessions):
    assert asked("sideband sessions show wat", environment) == [r"water\ \$\(plants\)"]
    subprocess.run(["sideband", "sessions", "rename", "1" * 16, "trees"], env=environment, check=True)
    assert asked("sideband sessions show tr", environment) == ["trees"]


def test_skills_and_plugins_are_completed(environment, make_skill):
    folder = make_skill("notes", "")
    configured = {**environment, "SIDEBAND_SKILLS__FOLDERS": f'["{folder.parent}"]'}
    assert asked("sideband skills show no", configured) == ["notes"]
    assert asked("sideband call no", configured) == ["notes."]
    assert "openai" in asked("sideband plugins show ope", environment)


def test_without_a_shell_its_name_is_asked_for(sideband):
    done = sideband("completion")
    assert done.returncode == 2
    assert "sideband completion bash" in done.stderr
    assert "did you mean `bash`" in sideband("completion", "bsh").stderr
