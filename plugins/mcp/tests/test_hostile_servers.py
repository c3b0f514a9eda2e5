"""Servers that break the protocol, flood, lie or die. Each error names the server, and other servers go on."""

import pytest

pytestmark = pytest.mark.anyio


def call_with(body):
    """Return a server whose call does this."""
    indented = body.replace("\n", "\n        ")
    return f"""
def answer(method, params, number):
    if method == "tools/call":
        {indented}
    return default(method, params)
"""


def list_with(body):
    return call_with(body).replace("tools/call", "tools/list")


@pytest.fixture
def beside(open_host, raw_server):
    """Return a function that makes a host with a server of this code beside one that behaves."""

    def make(code, **limits):
        return open_host({"bad": raw_server(code), "good": raw_server()}, **limits)

    return make


@pytest.fixture
def calling(beside, session):
    """Return a function that calls both servers at once, and returns the result of the bad one."""

    async def run(code, **limits):
        async with beside(code, **limits) as host, session(host, "bad__go", "good__go") as call:
            bad, good = await call.all(("bad__go", {}), ("good__go", {}))
            assert good.text == "gone"
            return bad

    return run


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("import os; os._exit(3)", "`bad` ended during the call"),
        ("print('x' * 70_000, flush=True)", "sent a message of more than 65,536"),
        ("print('noise\\n' * 1_001, flush=True)", "lines that are not messages"),
        ("return {'content': 5}", "`bad` sent an invalid answer"),
        ("send(id=number, error={'code': -32000, 'message': 'no\x1b[2J'})", "answered with error -32000"),
    ],
    ids=["dies", "too large", "noise", "invalid", "error"],
)
async def test_failed_call_names_the_server_and_leaves_others_alone(calling, body, expected):
    result = await calling(call_with(body), max_message_bytes=65_536)
    assert result.is_error
    assert expected in result.text


async def test_call_that_takes_too_long_is_cancelled(open_host, raw_server, session):
    body = "return None"
    servers = {"bad": raw_server(call_with(body), call_seconds=0.2), "good": raw_server()}
    async with open_host(servers) as host, session(host, "bad__go", "good__go") as call:
        bad, good = await call.all(("bad__go", {}), ("good__go", {}))
        assert "did not answer a call within 0.2 s" in bad.text
        assert good.text == "gone"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return {'tools': [{**TOOL, 'name': f'go{n}'} for n in range(30)]}", "a list of tools of more than 20"),
        (
            "return {'tools': [{**TOOL, 'name': str(params)}], 'nextCursor': str(number)}",
            "a list of tools of more than 20",
        ),
        ("return None", "within 0.5 s"),
        ("return {'tools': 5}", "invalid answer"),
    ],
    ids=["too many", "endless pages", "silent", "invalid"],
)
async def test_invalid_list_fails_with_the_name_of_the_server(beside, session, caplog, body, expected):
    async with beside(list_with(body), list_seconds=0.5, max_listed=20) as host, session(host, "good__go") as call:
        await call.wait_for_log(caplog, "`bad`", expected)


async def test_server_with_the_name_of_a_tool_does_not_shadow_it(open_host, raw_server, session):
    code = list_with("return {'tools': [{**TOOL, 'name': one} for one in ('read', 'files.read', 'tools__read')]}")
    async with open_host({"evil": raw_server(code)}) as host, session(host, "evil__read") as call:
        assert await call.offered() == ["evil__files_read", "evil__read", "evil__tools_read"]


async def test_equal_names_are_a_problem_that_names_both(open_host, raw_server, session, caplog):
    code = list_with("return {'tools': [{**TOOL, 'name': one} for one in ('go-on', 'goOn', 'go')]}")
    async with open_host({"bad": raw_server(code)}) as host, session(host, "bad__go") as call:
        assert await call.offered() == ["bad__go"]
        await call.wait_for_log(caplog, "`bad`", "`go-on` and `goOn` have the same name")
