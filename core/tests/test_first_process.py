"""The command ``sideband`` as process 1 of a container. The process namespace is real."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

USERS = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
PREFIX = ["unshare", *USERS, "--pid", "--fork", "--kill-child", "--mount-proc"]
# A command whose work is the rest of the script.
SCRIPT = """
import os, signal, subprocess, sys, time
import sideband.command_line
from sideband.__main__ import main

def run(arguments):
{work}

sideband.command_line.run = run
sys.exit(main(["work"]))
"""


def start(work):
    lines = "\n".join(f"    {line}" for line in work.strip().splitlines())
    command = [*PREFIX, sys.executable, "-c", SCRIPT.format(work=lines)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    output, errors = process.communicate(timeout=60)
    assert not errors
    return output, process.returncode


@pytest.mark.parametrize("code", [0, 1, 3, 77])
def test_exit_code_of_the_command_is_that_of_the_container(code):
    assert finish(start(f"print(os.getpid(), os.getppid(), flush=True)\nreturn {code}")) == ("2 1\n", code)


def test_command_killed_by_a_signal_ends_the_container_as_in_a_shell():
    assert finish(start("os.kill(os.getpid(), signal.SIGKILL)")) == ("", 128 + signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command_once(number):
    work = f"""
received = []
signal.signal({number:d}, lambda *_: received.append(1))
print("ready", flush=True)
while not received:
    time.sleep(0.001)
sys.stdin.readline()
print(len(received), flush=True)
return 5
"""
    with start(work) as process:
        assert process.stdout.readline() == "ready\n"
        os.kill(first_of(process), number)
        process.stdin.write("\n")
        assert finish(process) == ("1\n", 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_signals_without_a_handler_end_the_container(number):
    # A shell without job control makes its background commands ignore some signals.
    work = f'signal.signal({number:d}, signal.SIG_DFL)\nprint("ready", flush=True)\nwhile True: signal.pause()'
    with start(work) as process:
        assert process.stdout.readline() == "ready\n"
        os.kill(first_of(process), number)
        assert finish(process)[1] == 128 + number


def test_orphans_are_reaped():
    work = """
subprocess.run(["sh", "-c", "exec >&- 2>&-; (exit 0) & (exit 0) & exit 0"], check=True)
subprocess.run(["sh", "-c", "sleep 0 >&- & echo"], stdout=-1, check=True)
while (left := sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())) != [1, 2]:
    time.sleep(0.001)
print(left)
return 0
"""
    assert finish(start(work)) == ("[1, 2]\n", 0)


def test_processes_left_behind_end_with_the_command():
    work = 'subprocess.Popen(["sleep", "1000"], start_new_session=True)\nreturn 0'
    assert finish(start(work)) == ("", 0)


def test_main_runs_in_the_same_process_below_process_1():
    code = SCRIPT.format(work="    print(os.getpid(), flush=True)\n    return 0")
    command = [*PREFIX, "sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "2\n"


def first_of(unshare):
    """Return process 1 of the namespace, as seen from here."""
    (first,) = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text().split()
    return int(first)
