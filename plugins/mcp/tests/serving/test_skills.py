"""What is offered of skills: their tools, and their texts as resources and prompts."""

from base64 import b64decode

import pytest
import sideband_skills.plugin
from mcp.shared.exceptions import MCPError
from sideband import Plugin
from sideband.errors import UsageError

pytestmark = pytest.mark.anyio

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
TOOLS = """
from sideband.skill import tool


@tool
async def go() -> str:
    "Go."
    return "gone"
"""


@pytest.fixture
def skills(tmp_path):
    """Two skills, one of them without tools."""
    folder = tmp_path / "skills"
    for name in ("one-skill", "other"):
        (folder / name / "references").mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Is {name}.\n---\nDo {name}.\n")
        (folder / name / "references" / "a b.md").write_text("more")
        (folder / name / "references" / "pixel.png").write_bytes(b64decode(PIXEL))
        (folder / name / "notes.txt").write_text("not offered")
    (folder / "one-skill" / "tools.py").write_text(TOOLS)
    return {"plugins": [Plugin("loader", "skills", sideband_skills.plugin)], "skill_dirs": [folder]}


async def names(client):
    return {one.name for one in (await client.list_tools()).tools}


async def uris(client):
    return {one.uri for one in (await client.list_resources()).resources}


async def test_all_skills_are_offered_by_default(serving, mode, skills):
    async with serving({"tools": None, "skills": None}, **skills) as one, one.client(mode) as client:
        assert await names(client) == {"one_skill__go"}
        assert await uris(client) == {
            f"skill://{name}/{file}"
            for name in ("one-skill", "other")
            for file in ("SKILL.md", "references/a%20b.md", "references/pixel.png")
        }


async def test_named_skill_is_offered_alone(serving, mode, skills):
    async with serving({"tools": None, "skills": ["other"]}, **skills) as one, one.client(mode) as client:
        assert await names(client) == set()
        assert [each.name for each in (await client.list_prompts()).prompts] == ["other"]
        with pytest.raises(MCPError, match="unknown prompt"):
            await client.get_prompt("one-skill")
        with pytest.raises(MCPError, match="unknown resource"):
            await client.read_resource("skill://one-skill/SKILL.md")


async def test_named_skills_and_tools_are_offered_together(serving, mode, skills):
    offer = {"tools": ["things.echo"], "skills": ["one_skill"]}
    async with serving(offer, **skills) as one, one.client(mode) as client:
        assert await names(client) == {"one_skill__go", "things__echo"}


async def test_named_tools_offer_no_texts(serving, mode, skills):
    async with serving(**skills) as one, one.client(mode) as client:
        assert await uris(client) == set()
        assert (await client.list_prompts()).prompts == []


async def test_unknown_skill_is_refused(serving, skills):
    with pytest.raises(UsageError, match="unknown skill `one-skil`"):
        async with serving({"tools": None, "skills": ["one-skil"]}, **skills):
            pass


async def test_texts_are_read(serving, mode, skills):
    async with serving({"tools": None, "skills": None}, **skills) as one, one.client(mode) as client:
        (text,) = (await client.read_resource("skill://other/references/a%20b.md")).contents
        assert (text.text, text.mime_type) == ("more", "text/markdown")
        (image,) = (await client.read_resource("skill://other/references/pixel.png")).contents
        assert (image.blob, image.mime_type) == (PIXEL, "image/png")


@pytest.mark.parametrize("file", ["notes.txt", "references/../notes.txt", "../one-skill/SKILL.md", ""])
async def test_other_files_are_not_read(serving, skills, file):
    async with serving({"tools": None, "skills": None}, **skills) as one, one.client("legacy") as client:
        with pytest.raises(MCPError, match="unknown resource"):
            await client.read_resource(f"skill://other/{file}")


async def test_link_is_not_followed(serving, skills, tmp_path):
    (tmp_path / "outside").write_text("outside")
    async with serving({"tools": None, "skills": None}, **skills) as one, one.client("legacy") as client:
        await client.list_resources()
        file = tmp_path / "skills" / "other" / "references" / "a b.md"
        file.unlink()
        file.symlink_to(tmp_path / "outside")
        with pytest.raises(MCPError, match="unreadable"):
            await client.read_resource("skill://other/references/a%20b.md")


async def test_text_that_is_too_large_is_not_read(serving, skills, tmp_path):
    (tmp_path / "skills" / "other" / "references" / "a b.md").write_text("x" * (1_048_576 + 1))
    async with serving({"tools": None, "skills": None}, **skills) as one, one.client("legacy") as client:
        with pytest.raises(MCPError, match="larger than 1,048,576 bytes"):
            await client.read_resource("skill://other/references/a%20b.md")


async def test_secrets_are_removed_from_texts(serving, skills):
    async with serving({"tools": None, "skills": None}, **skills) as one, one.client("legacy") as client:
        one.host.redactor.protect("Do other", "phrase")
        (text,) = (await client.read_resource("skill://other/SKILL.md")).contents
        (message,) = (await client.get_prompt("other")).messages
        assert "Do other" not in text.text + message.content.text
