"""Work in a real git repository: find, edit, test, be refused, be killed, resume, and undo everything."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sideband_files.plugin
import sideband_shell.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

pytestmark = pytest.mark.anyio
CODER = Path(__file__).with_name("coder.py")
FILES = {
    "prices.py": "def total(price, tax):\n    return price - tax\n",
    "test_prices.py": (
        "import unittest\nfrom prices import total\n\n\nclass Tests(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total(10, 2), 12)\n"
    ),
}


def git(folder, *arguments):
    command = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def repository(tmp_path):
    folder = (tmp_path / "repository").resolve()
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_text(content)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    return folder


@pytest.fixture
def work(tmp_path, repository):
    """A function that lets an agent work on a task, and returns what it printed; ``None`` if it was killed."""

    def run(task, *kill, **variables):
        command = [sys.executable, CODER, tmp_path / "home", repository, task, *kill]
        done = subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False
        )
        if kill and done.returncode == -signal.SIGKILL:
            return None
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


async def undo_all(home, results):
    """Undo the effects of all tool calls, newest first."""
    plugins = [Plugin("op", "files", sideband_files.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
    plugins += [Plugin("op", "shell", sideband_shell.plugin)]
    async with Host(home=home, plugins=plugins, autoload=False) as host:
        for _, _, effect in reversed(results):
            if effect is not None:
                plan = await host.plan_undo(effect)
                assert all(one.error is None for one in await host.undo(plan))


async def test_task_is_done_and_undone(work, repository, tmp_path):
    done = work("fix")
    texts = [text for text, *_ in done["results"]]
    assert (done["status"], done["text"]) == ("completed", "The tests pass.")
    assert texts[0].startswith("prices.py\n1: def total(price, tax):")
    assert "FAILED" in texts[3]
    assert "OK" in texts[6]
    assert (repository / "prices.py").read_text() == FILES["prices.py"].replace("-", "+")
    assert git(repository, "status", "--porcelain") == " M prices.py\n?? docs/\n"
    await undo_all(tmp_path / "home", done["results"])
    assert git(repository, "status", "--porcelain") == ""


async def test_everything_that_a_session_changed_is_undone_in_one_step(work, repository, sideband):
    work("again")
    assert (repository / "prices.py").read_text() == "def total(price, tax):\n    return tax + price\n"
    shown = sideband("undo", "--session", "last", "--dry-run", folder=repository)
    assert shown.returncode == 0, shown.stderr
    plan = " ".join(shown.stdout.split())  # lines are wrapped
    assert "1. remove `" in plan
    assert "files.write `" in plan
    assert "planned when the steps before it are done" in plan
    assert "cannot be undone:\n  - shell." in shown.stdout
    done = sideband("undo", "--session", "last", "--yes", folder=repository)
    assert done.returncode == 0, done.stderr
    assert git(repository, "status", "--porcelain") == ""
    again = sideband("undo", "--session", "last", "--dry-run", folder=repository)
    assert "restore" not in again.stdout + again.stderr


async def test_change_that_was_undone_and_redone_is_undone_with_its_session(work, repository, sideband):
    work("fix")
    (newest, *_) = json.loads(sideband("audit", "query", "--op", "files.write", "--json").stdout)
    undone = json.loads(sideband("undo", newest["effect"], "--yes", "--json").stdout)
    redone = sideband("undo", undone["effects"][0]["id"], "--yes")
    assert (redone.returncode, git(repository, "status", "--porcelain")) == (0, " M prices.py\n?? docs/\n")
    assert sideband("undo", "--session", "last", "--yes", folder=repository).returncode == 0
    assert git(repository, "status", "--porcelain") == ""


async def test_undo_of_a_session_stops_at_the_first_failure_and_continues_later(work, repository, sideband, tmp_path):
    work("again")
    blobs, away = tmp_path / "home" / "blobs", tmp_path / "away"
    blobs.rename(away)
    stopped = sideband("undo", "--session", "last", "--yes", folder=repository)
    assert stopped.returncode != 0
    assert "failed: restore" in stopped.stdout
    assert stopped.stdout.count("done: ") == 1
    assert git(repository, "status", "--porcelain") == " M prices.py\n"
    shutil.rmtree(blobs, ignore_errors=True)
    away.rename(blobs)
    done = sideband("undo", "--session", "last", "--yes", "--json", folder=repository)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["undone_before"] == 1
    assert git(repository, "status", "--porcelain") == ""


async def test_refusal_reaches_the_model_and_nothing_is_changed(work, repository):
    done = work("refused", REFUSE="1")
    (_, refused, outside) = done["results"]
    assert "not on Fridays" in refused[0]
    assert "is outside of the folders in which you may work" in outside[0]
    assert (refused[1], outside[1], done["status"]) == (True, True, "completed")
    assert git(repository, "status", "--porcelain") == ""


async def test_interrupted_task_keeps_what_was_done_and_continues(work, repository):
    stopped = work("fix", ABORT="edit")
    assert stopped["status"] == "aborted"
    assert git(repository, "status", "--porcelain") in ("", " M prices.py\n")
    done = work("fix")
    assert done["status"] == "completed"
    assert len(done["results"]) == 7
    assert [text for text, *_ in done["results"][:4]] == [text for text, *_ in stopped["results"][:4]]


@pytest.mark.parametrize("tool", ["edit", "command"])
async def test_killed_task_is_resumed_without_a_second_change(work, repository, tmp_path, tool):
    assert work("fix", tool) is None
    done = work("fix")
    assert done["status"] == "completed"
    assert (repository / "prices.py").read_text() == FILES["prices.py"].replace("-", "+")
    assert "OK" in done["results"][6][0]
    await undo_all(tmp_path / "home", done["results"])
    assert git(repository, "status", "--porcelain") == ""
