"""The file of the skill cache: who may have written it, damage, its bounds, and several hosts."""

import json
import os
import subprocess
import sys
from binascii import crc32
from pathlib import Path
from time import time_ns

import pytest
from sideband_skills import _skill_cache
from sideband_skills._config import Config

TOOL = 'from sideband.skill import tool, http\n\n@tool\nasync def {name}(a: int = 1) -> int:\n    """Do it."""\n'
LATER = 10_000_000_000


def cache_files(home):
    return sorted((home / "cache").glob("skills-*"))


def tools(loaded):
    return [tool.full_name for skill in loaded.skills for tool in skill.tools]


@pytest.mark.usefixtures("settled")
def test_nothing_is_written_if_nothing_changed(skills, make, load_cached, home):
    make()
    load_cached(skills)
    (file,) = cache_files(home)
    before = file.stat()
    load_cached(skills)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.usefixtures("settled")
def test_loading_leaves_no_file_open(skills, make, load_cached):
    make()
    load_cached(skills)
    before = list(Path("/proc/self/fd").iterdir())
    load_cached(skills)
    assert list(Path("/proc/self/fd").iterdir()) == before


@pytest.mark.usefixtures("settled")
def test_only_the_user_can_read_the_cache(skills, make, load_cached, home):
    make()
    load_cached(skills)
    (file,) = cache_files(home)
    assert [path.stat().st_mode & 0o777 for path in (home, home / "cache", file)] == [0o700, 0o700, 0o600]


def forge(file):
    """Give the only skill in a cache a capability, as a process could that can write the file."""
    content = file.read_bytes()
    end = len(content) - _skill_cache._END.size
    offset, _ = _skill_cache._END.unpack(content[end:])
    index = json.loads(content[offset:end])
    ((path, _),) = index["skills"].items()
    skill = content[:offset].replace(b'"capabilities":[]', b'"capabilities":["shell"]')
    index["skills"][path] = [0, len(skill), crc32(skill)]
    line = json.dumps(index).encode()
    return skill, line


def write_forged(file, skill, line):
    file.write_bytes(skill + line + _skill_cache._END.pack(len(skill), crc32(line)))


def open_to_others(file):
    write_forged(file, *forge(file))
    file.chmod(0o622)


def replaced_by_a_link(file):
    write_forged(file, *forge(file))
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def replaced_by_a_pipe(file):
    file.unlink()
    os.mkfifo(file)


def replaced_by_a_folder(file):
    file.unlink()
    file.mkdir()


def with_a_changed_byte(file):
    skill, line = forge(file)
    write_forged(file, skill.replace(b"Does it.", b"Does IT."), line)


def with_a_changed_index(file):
    skill, line = forge(file)
    file.write_bytes(skill + line + _skill_cache._END.pack(len(skill), crc32(line) ^ 1))


def of_another_key(file):
    skill, line = forge(file)
    write_forged(file, skill, json.dumps({**json.loads(line), "key": "other"}).encode())


def with_another_index(file):
    skill, _ = forge(file)
    write_forged(file, skill, b'{"key": 1, "skills": []}')


def with_places_outside(file):
    skill, line = forge(file)
    index = json.loads(line)
    for path in index["skills"]:
        index["skills"][path] = [1 << 62, 1 << 62, 0]
    write_forged(file, skill, json.dumps(index).encode())


def with_negative_places(file):
    skill, line = forge(file)
    index = json.loads(line)
    for path in index["skills"]:
        index["skills"][path] = [-5, 3, 0]
    write_forged(file, skill, json.dumps(index).encode())


def rewritten(old, new):
    def damage(file):
        skill, line = forge(file)
        changed = skill.replace(old, new)
        assert changed != skill
        index = json.loads(line)
        for path in index["skills"]:
            index["skills"][path] = [0, len(changed), crc32(changed)]
        write_forged(file, changed, json.dumps(index).encode())

    return damage


DAMAGES = {
    "writable by others": open_to_others,
    "a link": replaced_by_a_link,
    "a pipe": replaced_by_a_pipe,
    "a folder": replaced_by_a_folder,
    "empty": lambda file: file.write_bytes(b""),
    "cut off": lambda file: os.truncate(file, file.stat().st_size // 2),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "a changed byte": with_a_changed_byte,
    "a changed index": with_a_changed_index,
    "another key": of_another_key,
    "another index": with_another_index,
    "places outside": with_places_outside,
    "negative places": with_negative_places,
    "an invalid capability": rewritten(b'["shell"]', b'["shell:*"]'),
    "an unknown form": rewritten(b'"form":["structure"', b'"form":["__import__"'),
    "an unknown type": rewritten(b'"integer",false', b'"os.system",false'),
    "an unknown key": rewritten(b'"plain":{', b'"plain":{"source":"/","'.replace(b',"', b",")),
    "a missing key": rewritten(b'"alone":false,', b""),
    "a wrong type": rewritten(b'"memory":null', b'"memory":"much"'),
    "deep nesting": rewritten(b'"form":[', b'"form":' + b"[" * 5_000 + b"["),
    "text that is not UTF-8": rewritten(b"\n# Text", b"\n\xff"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.usefixtures("settled")
def test_unusable_cache_is_ignored_and_written_again(skills, make, load_cached, *, opened, home, damage):
    make()
    first = load_cached(skills)
    (file,) = cache_files(home)
    damage(file)
    assert load_cached(skills) == first
    if not file.is_dir():
        opened.clear()
        assert load_cached(skills) == first
        assert opened == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.usefixtures("settled")
def test_cache_of_another_user_is_ignored(skills, make, load_cached, home):
    make()
    first = load_cached(skills)
    (file,) = cache_files(home)
    write_forged(file, *forge(file))
    os.chown(file, 65534, 65534)
    assert load_cached(skills) == first


@pytest.mark.usefixtures("settled")
def test_forgery_in_these_tests_would_be_used_if_the_file_were_that_of_the_user(skills, make, load_cached, home):
    make()
    load_cached(skills)
    (file,) = cache_files(home)
    write_forged(file, *forge(file))
    assert load_cached(skills).skills[0].capabilities == ("shell",)


@pytest.mark.usefixtures("settled")
def test_home_that_cannot_be_written_does_not_stop_loading(skills, make, load_cached, tmp_path):
    make()
    (tmp_path / "file").write_text("")
    assert tools(load_cached(skills, home=tmp_path / "file")) == ["demo.run"]


@pytest.mark.usefixtures("settled")
def test_cache_is_bounded(skills, make, load_cached, home, monkeypatch):
    for number in range(20):
        make(f"demo-{number}", text="x" * 500)
    monkeypatch.setattr(_skill_cache, "_MAXIMUM_SIZE", 10_000)
    first = load_cached(skills)
    (file,) = cache_files(home)
    assert 5_000 < file.stat().st_size < 15_000
    before = file.stat().st_ino
    assert load_cached(skills) == first
    assert file.stat().st_ino == before, "a full cache is not written at each start"


@pytest.mark.usefixtures("settled")
def test_at_most_four_versions_and_settings_are_cached(skills, make, load_cached, home):
    make()
    for number in range(6):
        load_cached(skills, limits=Config(nodes=1_000 + number))
    assert len(cache_files(home)) == 4


@pytest.mark.usefixtures("settled")
def test_other_folders_stay_cached_and_removed_ones_do_not(make, load_cached, opened, home):
    one, two, three = make("one"), make("two"), make("three")
    load_cached(one)
    load_cached(two)
    opened.clear()
    load_cached(one)
    assert opened == []
    one.rename(home / "one")
    load_cached(three)
    (file,) = cache_files(home)
    assert str(one).encode() not in file.read_bytes()
    assert str(two).encode() in file.read_bytes()
    load_cached(two)
    load_cached(three)
    assert {path.partition("/")[0] for path in opened} == {"three"}


@pytest.mark.usefixtures("settled")
def test_host_that_finds_the_cache_locked_does_not_wait(skills, make, load_cached, home):
    make()
    (home / "cache").mkdir(parents=True)
    with _skill_cache.FileLock(home / "cache" / "skills.lock") as lock:
        assert lock.try_acquire()
        load_cached(skills)
        assert cache_files(home) == []
    load_cached(skills)
    assert len(cache_files(home)) == 1


@pytest.mark.usefixtures("settled")
def test_file_of_a_host_that_was_killed_is_removed(skills, make, load_cached, home):
    make()
    (home / "cache").mkdir(parents=True)
    (home / "cache" / "skills.new").write_text("part")
    load_cached(skills)
    assert {path.name for path in (home / "cache").iterdir()} == {cache_files(home)[0].name, "skills.lock"}


HOST = """
import sys
from pathlib import Path
from time import time_ns
import anyio
from sideband.loading import SkillSources
from sideband_skills import FolderLoader, _skill_cache
_skill_cache.time_ns = lambda: time_ns() + 10_000_000_000
home, *folders = map(Path, sys.argv[1:])
for _ in range(5):
    for folder in folders:
        loaded = anyio.run(FolderLoader().load, SkillSources(folders=(folder,), home=home))
        assert len(loaded.skills) == 20 and not loaded.problems, loaded
        for skill in loaded.skills:
            assert skill.source == folder / skill.name and len(skill.tools) == 1, skill
"""


def test_several_hosts_share_the_cache(make_skill, home, tmp_path, load_cached, *, opened, monkeypatch):
    folders = [tmp_path / "skills" / name for name in ("one", "two", "three")]
    for folder in folders:
        for number in range(20):
            make_skill(f"demo-{number}", {"run.py": TOOL.format(name="run")}, parent=folder)
    command = [sys.executable, "-c", HOST, str(home)]
    hosts = [subprocess.Popen([*command, *map(str, order)]) for order in (folders, folders[::-1], folders[1:])]
    assert [host.wait() for host in hosts] == [0, 0, 0]
    monkeypatch.setattr(_skill_cache, "time_ns", lambda: time_ns() + LATER)
    for folder in folders:
        load_cached(folder)
    opened.clear()
    for folder in folders:
        assert len(load_cached(folder).skills) == 20
    assert opened == []
