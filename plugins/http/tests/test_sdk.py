"""The skill API, called from a real worker."""

from textwrap import dedent

import pytest
import sideband_http.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

pytestmark = pytest.mark.anyio

SKILL = '''
    from sideband.skill import http, tool


    @tool
    async def visit(origin: str) -> list[int]:
        """Use a session.

        Args:
            origin: where
        """
        async with http.session(base_url=origin, cookies={"begun": "1"}, retry=1, retry_delay=0) as api:
            answers = [await api.get("/setcookie", params={"cookie": "a=1"})]
            answers.append(await api.get("/flaky?failures=1"))
            for verb in (api.head, api.options, api.post, api.put, api.patch, api.delete):
                answers.append(await verb("/echo"))
            answers.append(await api.request("PROPFIND", "/echo", headers={"X-A": "1"}))
        try:
            await api.get("/echo")
        except Exception as error:
            assert error.code == "http.session", error
        else:
            raise AssertionError("the session is still open")
        answers.append(await http.post(origin + "/echo", json={"a": None}))
        return [answer["status"] for answer in answers]
'''


@pytest.fixture
def skill(tmp_path):
    folder = tmp_path / "skills" / "visitor"
    folder.mkdir(parents=True)
    folder.joinpath("SKILL.md").write_text(
        "---\nname: visitor\ndescription: Visits.\nmetadata:\n  sideband.capabilities: http:network=loopback\n---\n"
    )
    folder.joinpath("tools.py").write_text(dedent(SKILL))
    return folder


async def test_skill_uses_a_session_as_a_context_manager(tmp_path, skill, server):
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="loader", name="skills", value=sideband_skills.plugin),
        Plugin(kind="op", name="http", value=sideband_http.plugin),
    ]
    settings = {"policy": {"isolation": "none"}, "grants": {"visitor": ["http:network=loopback"]}}
    async with Host(
        home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False, skill_dirs=[skill.parent]
    ) as host:
        assert await host.call("visitor.visit", origin=server.origin) == [200] * 10
    sent = [(one.method, one.headers.get("cookie")) for one in server.requests]
    assert sent[0] == ("GET", "begun=1")
    methods = "GET GET HEAD OPTIONS POST PUT PATCH DELETE PROPFIND"
    assert " ".join(method for method, _ in sent[1:-1]) == methods
    assert {cookie for _, cookie in sent[1:-1]} == {"begun=1; a=1"}
    assert sent[-1] == ("POST", None)
