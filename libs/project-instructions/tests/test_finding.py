"""Which files count, in which order, and what is never read."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sideband_project_instructions import MAX_SIZE, count_invisible, find_instructions, read_file, visible
from sideband_project_instructions._imports import named_files


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "deeper/still").mkdir(parents=True)
    return folder


@pytest.fixture
def write(repository):
    def write(name, content="Be kind."):
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def names(*found, **words):
    return [file.name for file in find_instructions(*found, **words)]


def test_files_up_to_the_root_of_the_repository_are_found_nearest_first(repository, write):
    (repository.parent / "AGENTS.md").write_text("not mine")
    write("AGENTS.md")
    write("deeper/still/CLAUDE.md")
    assert names(repository / "deeper/still") == ["deeper/still/CLAUDE.md", "AGENTS.md"]
    assert names(repository / "deeper") == ["AGENTS.md"]


def test_without_a_repository_only_the_folder_itself_is_searched(tmp_path):
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    (tmp_path / "deeper").mkdir()
    assert names(tmp_path) == ["AGENTS.md"]
    assert names(tmp_path / "deeper") == []
    assert names(tmp_path / "deeper", project=tmp_path) == ["AGENTS.md"]
    assert names(None, tmp_path) == ["AGENTS.md"]
    assert names(None) == []


def test_first_file_of_a_folder_counts(repository, write):
    write(".cursor/rules/style.mdc", "---\nalwaysApply: true\n---\nrule")
    assert names(repository) == [".cursor/rules/style.mdc"]
    for name in (".cursorrules", "CLAUDE.md", "AGENTS.md"):
        write(name, name)
        assert names(repository) == [name]


@pytest.mark.parametrize("text", ["See @AGENTS.md.\nAnd more.", "@./AGENTS.md"])
def test_file_that_names_an_earlier_one_counts_with_it(repository, write, text):
    write("AGENTS.md")
    write("CLAUDE.md", text)
    assert names(repository) == ["CLAUDE.md", "AGENTS.md"]
    assert [file.importer for file in find_instructions(repository)] == ["", "CLAUDE.md"]


def test_only_rules_for_all_tasks_are_used_without_their_front_matter(repository, write):
    write(".cursor/rules/b.mdc", "---\ndescription: x\nalwaysApply: true\n---\n\nBe brief.\n")
    write(".cursor/rules/a.mdc", "---\nglobs: *.py\nalwaysApply: false\n---\nUse types.")
    write(".cursor/rules/c.md", "No front matter.")
    (found,) = find_instructions(repository)
    assert (found.name, found.text) == (".cursor/rules/b.mdc", "Be brief.")


def test_named_files_follow_their_file_and_appear_once(repository, write):
    write("CLAUDE.md", "@docs/a.md and @docs/a.md, but not `@docs/c.md`\n```\n@docs/c.md\n```\n@docs/my\\ file.md")
    write("docs/a.md", "@b.md @../CLAUDE.md")
    for name in ("docs/b.md", "docs/c.md", "docs/my file.md"):
        write(name)
    assert names(repository) == ["CLAUDE.md", "docs/a.md", "docs/b.md", "docs/my file.md"]


def test_chain_of_named_files_ends(repository, write):
    write("AGENTS.md", "@1.md")
    for number in range(1, 9):
        write(f"{number}.md", f"@{number + 1}.md")
    *used, last = find_instructions(repository)
    assert [file.name for file in used] == ["AGENTS.md", *(f"{number}.md" for number in range(1, 6))]
    assert "more than 5" in last.problem


def test_file_outside_of_the_repository_and_hidden_one_are_not_read(repository, write, tmp_path):
    (tmp_path / "secret.md").write_text("the launch codes")
    write("AGENTS.md", f"@../secret.md @{tmp_path}/secret.md @.env @nothing.md @ada")
    write(".env", "KEY=1")
    agents, *others = find_instructions(repository)
    assert agents.problem == ""
    problems = {file.problem for file in others}
    assert problems == {"outside of the project", "a hidden file"}
    assert not any(file.content for file in others)


@pytest.mark.parametrize("link", ["AGENTS.md", "docs"])
def test_link_out_of_the_repository_is_not_followed(repository, write, tmp_path, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("the launch codes")
    if link == "docs":
        write("AGENTS.md", "@docs/a.md")
        (repository / link).symlink_to(outside)
    else:
        (repository / link).symlink_to(outside / "a.md")
    found = find_instructions(repository)
    assert "launch" not in "".join(file.text for file in found)
    assert found[-1].problem == "it leads out of its folder"


@pytest.mark.parametrize("link", ["AGENTS.md", "notes.md"])
@pytest.mark.parametrize("hidden", [".env", ".git/config", ".claude/.key"])
def test_link_to_a_hidden_file_is_not_followed(repository, write, link, hidden):
    write("AGENTS.md", "@notes.md")
    write(hidden, "KEY=1")
    (repository / link).unlink(missing_ok=True)
    (repository / link).symlink_to(hidden)
    found = find_instructions(repository)
    assert "KEY" not in "".join(file.text for file in found)
    assert found[-1].problem == "it leads to a hidden file"


@pytest.mark.parametrize("target", [".claude/AGENTS.md", ".cursorrules"])
def test_link_from_one_instruction_file_to_another_is_followed(repository, write, target):
    write(target, "Be kind.")
    (repository / "AGENTS.md").symlink_to(target)
    assert [file.text for file in find_instructions(repository)] == ["Be kind."]


def test_linked_folder_of_rules_outside_is_not_listed(repository, tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/a.md").write_text("---\nalwaysApply: true\n---\nthe launch codes")
    (repository / ".cursor").mkdir()
    (repository / ".cursor/rules").symlink_to(tmp_path / "rules")
    assert find_instructions(repository) == []


@pytest.mark.parametrize(
    ("content", "problem"), [(b"x" * (MAX_SIZE + 1), "larger than 1 MiB"), (b"a\0b", "not a text")]
)
def test_huge_file_and_binary_file_are_not_used(repository, write, content, problem):
    write("AGENTS.md", content)
    (file,) = find_instructions(repository)
    assert (file.problem, file.content) == (problem, b"")


def test_pipe_is_not_opened(repository):
    os.mkfifo(repository / "AGENTS.md")
    (file,) = find_instructions(repository)
    assert file.problem == "not a regular file"


def test_trust_in_a_plain_folder_covers_its_own_files_and_what_they_name(tmp_path):
    deeper = tmp_path / "deeper"
    deeper.mkdir()
    (tmp_path / "AGENTS.md").write_text("@deeper/named.md")
    for name in ("AGENTS.md", "named.md"):
        (deeper / name).write_text("Be kind.")

    def belonging():
        return {file.name: file.in_project for file in find_instructions(deeper, tmp_path)}

    assert belonging() == {"deeper/AGENTS.md": False, "AGENTS.md": True, "deeper/named.md": True}
    (tmp_path / "sideband.toml").touch()
    assert belonging() == {"deeper/AGENTS.md": True, "AGENTS.md": True, "deeper/named.md": True}


def test_number_of_files_is_limited(repository, write):
    text = " ".join(f"@../{'x/../' * number}secret.md @docs/{number}.md" for number in range(200))
    write("AGENTS.md", text)
    (repository.parent / "secret.md").touch()
    for number in range(200):
        write(f"docs/{number}.md")
    assert len(find_instructions(repository)) <= 101


def test_number_of_files_that_several_name_is_limited(repository, write):
    write("AGENTS.md", "@a.md @b.md")
    for letter in "ab":
        write(f"{letter}.md", " ".join(f"@docs/{letter}{number}.md" for number in range(80)))
        for number in range(80):
            write(f"docs/{letter}{number}.md")
    assert len(find_instructions(repository)) == 100


def test_number_of_rules_is_limited(repository, write):
    for number in range(60):
        write(f".cursor/rules/{number}.md", "---\nalwaysApply: true\n---\nBe kind.")
    assert len(find_instructions(repository)) == 50


def test_of_a_file_that_is_too_long_no_more_is_read_than_shows_it(repository, write):
    write("AGENTS.md", "x" * 100)
    assert read_file(repository, "AGENTS.md", 10).content == b"x" * 11


def test_selectors_that_no_font_uses_are_removed():
    assert visible("be\U000e0100\U000e01ef kind") == "be kind"


def test_only_files_of_the_trusted_project_belong_to_it(repository, write, tmp_path):
    def belonging(folder, project):
        return {
            file.path.relative_to(tmp_path).as_posix(): file.in_project for file in find_instructions(folder, project)
        }

    write("AGENTS.md")
    write("deeper/AGENTS.md", "@docs.md @../other.md")
    write("deeper/docs.md")
    write("other.md")
    assert belonging(repository / "deeper", repository / "deeper") == {
        "repository/deeper/AGENTS.md": True,
        "repository/deeper/docs.md": True,
        "repository/other.md": False,
        "repository/AGENTS.md": False,
    }
    # a repository within a trusted folder may be another's
    (tmp_path / "AGENTS.md").write_text("mine")
    assert belonging(repository, tmp_path) == {"repository/AGENTS.md": False, "AGENTS.md": True}
    # what a link leads to counts
    write("deeper/AGENTS.md").unlink()
    (repository / "deeper/AGENTS.md").symlink_to("../other.md")
    assert belonging(repository / "deeper", repository / "deeper")["repository/deeper/AGENTS.md"] is False


@given(st.text(alphabet="@`~\n a./\\", max_size=60))
@example("@\\ ")
def test_names_are_read_from_any_text(text):
    assert all(name.strip() for name in named_files(text))


@given(st.text(max_size=40))
def test_counted_characters_are_those_that_are_removed(text):
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    assert len(lines) - len(visible(text)) == count_invisible(text)


def test_folder_is_compared_after_links(repository, write, tmp_path):
    write("AGENTS.md")
    (tmp_path / "link").symlink_to(repository)
    (file,) = find_instructions(Path(tmp_path / "link"), tmp_path / "link")
    assert file.in_project
    assert file.path == repository / "AGENTS.md"
