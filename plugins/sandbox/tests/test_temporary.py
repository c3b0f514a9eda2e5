"""Temporary folders of programs and probes, left behind by killed hosts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLED = """
import os, signal, sys
from sideband_sandbox._programs._process import _make_folder, own_folder
temporary = _make_folder(int(sys.argv[1]) if sys.argv[1] else None)
own = own_folder(temporary)
(own / "file").write_text("x")
print(own, own.stat().st_uid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
REMOVES = """
from sideband_sandbox._machine._temporary import remove_leftovers
remove_leftovers("sideband-command-")
"""


ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")


@pytest.mark.parametrize("user", ["", pytest.param("1879048192", marks=ONLY_ROOT)])
def test_folder_of_a_program_is_removed_after_its_host_was_killed_whatever_its_user(tmp_path, user):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", KILLED, user]
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    own, owner = killed.stdout.split()
    assert owner == (user or str(os.geteuid()))
    assert Path(own).exists()
    subprocess.run([sys.executable, "-c", REMOVES], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


FAILS = """
from sideband_sandbox._programs._process import _make_folder
try:
    _make_folder(1879048192)
except OSError:
    print("refused")
"""


def test_folder_for_a_user_that_does_not_exist_in_the_container_is_not_left_behind(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", FAILS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"
    assert list(tmp_path.iterdir()) == []
