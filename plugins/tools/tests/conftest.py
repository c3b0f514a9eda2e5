"""A host with these tools and a skill."""

from types import SimpleNamespace

import pytest
import sideband_files.plugin
import sideband_http.plugin
import sideband_llm.plugin
import sideband_skills.plugin
import sideband_tools.plugin
from attrs import define, field
from sideband import Plugin
from sideband.messages import Usage
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

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
async def host(sideband_host, folder):
    plugins = [
        Plugin(kind="loader", name="skills", value=sideband_skills.plugin),
        *(Plugin(kind="tool", name=name, value=getattr(sideband_tools.plugin, name)) for name in NAMES),
    ]
    async with sideband_host(*plugins, skill_dirs=[folder.parent]) as one:
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


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def grants():
    """What the plugin of the tools was granted."""
    return []


@pytest.fixture
def settings():
    """The table `[plugins.tools]`."""
    return {}


@pytest.fixture
def other_settings():
    """The tables of other plugins."""
    return {}


class Calling:
    """An agent whose model calls one tool, or several in one turn. Returns their results."""

    def __init__(self, agent, script):
        self.agent, self.script = agent, script

    async def __call__(self, name, /, **arguments):
        (result,) = await self.all((name, arguments))
        return result

    async def all(self, *calls):
        self.script.turns += [Turn(tool_calls=[*calls]), "done"]
        ran = await self.agent.invoke("go")
        assert ran.status == "completed", ran.error
        return [one for one in ran.messages if one.role == "tool"]


@pytest.fixture
def scripted_host(sideband_host, grants, settings, other_settings, credentials):
    def make(**options):
        script = Scripted([])
        plugins = [
            *(Plugin("op", name, module.plugin) for name, module in FAMILIES.items()),
            Plugin("provider", "scripted", script),
            Plugin("tool", "tools", sideband_tools.plugin),
            credentials.plugin,
        ]
        configured = {
            "agent": {"model": "scripted:test"},
            "grants": {"plugin:tools": grants},
            "plugins": {"tools": settings, **other_settings},
        }
        return sideband_host(*plugins, settings=configured, **options), script

    return make


@pytest.fixture
def calling():
    return Calling


@pytest.fixture
async def tool_call(scripted_host, work):
    host, script = scripted_host()
    async with host as opened, Agent(opened, folder=work) as agent:
        yield Calling(agent, script)


@pytest.fixture
def pdf():
    """Return a function that makes a PDF file with one page for each text."""

    def make(*texts):
        objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
        pages = []
        for text in texts:
            drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
            objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
            font = b"<< /Font << /F1 3 0 R >> >>"
            objects.append(b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources %s >>" % (len(objects), font))
            pages.append(b"%d 0 R" % len(objects))
        objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(pages), len(pages))
        data = b"%PDF-1.4\n"
        for number, one in enumerate(objects, 1):
            data += b"%d 0 obj\n%s\nendobj\n" % (number, one)
        return data + b"trailer << /Root 1 0 R >>\nstartxref\n0\n%%EOF\n"

    return make


FAMILIES = {"files": sideband_files, "http": sideband_http, "llm": sideband_llm}
