import os
import tracemalloc
from pathlib import Path

import pytest
from sideband.tools import ToolOutput
from sideband_tools import SkillFileUnreadable, SkillUnknown

pytestmark = pytest.mark.anyio


@pytest.fixture
def call(call):
    async def text(name, /, **arguments):
        result = await call(name, **arguments)
        return result.content if isinstance(result, ToolOutput) else result

    return text


def open_files():
    return len(list(Path("/dev/fd").iterdir()))


async def test_instructions_are_returned_without_the_frontmatter(call):
    text = await call("skill", name="greeter")
    assert text.startswith("# How to greet\n\nBe kind.\n\n---\n\nEnd.")


async def test_tools_and_files_are_listed_after_the_instructions(call):
    text = await call("skill", name="greeter")
    assert "Tools of this skill: greeter__greet" in text
    assert text.endswith("Files of this skill:\nreferences/words.md\ntools.py")


async def test_other_file_is_read(call):
    assert await call("skill", name="greeter", file="references/words.md") == "hello\n"


async def test_unknown_skill_suggests_the_closest(call):
    with pytest.raises(SkillUnknown, match=r"did you mean `greeter`") as caught:
        await call("skill", name="greter")
    assert "greeter" in caught.value.hint


async def test_missing_file_is_reported(call):
    with pytest.raises(SkillFileUnreadable, match="No such file") as caught:
        await call("skill", name="greeter", file="references/none.md")
    assert "lists the files" in caught.value.hint


@pytest.mark.parametrize(
    "file", ["../../secret.txt", "references/../../../secret.txt", "/etc/passwd", "..", ".", "references", "a\0b", "./"]
)
async def test_folders_and_paths_out_of_the_folder_are_rejected(call, file):
    with pytest.raises(SkillFileUnreadable):
        await call("skill", name="greeter", file=file)


async def test_link_to_a_file_is_not_followed(call, folder, tmp_path):
    folder.joinpath("link.md").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(SkillFileUnreadable):
        await call("skill", name="greeter", file="link.md")
    assert "link.md" not in await call("skill", name="greeter")


async def test_link_to_a_folder_is_not_followed(call, folder, tmp_path):
    folder.joinpath("linked").symlink_to(tmp_path)
    with pytest.raises(SkillFileUnreadable):
        await call("skill", name="greeter", file="linked/secret.txt")
    assert "secret.txt" not in await call("skill", name="greeter")


async def test_pipe_does_not_block(call, folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(SkillFileUnreadable, match="not a regular file"):
        await call("skill", name="greeter", file="pipe")


async def test_binary_file_is_rejected(call, folder):
    folder.joinpath("image.png").write_bytes(b"\x89PNG\0\0")
    with pytest.raises(SkillFileUnreadable, match="not a text file"):
        await call("skill", name="greeter", file="image.png")


async def test_long_file_is_truncated(call, folder):
    folder.joinpath("long.txt").write_text("ä" * 80_000)
    text = await call("skill", name="greeter", file="long.txt")
    assert len(text) < 51_000
    assert text.startswith("ää")
    assert text.endswith("[truncated here: the file has 160,000 bytes]")


async def test_huge_file_is_read_only_up_to_the_limit(call, folder):
    with folder.joinpath("huge.txt").open("w") as huge:
        huge.write("x" * 200_000)
        huge.truncate(100_000_000)
    tracemalloc.start()
    try:
        assert "100,000,000 bytes" in await call("skill", name="greeter", file="huge.txt")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


async def test_list_of_files_is_limited(call, folder):
    for number in range(300):
        folder.joinpath("references", f"{number:03}.txt").touch()
    assert (await call("skill", name="greeter")).count(".txt") <= 200


async def test_skill_without_files_has_no_file_list(call, folder):
    folder.joinpath("tools.py").unlink()
    folder.joinpath("references", "words.md").unlink()
    assert "Files" not in await call("skill", name="greeter")


async def test_reading_a_skill_leaves_no_file_open(call, folder):
    before = open_files()
    await call("skill", name="greeter")
    for file in ("references/words.md", "references", "none", "../x"):
        try:
            await call("skill", name="greeter", file=file)
        except SkillFileUnreadable:
            continue
    assert open_files() == before
