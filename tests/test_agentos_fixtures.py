"""The 16 fixtures of AgentOS: each function of the SDK builds exactly the request, and reads the response.

The functions run in a real worker, and the parameters and results pass the models of the ops. Only the handlers are
replaced, by ones that return the response of the fixture.
"""

from contextlib import asynccontextmanager
from importlib import import_module
from types import SimpleNamespace

import attrs
import pytest
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import Level, OpContext, OpFamily, op

pytestmark = pytest.mark.anyio

FAMILIES = ("crypto", "http", "plist", "secrets", "services", "shell", "sql")
SKILL = '''
from sideband.skill import auth_store, crypto, http, plist, secrets, services, shell, sql, tool


def as_bytes(value):
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) and value.keys() == {"hex"} else value


@tool
async def use(family: str, verb: str, arguments: dict) -> dict:
    """Call a function of the SDK with these arguments."""
    function = getattr(globals()[family], verb)
    return {"answer": await function(**{name: as_bytes(value) for name, value in arguments.items()})}
'''


class Found(BaseModel):
    found: bool
    identifier: str | None = None
    value: dict | None = None
    source: str | None = None


class Wanted(BaseModel):
    domain: str
    item_type: str
    account: str | None = None


@op("auth_store.read", level=Level.SAFE)
async def read(params: Wanted, ctx: OpContext) -> Found:
    """Read. No package of ours provides it yet: the fixture tests the SDK of a family of others."""


SHELL = {"exit_code": 0, "stdout": "ok\n", "stderr": "", "timed_out": False}
SHELL_REST = {
    "signal": None,
    "truncated": False,
    "stdout_omitted": 0,
    "stderr_omitted": 0,
    "seconds": 0.0,
}
PAGE = {
    "status": 200,
    "ok": True,
    "url": "https://a.example/",
    "headers": {"content-type": "text/html"},
    "body": "<p>ü</p>",
    "bytes": None,
    "json": None,
    "body_length": 9,
    "content_encoding": None,
    "http_version": "HTTP/2",
    "redirects": [],
}
PROVIDERS = [
    {"service": "mail", "id": "post", "via": "post.send", "state": "ready", "reason": "", "chosen": True},
    {"service": "mail", "id": "zip", "via": "zip.mail", "state": "needs_grant", "reason": "no", "chosen": False},
]

# The op of AgentOS and the case; our op; the arguments; the request, if it differs from them; the response.
FIXTURES = [
    ("shell.run request minimal", "shell.run", {"binary": "git"}, None, None),
    (
        "shell.run request all-fields",
        "shell.run",
        {"binary": "git", "args": ["log", "-1"], "timeout": 5.0, "cwd": "repo", "input": "x", "stream": True},
        None,
        None,
    ),
    ("shell.run response ok", "shell.run", {"binary": "git"}, None, {**SHELL, **SHELL_REST}),
    (
        "shell.run response signalled",
        "shell.run",
        {"binary": "git"},
        None,
        {**SHELL, **SHELL_REST, "exit_code": -1, "signal": "SIGSEGV"},
    ),
    (
        "crypto.pbkdf2 request",
        "crypto.pbkdf2",
        {"key": {"hex": "736563726574"}, "salt": {"hex": "00ff"}, "iterations": 1, "length": 16, "algorithm": "sha1"},
        {"key": b"secret", "salt": b"\x00\xff", "iterations": 1, "length": 16, "algorithm": "sha1"},
        None,
    ),
    (
        "crypto.pbkdf2 response",
        "crypto.pbkdf2",
        {"key": {"hex": "aa"}, "salt": {"hex": "bb"}, "iterations": 1},
        {"key": b"\xaa", "salt": b"\xbb", "iterations": 1},
        b"\x00\x01\xfe\xff",
    ),
    ("secrets.read request", "secrets.read", {"name": "github"}, None, None),
    ("secrets.read response", "secrets.read", {"name": "github"}, None, "token-1"),
    (
        "plist.parse request",
        "plist.parse",
        {"data": {"hex": "62706c697374"}, "extract": {"version": 3}},
        {"data": b"bplist", "extract": {"version": 3}},
        {"version": "1.0"},
    ),
    (
        "http.request request post",
        "http.request",
        {
            "url": "https://a.example/",
            "method": "POST",
            "headers": {"x-a": "1"},
            "params": {"q": "ü"},
            "body": "text",
            "http2": False,
            "timeout": 5.0,
        },
        None,
        None,
    ),
    ("http.request response html-200", "http.request", {"url": "https://a.example/"}, None, PAGE),
    (
        "auth_store.read response found",
        "auth_store.read",
        {"domain": "a.example", "item_type": "cookies"},
        None,
        {"found": True, "identifier": "ann", "value": {"sid": "1"}, "source": "store"},
    ),
    (
        "auth_store.read response not-found",
        "auth_store.read",
        {"domain": "a.example", "item_type": "cookies", "account": "bob"},
        None,
        {"found": False, "identifier": None, "value": None, "source": None},
    ),
    (
        "sql.query request select",
        "sql.query",
        {"sql": "select :x", "db": "~/notes.db", "params": {"x": 1}, "attach": {"other": "~/b.db"}},
        None,
        None,
    ),
    (
        "sql.query response rows",
        "sql.query",
        {"sql": "select 1", "db": "a.db"},
        None,
        {"columns": ["a", "b"], "rows": [{"a": 1, "b": None}, {"a": "ü", "b": b"\xff"}], "truncated": False},
    ),
    ("list_providers response", "services.list", {"name": "mail"}, None, PROVIDERS),
]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def open_host(tmp_path):
    """Return a function that opens a host whose ops note their requests in ``requests`` and return ``responses``."""
    requests, responses = [], []

    def recording(spec):
        async def handle(params, ctx):
            requests.append((spec.name, params.model_dump(exclude_unset=True)))
            return responses[-1]

        unguarded = {"requires": None, "scope": None, "needs": {}, "lower": (), "egress": False}
        return attrs.evolve(spec, handler=handle, reconcile=None, preview=None, undo=None, **unguarded)

    families = [import_module(f"sideband_{name}.plugin").sideband_ops() for name in FAMILIES]
    families.append(OpFamily("auth_store", (read,)))
    made = [attrs.evolve(one, ops=tuple(map(recording, one.ops)), uses=()) for one in families]
    skill = tmp_path / "skills" / "probe"
    skill.mkdir(parents=True)
    skill.joinpath("SKILL.md").write_text("---\nname: probe\ndescription: Uses the SDK.\n---\n")
    skill.joinpath("tools.py").write_text(SKILL)

    @asynccontextmanager
    async def open_one():
        plugins = [
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("loader", "skills", sideband_skills.plugin),
            *(Plugin("op", one.name, SimpleNamespace(sideband_ops=lambda one=one: one)) for one in made),
        ]
        settings = {"policy": {"isolation": "none"}}
        options = {"home": tmp_path / "home", "autoload": False, "skill_dirs": [skill.parent]}
        async with Host(settings=settings, plugins=plugins, **options) as host:
            yield host, requests, responses

    return open_one


def any_answer(spec_name):
    """Return a response that the op may give, for fixtures about requests only."""
    answers = {"shell.run": {**SHELL, **SHELL_REST}, "crypto.pbkdf2": b"x", "secrets.read": "x", "http.request": PAGE}
    return answers.get(spec_name, {"columns": [], "rows": [], "truncated": False})


async def test_sdk_builds_the_requests_and_reads_the_responses_of_agentos(open_host):
    assert len(FIXTURES) == 16
    wrong = {}
    async with open_host() as (host, requests, responses):
        for case, name, arguments, request, response in FIXTURES:
            family, verb = name.split(".")
            responses.append(any_answer(name) if response is None else response)
            found = await host.call("probe.use", family=family, verb=verb, arguments=arguments)
            if requests[-1] != (name, arguments if request is None else request):
                wrong[case] = requests[-1]
            elif found["answer"] != responses[-1]:
                wrong[case] = found["answer"]
    assert wrong == {}
    assert len(requests) == 16
