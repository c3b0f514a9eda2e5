"""SDK calls of a skill in a real worker."""

from textwrap import dedent

import pytest
import sideband_files.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

pytestmark = pytest.mark.anyio

SKILL = '''
    from sideband.skill import files, tool


    @tool
    async def keep(value: str) -> list:
        """Store a value, and inspect the result.

        Args:
            value: the value to store
        """
        before = await files.exists("a/settings.json")
        await files.write_json("a/settings.json", {"größe": value})
        await files.write_json("a/settings.json", {"größe": value}, append=False)
        try:
            await files.exists("../x")
        except Exception as error:
            refused = error.code
        found = await files.find("**/*.json")
        return [
            before,
            await files.exists("a/settings.json"),
            await files.read_json("a/settings.json"),
            await files.read_text("a/settings.json"),
            [one["name"] for one in found["entries"]],
            refused,
        ]
'''


@pytest.fixture
def skill(tmp_path):
    folder = tmp_path / "skills" / "keeper"
    folder.mkdir(parents=True)
    folder.joinpath("SKILL.md").write_text(
        "---\nname: keeper\ndescription: Keeps.\nmetadata:\n  sideband.capabilities: files:mode=read|write\n---\n"
    )
    folder.joinpath("tools.py").write_text(dedent(SKILL))
    return folder


async def test_skill_reads_and_writes_text_and_json(tmp_path, skill):
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="loader", name="skills", value=sideband_skills.plugin),
        Plugin(kind="op", name="files", value=sideband_files.plugin),
    ]
    settings = {"policy": {"isolation": "none"}, "grants": {"keeper": ["files:mode=read|write"]}}
    async with Host(
        home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False, skill_dirs=[skill.parent]
    ) as host:
        assert await host.call("keeper.keep", value="weit") == [
            False,
            True,
            {"größe": "weit"},
            '{\n  "größe": "weit"\n}\n',
            ["a/settings.json"],
            "file.refused",
        ]
