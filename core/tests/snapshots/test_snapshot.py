import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.loading import SkillSpec
from sideband.state import StoredFile, _folders, folder_digest
from sideband.workers import _snapshots
from sideband.workers._snapshots import SnapshotFailed, snapshot


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: demo\n---\n")
    (folder / "demo.py").write_text("x = 1\n")
    (folder / "scripts" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "scripts" / "run.sh").chmod(0o755)
    (folder / "notes.txt").write_text("not listed")
    return folder


@pytest.fixture
def make_spec(source):
    def make(*files):
        files = files or ("SKILL.md", "demo.py", "scripts/run.sh")
        return SkillSpec(name="demo", key="demo", description="", source=source, files=files)

    return make


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_snapshot_contains_exactly_the_files_of_the_skill(tmp_path, source, make_spec):
    taken = snapshot(make_spec(), tmp_path / "home")
    assert taken.path == tmp_path / "home" / "skills" / taken.digest
    assert tree(taken.path) == {name: (source / name).read_bytes() for name in make_spec().files}


def test_only_the_user_can_change_files_and_they_keep_the_executable_bit(tmp_path, make_spec):
    taken = snapshot(make_spec(), tmp_path / "home")
    assert (taken.path / "demo.py").stat().st_mode & 0o777 == 0o644
    assert (taken.path / "scripts" / "run.sh").stat().st_mode & 0o777 == 0o755


def test_source_is_not_modified(tmp_path, source, make_spec):
    before = {path: (path.lstat().st_mtime_ns, path.lstat().st_mode) for path in source.rglob("*")}
    snapshot(make_spec(), tmp_path / "home")
    assert {path: (path.lstat().st_mtime_ns, path.lstat().st_mode) for path in source.rglob("*")} == before


def test_second_snapshot_reuses_the_folder(tmp_path, make_spec):
    first = snapshot(make_spec(), tmp_path / "home")
    inode = first.path.stat().st_ino
    assert snapshot(make_spec(), tmp_path / "home") == first
    assert first.path.stat().st_ino == inode
    assert len(list((tmp_path / "home" / "skills").iterdir())) == 1


@pytest.mark.parametrize("change", ["content", "name", "mode"])
def test_change_gives_another_digest(tmp_path, source, make_spec, change):
    first = snapshot(make_spec("demo.py"), tmp_path / "home")
    spec = make_spec("demo.py")
    match change:
        case "content":
            (source / "demo.py").write_text("x = 2\n")
        case "name":
            (source / "demo.py").rename(source / "other.py")
            spec = make_spec("other.py")
        case "mode":
            (source / "demo.py").chmod(0o755)
    assert snapshot(spec, tmp_path / "home").digest != first.digest


FILES = st.lists(
    st.builds(StoredFile, st.sampled_from(["a", "b", "ab", "a/b"]), st.binary(max_size=4), st.booleans()),
    unique_by=lambda file: file.path,
    max_size=3,
)


@given(FILES, FILES)
def test_digests_are_equal_only_for_equal_files(one, other):
    same = sorted(one, key=lambda file: file.path) == sorted(other, key=lambda file: file.path)
    assert (folder_digest(one) == folder_digest(other)) is same


@pytest.mark.parametrize("tampering", ["change", "add", "remove", "mode", "link"])
def test_tampered_snapshot_is_detected(tmp_path, make_spec, tampering):
    taken = snapshot(make_spec(), tmp_path / "home")
    module = taken.path / "demo.py"
    match tampering:
        case "change":
            module.chmod(0o644)
            module.write_text("x = 3\n")
        case "add":
            (taken.path / "os.py").write_text("")
        case "remove":
            module.unlink()
        case "mode":
            module.chmod(0o555)
        case "link":
            (taken.path / "more.py").symlink_to("/etc/hostname")
    with pytest.raises(SnapshotFailed) as caught:
        snapshot(make_spec(), tmp_path / "home")
    assert caught.value.code == "snapshot.tampered"
    assert "delete the folder" in caught.value.hint


def test_link_inside_the_folder_is_copied_as_a_file(tmp_path, source, make_spec):
    (source / "alias.py").symlink_to("scripts/run.sh")
    taken = snapshot(make_spec("alias.py"), tmp_path / "home")
    assert not (taken.path / "alias.py").is_symlink()
    assert (taken.path / "alias.py").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("target", ["/etc/hostname", "../secret"])
def test_link_out_of_the_folder_is_rejected(tmp_path, source, make_spec, target):
    (tmp_path / "secret").write_text("secret")
    (source / "alias.py").symlink_to(target)
    with pytest.raises(SnapshotFailed, match=r"`alias\.py`") as caught:
        snapshot(make_spec("alias.py"), tmp_path / "home")
    assert caught.value.code == "snapshot.escape"


def test_folder_replaced_by_a_link_is_not_followed(tmp_path, source, make_spec):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run.sh").write_text("secret")
    (source / "scripts").rename(source / "old")
    (source / "scripts").symlink_to(outside)
    with pytest.raises(SnapshotFailed):
        snapshot(make_spec(), tmp_path / "home")
    assert not (tmp_path / "home" / "skills").exists()


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "scripts/../../secret", ""])
def test_path_out_of_the_folder_is_rejected(tmp_path, make_spec, name):
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(SnapshotFailed) as caught:
        snapshot(make_spec(name), tmp_path / "home")
    assert caught.value.code == "snapshot.escape"


def test_pipe_is_rejected_without_blocking(tmp_path, source, make_spec):
    os.mkfifo(source / "pipe")
    with pytest.raises(SnapshotFailed, match="regular file"):
        snapshot(make_spec("pipe"), tmp_path / "home")


def test_missing_file_is_named(tmp_path, make_spec):
    with pytest.raises(SnapshotFailed, match=r"gone\.py") as caught:
        snapshot(make_spec("gone.py"), tmp_path / "home")
    assert caught.value.code == "snapshot.unreadable"


class ChangingFiles(tuple):  # noqa: SLOT001 - needs an attribute `change`
    """Two names of files. When the second is requested, `change` modifies the first, as an editor might."""

    def __iter__(self):
        first, second = super().__iter__()
        yield first
        self.change()
        yield second


def test_file_changed_during_the_copy_is_rejected(tmp_path, source, make_spec):
    files = ChangingFiles(("demo.py", "SKILL.md"))
    files.change = lambda: (source / "demo.py").write_text("x = 9\n")
    with pytest.raises(SnapshotFailed, match=r"`demo\.py`") as caught:
        snapshot(_spec_with(make_spec, files), tmp_path / "home")
    assert caught.value.code == "snapshot.changed"


def test_file_deleted_during_the_copy_is_rejected(tmp_path, source, make_spec):
    files = ChangingFiles(("demo.py", "SKILL.md"))
    files.change = (source / "demo.py").unlink
    with pytest.raises(SnapshotFailed, match=r"`demo\.py`") as caught:
        snapshot(_spec_with(make_spec, files), tmp_path / "home")
    assert caught.value.code == "snapshot.changed"


def _spec_with(make_spec, files):
    spec = make_spec()
    return SkillSpec(name=spec.name, key=spec.key, description="", source=spec.source, files=files)


def test_oversized_skill_is_rejected_before_it_is_read(tmp_path, make_spec, monkeypatch):
    monkeypatch.setattr(_snapshots, "_MAXIMUM_BYTES", 20)
    with pytest.raises(SnapshotFailed) as caught:
        snapshot(make_spec(), tmp_path / "home")
    assert caught.value.code == "snapshot.too_large"


def test_full_disk_leaves_no_files(tmp_path, make_spec, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_folders.os, "fsync", full)
    with pytest.raises(SnapshotFailed, match="No space left"):
        snapshot(make_spec(), tmp_path / "home")
    assert list((tmp_path / "home" / "skills").iterdir()) == []


def _take(source, home):
    files = ("SKILL.md", "demo.py", "scripts/run.sh")
    return snapshot(SkillSpec(name="demo", key="demo", description="", source=source, files=files), home).digest


def test_concurrent_snapshots_share_a_folder(tmp_path, source):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        digests = set(processes.map(_take, [source] * 12, [tmp_path / "home"] * 12))
    assert [path.name for path in (tmp_path / "home" / "skills").iterdir()] == [digests.pop()]
    assert not digests


FILL = """
import sys
from pathlib import Path
from sideband.state import TemporaryFolder
folder = TemporaryFolder.make(Path(sys.argv[1]))
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_abandoned_temporary_folder_is_removed_but_not_one_in_use(tmp_path, make_spec):
    skills = tmp_path / "home" / "skills"
    command = [sys.executable, "-c", FILL, str(skills)]
    with (
        Popen(command, stdin=PIPE, stdout=PIPE, text=True) as killed,
        Popen(command, stdin=PIPE, stdout=PIPE, text=True) as filling,
    ):
        abandoned, in_use = (Path(host.stdout.readline().strip()) for host in (killed, filling))
        killed.kill()
        killed.wait()
        snapshot(make_spec(), tmp_path / "home")
        assert not abandoned.exists()
        assert in_use.exists()
        filling.communicate()


def test_missing_source_is_rejected(tmp_path):
    spec = SkillSpec(name="demo", key="demo", description="", source=Path(tmp_path / "nowhere"), files=("a",))
    with pytest.raises(SnapshotFailed, match="nowhere"):
        snapshot(spec, tmp_path / "home")
