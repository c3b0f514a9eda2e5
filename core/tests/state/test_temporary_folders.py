"""Temporary folders of several hosts: those of killed hosts are removed, those of running hosts are kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sideband.state import TemporaryFolder, remove_temporary_folders

PREFIX = "test-"
MAKE = """
import sys
from pathlib import Path
from sideband.state import TemporaryFolder
folder = TemporaryFolder.make(Path(sys.argv[1]), "test-")
print(folder.path, flush=True)
sys.stdin.read()
"""
REMOVE = """
import sys
from pathlib import Path
from sideband.state import remove_temporary_folders
print("ready", flush=True)
while True:
    remove_temporary_folders(Path(sys.argv[1]), "test-")
"""


def start(code, folder):
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_folder_is_private_and_removed_by_its_creator(tmp_path):
    folder = TemporaryFolder.make(tmp_path / "new", PREFIX)
    assert folder.path.parent == tmp_path / "new"
    assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "file").write_text("x")
    folder.remove()
    assert list((tmp_path / "new").iterdir()) == []


def test_folder_of_a_killed_host_is_removed_and_one_in_use_is_kept(tmp_path):
    with start(MAKE, tmp_path) as killed, start(MAKE, tmp_path) as running:
        abandoned, used = (Path(host.stdout.readline().strip()) for host in (killed, running))
        killed.kill()
        killed.wait()
        remove_temporary_folders(tmp_path, PREFIX)
        assert not abandoned.exists()
        assert used.exists()
        running.kill()


def test_folders_with_another_prefix_and_files_and_links_are_kept(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "test-file").write_text("x")
    (tmp_path / "test-link").symlink_to(tmp_path / "other")
    remove_temporary_folders(tmp_path, PREFIX)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "test-file", "test-link"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create folders of another user")
def test_folder_of_another_user_is_kept(tmp_path):
    folder = tmp_path / "test-other"
    folder.mkdir()
    os.chown(folder, 61_234, 61_234)
    remove_temporary_folders(tmp_path, PREFIX)
    assert folder.exists()


def test_new_folder_is_never_one_that_another_host_removes(tmp_path):
    with start(REMOVE, tmp_path) as other:
        assert other.stdout.readline() == "ready\n"
        for _ in range(300):
            folder = TemporaryFolder.make(tmp_path, PREFIX)
            (folder.path / "file").write_text("x")
            assert (folder.path / "file").read_text() == "x"
            folder.remove()
        other.kill()


def test_folder_that_another_host_removed_before_it_was_locked_is_not_used(tmp_path, monkeypatch):
    real, removed = os.open, []

    def open_and_remove(path, *arguments, **options):
        descriptor = real(path, *arguments, **options)
        if not removed:
            removed.append(path)
            path.rmdir()
        return descriptor

    monkeypatch.setattr(os, "open", open_and_remove)
    folder = TemporaryFolder.make(tmp_path, PREFIX)
    assert removed
    assert folder.path.exists()
    folder.remove()
