import os
import socket

import pytest
from sideband_skills._config import Config


def test_hidden_compiled_and_generated_files_are_excluded(load_one):
    names = ("b.py", "a/x.txt", ".env", ".git/config", "__pycache__/b.pyc", "old.pyc", "run.sh", "sideband_sdk/http.py")
    assert load_one(files=dict.fromkeys(names, "")).files == ("SKILL.md", "a/x.txt", "b.py", "run.sh")


@pytest.mark.parametrize("target", ["/etc/hostname", "../secret.txt", "nowhere", "..", "/"])
def test_link_out_of_the_folder_is_skipped_with_a_warning(skills, make_skill, load, codes, target):
    (skills / "secret.txt").write_text("secret")
    folder = make_skill()
    (folder / "link").symlink_to(target)
    (skill,) = load(folder).skills
    assert skill.files == ("SKILL.md",)
    assert codes(skill.problems) == ["files.link"]
    assert "`link`" in skill.problems[0].reason


def test_link_to_a_file_of_the_same_folder_is_included(make_skill, load):
    folder = make_skill(files={"a.txt": "a"})
    (folder / "link.txt").symlink_to("a.txt")
    assert load(folder).skills[0].files == ("SKILL.md", "a.txt", "link.txt")


def test_manifest_that_links_out_of_the_folder_is_not_read(tmp_path, make_skill, load, codes):
    (tmp_path / "secret.md").write_text("---\nname: secret\n---\n")
    folder = make_skill(manifest=None)
    (folder / "SKILL.md").symlink_to(tmp_path / "secret.md")
    loaded = load(folder)
    assert loaded.skills == ()
    assert codes(loaded.problems) == ["files.link", "manifest.unreadable"]


def test_readme_that_links_out_of_the_folder_is_not_read(tmp_path, make_skill, load):
    (tmp_path / "secret.md").write_text("---\nid: secret\n---\n")
    folder = make_skill(manifest=None)
    (folder / "readme.md").symlink_to(tmp_path / "secret.md")
    assert load(folder).skills == ()


def test_pipes_and_sockets_are_skipped_without_blocking(make_skill, load, codes):
    folder = make_skill()
    os.mkfifo(folder / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        (skill,) = load(folder).skills
    assert skill.files == ("SKILL.md",)
    assert codes(skill.problems) == ["files.special", "files.special"]


def test_oversized_file_is_skipped(make_skill, load, codes):
    folder = make_skill()
    with (folder / "model.bin").open("wb") as stream:
        stream.truncate((16 << 20) + 1)
    (skill,) = load(folder).skills
    assert codes(skill.problems) == ["files.large"]


def test_deeply_nested_folder_is_skipped(load_one, codes):
    skill = load_one(files={"/".join(["d"] * 20) + "/x.txt": ""})
    assert codes(skill.problems) == ["files.deep"]


def test_skill_with_too_many_files_does_not_load(make_skill, load, codes):
    loaded = load(make_skill(files={f"{number}.txt": "" for number in range(4)}), limits=Config(files=3))
    assert loaded.skills == ()
    assert codes(loaded.problems) == ["files.many"]


def test_skill_with_too_many_bytes_does_not_load(make_skill, load, codes):
    folder = make_skill()
    for number in range(5):
        with (folder / f"{number}.bin").open("wb") as stream:
            stream.truncate(15 << 20)
    assert codes(load(folder).problems) == ["files.many"]


def test_file_with_an_unprintable_name_is_skipped(make_skill, load, codes):
    folder = make_skill()
    (folder / "two\nlines.py").write_text("")
    (folder / os.fsdecode(b"\xff.py")).write_text("")
    (skill,) = load(folder).skills
    assert skill.files == ("SKILL.md",)
    assert codes(skill.problems) == ["files.name", "files.name"]


def test_oversized_python_file_is_not_parsed(load_one, codes):
    skill = load_one(files={"big.py": "#" * ((1 << 20) + 1)})
    assert codes(skill.problems) == ["files.text"]
    assert "big.py" in skill.files


def test_loading_does_not_modify_the_source(make_skill, load):
    folder = make_skill(files={"run.py": "x = 1\n"})
    before = {path: path.lstat().st_mtime_ns for path in [folder, *folder.rglob("*")]}
    load(folder)
    assert {path: path.lstat().st_mtime_ns for path in [folder, *folder.rglob("*")]} == before
