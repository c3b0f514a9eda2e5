"""Atomic file writes, also when the process is killed or the disk is full."""

import stat
import subprocess
import sys
import time

import pytest
from sideband import SidebandError
from sideband.state import PartialFile, remove_partial_files, replace_file, write_state_file

# Replaces a file repeatedly with contents of one repeated letter, and prints a line after each replacement.
WRITER = """
import sys
from pathlib import Path
from sideband.state import replace_file
for number in range(1_000_000):
    replace_file(Path(sys.argv[1]), b"ab"[number % 2 : number % 2 + 1] * 3_000_000)
    print(number, flush=True)
"""

# Fills a disk that is mounted in its own mount namespace.
FILLER = """
import sys
from pathlib import Path
from sideband.state import replace_file
folder = Path(sys.argv[1])
replace_file(folder / "kept", b"old")
for size in (3_000_000, 600_000):
    try:
        replace_file(folder / "kept", b"x" * size)
    except OSError as error:
        print(error.strerror)
print(sorted(one.name for one in folder.iterdir()), (folder / "kept").read_bytes())
"""


def names(folder):
    return sorted(one.name for one in folder.iterdir())


def test_replace_file_replaces_the_content_and_restricts_the_mode(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o666)
    replace_file(path, [b"n", b"ew"])
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(tmp_path) == ["x"]


def test_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "other").write_text("other")
    (tmp_path / "x").symlink_to("other")
    replace_file(tmp_path / "x", b"new")
    assert not (tmp_path / "x").is_symlink()
    assert (tmp_path / "other").read_text() == "other"


def test_overwrite_false_raises_if_the_file_exists(tmp_path):
    replace_file(tmp_path / "x", b"first", overwrite=False)
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "x", b"second", overwrite=False)
    assert (tmp_path / "x").read_bytes() == b"first"
    assert names(tmp_path) == ["x"]


def test_failing_pieces_leave_the_old_file(tmp_path):
    (tmp_path / "x").write_text("old")

    def pieces():
        yield b"half"
        raise LookupError

    with pytest.raises(LookupError):
        replace_file(tmp_path / "x", pieces())
    assert (tmp_path / "x").read_text() == "old"
    assert names(tmp_path) == ["x"]


def test_discarded_file_is_removed(tmp_path):
    partial = PartialFile.create(tmp_path / "part")
    partial.discard()
    assert names(tmp_path) == []
    (tmp_path / "part").symlink_to("elsewhere")
    with pytest.raises(FileExistsError):
        PartialFile.create(tmp_path / "part")


def test_write_state_file_creates_its_folder_and_raises_a_typed_error(tmp_path):
    write_state_file(tmp_path / "home" / "x", "ü")
    assert (tmp_path / "home" / "x").read_text(encoding="utf-8") == "ü"
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
    (tmp_path / "home" / "folder").mkdir()
    with pytest.raises(SidebandError) as caught:
        write_state_file(tmp_path / "home" / "folder", "")
    assert caught.value.code == "state.unwritable"
    assert names(tmp_path / "home") == ["folder", "x"]


def test_killed_writer_leaves_the_old_or_the_new_content(tmp_path):
    path = tmp_path / "x"
    for round_ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(0.007 * round_)
            process.kill()
        assert path.read_bytes() in {b"a" * 3_000_000, b"b" * 3_000_000}
    other = tmp_path / ".other.1.sideband-new"
    other.write_text("a partial file of another path")
    remove_partial_files(path)
    assert names(tmp_path) == [other.name, "x"]


def test_full_disk_leaves_the_old_file(tmp_path):
    mount = 'mount -t tmpfs -o size=512k none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", tmp_path, sys.executable, FILLER],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.count("No space left on device") == 2, done.stderr
    assert done.stdout.endswith("['kept'] b'old'\n"), done.stdout
