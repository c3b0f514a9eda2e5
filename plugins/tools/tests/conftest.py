"""A host with these tools and a skill."""

from types import SimpleNamespace

import pytest
import sideband_skills.plugin
import sideband_store_sqlite.plugin
import sideband_tools.plugin
from attrs import define, field
from sideband import Host, Plugin
from sideband.messages import Usage

TOOLS = '''
from sideband.skill import tool


@tool
async def greet(name: str) -> str:
    """Greet.

    Args:
        name: the person to greet
    """
    return name
'''


@define
class Context:
    """The part of ``ToolContext`` that these tools use."""

    known: tuple = ()
    outputs: dict = field(factory=dict)
    result: object = None
    spawned: list = field(factory=list)

    async def skills(self):
        return self.known

    async def output(self, handle):
        if handle not in self.outputs:
            raise LookupError(f"no result `{handle}`")
        return self.outputs[handle]

    async def spawn_child(self, prompt, *, tools=None, share=0.5):
        self.spawned.append((prompt, tools, share))
        return self.result


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def ended():
    def child(status="completed", text="done", **usage):
        return SimpleNamespace(status=status, text=text, usage=Usage(**usage))

    return child


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "skills" / "greeter"
    folder.joinpath("references").mkdir(parents=True)
    folder.joinpath("SKILL.md").write_text(
        "---\nname: greeter\ndescription: Greets.\n---\n\n# How to greet\n\nBe kind.\n\n---\n\nEnd.\n"
    )
    folder.joinpath("tools.py").write_text(TOOLS)
    folder.joinpath("references", "words.md").write_text("hello\n")
    folder.joinpath(".hidden").write_text("x")
    tmp_path.joinpath("secret.txt").write_text("the secret")
    return folder


@pytest.fixture
async def host(tmp_path, folder):
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="loader", name="skills", value=sideband_skills.plugin),
        *(Plugin(kind="tool", name=name, value=getattr(sideband_tools.plugin, name)) for name in NAMES),
    ]
    async with Host(home=tmp_path / "home", plugins=plugins, autoload=False, skill_dirs=[folder.parent]) as one:
        yield one


@pytest.fixture
async def ctx(host):
    return Context(await host.tools.skills())


@pytest.fixture
async def call(host, ctx):
    view = await host.tools.view()

    async def run(name, /, **arguments):
        one = view.get(name)
        return await one.run(one.validate(arguments), ctx)

    return run


NAMES = ("output", "skill", "subagent")
