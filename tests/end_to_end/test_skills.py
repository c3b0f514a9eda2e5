"""Real skills on a real host: grants, concurrency, failures and secrets."""

import asyncio
import base64
import urllib.parse
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import CallRequest, ConfigurationError, Host, Plugin
from sideband.approvals import Approval
from sideband.broker import Attempt
from sideband.loading import SkillError
from sideband.ops import OpContext, OpFailed, OpFamily, op
from sideband.workers import CallTimeout, GrantRequired, SkillFailed, SkillRefused, WorkerExited

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

SQL = "sql:path=test.db"


@pytest.fixture
def make_host(tmp_path):
    def make(*folders, **options):
        return Host(home=tmp_path / "home", skill_dirs=folders, **options)

    return make


def request(tool, grants=(), **arguments):
    return CallRequest(tool, arguments, grants=tuple(grants))


async def test_tool_receives_its_arguments_and_returns_its_result(make_host, make_skill):
    skill = make_skill(
        "adder", "from sideband.skill import tool\n@tool\nasync def add(a: int, b: int = 1) -> int:\n    return a + b\n"
    )
    async with make_host(skill) as host:
        assert await host.call("adder.add", a=2) == 3
        assert await host.call("adder.add", a="2", b="5") == 7


async def test_tool_imports_the_modules_of_its_folder_and_beside_it(make_host, make_skill):
    skill = make_skill(
        "neighbors",
        "from sideband.skill import tool\nimport shared\n@tool\nasync def root() -> str:\n    return shared.NAME\n",
    )
    (skill / "shared.py").write_text("NAME = 'shared'\n")
    scripts = skill / "scripts"
    scripts.mkdir()
    (scripts / "helper.py").write_text("import shared\nfrom more import MORE\nNAME = shared.NAME + MORE\n")
    (scripts / "more.py").write_text("MORE = ' and more'\n")
    (scripts / "json.py").write_text("raise RuntimeError('this is not the standard library')\n")
    (scripts / "tools.py").write_text(
        "from sideband.skill import tool\nimport json\nimport helper\nfrom .helper import NAME\n"
        "@tool\nasync def beside() -> list:\n    return json.loads('[1]') + [helper.NAME, NAME]\n"
    )
    async with make_host(skill) as host:
        assert await host.call("neighbors.beside") == [1, "shared and more", "shared and more"]
        assert await host.call("neighbors.root") == "shared"


@BOTH_BACKENDS
async def test_concurrent_ops_each_get_their_own_result(make_host, make_skill):
    skill = make_skill(
        "many",
        "import asyncio\nfrom sideband.skill import sql, tool\n"
        "@tool\nasync def ask(n: int) -> list:\n"
        "    async def one(i):\n"
        "        return (await sql.query('SELECT :i AS i', db='test.db', params={'i': i}))['rows'][0]['i']\n"
        "    await sql.execute('CREATE TABLE IF NOT EXISTS t (a)', db='test.db')\n"
        "    return await asyncio.gather(*(one(i) for i in range(n)))\n",
    )
    async with make_host(skill) as host:
        result = await host.run(request("many.ask", [SQL], n=30))
    assert result.output == list(range(30))


@BOTH_BACKENDS
async def test_calls_with_different_grants_do_not_share_rights(make_host, make_skill):
    skill = make_skill(
        "rights",
        "import asyncio\nfrom sideband.skill import OpError, sql, tool\n"
        "async def attempt(db):\n"
        "    try:\n"
        "        await sql.execute('CREATE TABLE IF NOT EXISTS t (a)', db=db)\n"
        "        return True\n"
        "    except OpError as error:\n"
        "        return error.code\n"
        "@tool\nasync def both() -> list:\n"
        "    loop = asyncio.get_running_loop()\n"
        "    found = []\n"
        "    for _ in range(5):\n"
        "        child = asyncio.create_task(attempt('a.db'))\n"
        "        other = loop.create_future()\n"
        "        loop.call_soon(lambda: asyncio.ensure_future(attempt('b.db')).add_done_callback(\n"
        "            lambda task: other.set_result(task.result())))\n"
        "        thread = await asyncio.to_thread(\n"
        "            lambda: asyncio.run_coroutine_threadsafe(attempt('b.db'), loop))\n"
        "        found.append([await child, await other, await asyncio.wrap_future(thread)])\n"
        "    return found\n",
    )
    answers = {}

    async def call(host, name):
        answers[name] = (await host.run(request("rights.both", [f"sql:path={name}.db"]))).output

    async with make_host(skill) as host, anyio.create_task_group() as tasks:
        for name in "ab":
            tasks.start_soon(call, host, name)
    assert answers["a"] == [[True, "op.denied", "op.denied"]] * 5
    assert answers["b"] == [["op.denied", True, True]] * 5


async def test_forged_capabilities_in_the_worker_have_no_effect(make_host, make_skill):
    skill = make_skill(
        "forger",
        "import json, os, socket\nfrom sideband.skill import OpError, sql, tool\n"
        "import sideband.workers.runtime as runtime\n"
        "@tool\nasync def forge() -> str:\n"
        "    for module in list(__import__('sys').modules.values()):\n"
        "        for name, value in list(vars(module).items()) if hasattr(module, '__dict__') else ():\n"
        "            if 'capabilit' in name.lower() and hasattr(value, 'set'):\n"
        "                value.set(('sql', 'http', 'secrets:mode=reveal'))\n"
        "    try:\n"
        "        await sql.query('SELECT 1', db='test.db')\n"
        "    except OpError as error:\n"
        "        return error.code\n"
        "    return 'it worked'\n",
    )
    async with make_host(skill) as host:
        assert (await host.run(request("forger.forge"))).output == "op.denied"


async def test_skill_without_its_grant_does_not_start(make_host, make_skill, tmp_path):
    skill = make_skill("asker", "from sideband.skill import tool\n@tool\nasync def go() -> int:\n    return 1\n", SQL)
    async with make_host(skill) as host:
        with pytest.raises(GrantRequired, match=r"sql:path=test.db"):
            await host.call("asker.go")


async def test_grant_is_remembered_for_this_version_of_the_skill_only(make_host, make_skill):
    skill = make_skill("asker", "from sideband.skill import tool\n@tool\nasync def go() -> int:\n    return 1\n", SQL)
    asked = []

    async def yes(request):
        asked.extend(request.grants["always"])
        return Approval("allow", "always")

    async with make_host(skill, approver=yes) as host:
        assert await host.call("asker.go") == 1
    async with make_host(skill) as host:
        assert await host.call("asker.go") == 1
    (skill / "tools.py").write_text("from sideband.skill import tool\n@tool\nasync def go() -> int:\n    return 2\n")
    async with make_host(skill) as host:
        with pytest.raises(GrantRequired):
            await host.call("asker.go")
    assert asked == [SQL]


async def test_policy_can_grant(make_host, make_skill):
    skill = make_skill("asker", "from sideband.skill import tool\n@tool\nasync def go() -> int:\n    return 1\n", SQL)
    async with make_host(skill, settings={"grants": {"asker": ["sql"]}}) as host:
        assert await host.call("asker.go") == 1


async def test_exception_in_a_skill_fails_the_call_and_keeps_the_worker(make_host, make_skill):
    skill = make_skill(
        "raiser",
        "from sideband.skill import tool\ncalls = 0\n"
        "@tool\nasync def go(fail: bool) -> int:\n    global calls\n    calls += 1\n"
        "    if fail:\n        raise LookupError('nothing there')\n    return calls\n",
    )
    async with make_host(skill) as host:
        with pytest.raises(SkillFailed, match="LookupError: nothing there"):
            await host.call("raiser.go", fail=True)
        assert await host.call("raiser.go", fail=False) == 2


async def test_tool_replaced_by_a_plain_function_is_refused(make_host, make_skill):
    skill = make_skill(
        "plain", "from sideband.skill import tool\n@tool\nasync def go() -> int:\n    return 1\ngo = lambda: 1\n"
    )
    async with make_host(skill) as host:
        with pytest.raises(SkillRefused, match="go"):
            await host.call("plain.go")


@BOTH_BACKENDS
async def test_crashed_worker_fails_its_call_and_the_next_call_gets_a_new_worker(make_host, make_skill):
    skill = make_skill(
        "dying",
        "import os\nfrom sideband.skill import tool\n@tool\nasync def go(die: bool) -> int:\n"
        "    if die:\n        os._exit(3)\n    return 1\n",
    )
    async with make_host(skill) as host:
        with pytest.raises(WorkerExited, match="3"):
            await host.call("dying.go", die=True)
        assert await host.call("dying.go", die=False) == 1


@BOTH_BACKENDS
async def test_timeout_of_one_call_does_not_affect_another_in_the_same_worker(make_host, make_skill):
    skill = make_skill(
        "slow",
        "import asyncio\nfrom sideband.skill import tool\n@tool\nasync def wait(seconds: float) -> str:\n"
        "    await asyncio.sleep(seconds)\n    return 'rested'\n",
    )
    outcomes = []

    async def slow(host):
        with pytest.raises(CallTimeout):
            await host.run(CallRequest("slow.wait", {"seconds": 60}, timeout=0.3))
        outcomes.append("timed out")

    async def fine(host):
        outcomes.append((await host.run(CallRequest("slow.wait", {"seconds": 0.6}, timeout=30))).output)

    async with make_host(skill) as host:
        await host.call("slow.wait", seconds=0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow, host)
            tasks.start_soon(fine, host)
    assert outcomes == ["timed out", "rested"]


async def test_output_of_a_skill_is_the_log_of_its_call(make_host, make_skill):
    skill = make_skill(
        "talker",
        "import sys\nfrom sideband.skill import tool\n@tool\nasync def go() -> None:\n"
        "    print('to out')\n    print('to err', file=sys.stderr)\n",
    )
    async with make_host(skill) as host:
        result = await host.run(request("talker.go"))
    assert [(line.stream, line.text) for line in result.logs] == [("stdout", "to out"), ("stderr", "to err")]


async def test_repeated_call_with_a_key_repeats_no_effect(make_host, make_skill):
    skill = make_skill(
        "once",
        "from sideband.skill import sql, tool\n@tool\nasync def add() -> int:\n"
        "    await sql.execute('CREATE TABLE IF NOT EXISTS t (a)', db='test.db')\n"
        "    await sql.execute('INSERT INTO t VALUES (1)', db='test.db')\n"
        "    await sql.execute('INSERT INTO t VALUES (1)', db='test.db')\n"
        "    return (await sql.query('SELECT count(*) AS n FROM t', db='test.db'))['rows'][0]['n']\n",
    )
    async with make_host(skill) as host:
        for key, rows in (("first", 2), ("first", 2), ("second", 4)):
            result = await host.run(CallRequest("once.add", grants=(SQL,), key=key))
            assert result.output == rows


async def test_calls_get_the_same_time_and_uuids_only_if_they_have_the_same_key(make_host, make_skill):
    skill = make_skill(
        "naming",
        "from sideband.skill import now, random, tool, uuid\n@tool\nasync def name() -> list:\n"
        "    return [str(now()), str(uuid()), random.random()]\n",
    )
    async with make_host(skill) as host:
        named = [(await host.run(CallRequest("naming.name", key=key))).output for key in ("a", "b", "a", None, None)]
    assert named[0] == named[2]
    for values in zip(*(named[:2] + named[3:]), strict=True):
        assert len(set(values)) == 4


@pytest.fixture
def drawing(make_skill):
    """A skill that gets a large random answer, and maybe fails."""
    return make_skill(
        "drawing",
        "from sideband.skill import sql, tool\n@tool\nasync def draw(fail: bool = False) -> str:\n"
        "    await sql.execute('CREATE TABLE IF NOT EXISTS t (a)', db='test.db')\n"
        "    found = await sql.query('SELECT hex(randomblob(30000)) AS v', db='test.db')\n"
        "    drawn = found['rows'][0]['v'][:20]\n"
        "    if fail:\n"
        "        raise ValueError(drawn)\n"
        "    return drawn\n",
    )


async def test_failed_call_with_a_key_gets_its_large_answers_again(make_host, drawing, tmp_path):
    async with make_host(drawing) as host:
        with pytest.raises(SkillFailed) as caught:
            await host.run(CallRequest("drawing.draw", {"fail": True}, grants=(SQL,), key="k"))
        result = await host.run(CallRequest("drawing.draw", grants=(SQL,), key="k"))
    assert result.output in caught.value.message
    assert list((tmp_path / "home" / "replays").iterdir()) == []


async def test_large_answers_of_the_call_of_an_agent_are_kept_until_the_agent_forgets_them(
    make_host, drawing, tmp_path
):
    """The host may die before the agent has recorded the outcome of its call, which then runs again."""
    attempt = Attempt.first("k")
    async with make_host(drawing) as host:
        await host.run(CallRequest("drawing.draw", grants=(SQL,), attempt=attempt))
        assert len(list((tmp_path / "home" / "replays").iterdir())) == 1
        await host.broker.attempts.forget(attempt)
    assert list((tmp_path / "home" / "replays").iterdir()) == []


async def test_changed_skill_neither_gets_stored_results_nor_repeats_effects(make_host, make_skill):
    code = (
        "from sideband.skill import sql, tool\n@tool\nasync def add() -> int:\n"
        "    await sql.execute('CREATE TABLE IF NOT EXISTS t (a)', db='test.db')\n"
        "    return (await sql.execute('INSERT INTO t VALUES (1)', db='test.db'))['rows_affected']\n"
    )
    skill = make_skill("changing", code)
    async with make_host(skill) as host:
        assert (await host.run(CallRequest("changing.add", grants=(SQL,), key="k"))).output == 1
    (skill / "tools.py").write_text(f"{code}# another version\n")
    async with make_host(skill) as host:
        with pytest.raises(SkillFailed, match="was already used"):
            await host.run(CallRequest("changing.add", grants=(SQL,), key="k"))
        rows = (await host.op("sql.query", {"sql": "SELECT a FROM t", "db": "test.db"}))["rows"]
    assert rows == [{"a": 1}]


async def test_principals_that_call_a_skill_with_the_same_key_each_cause_its_effects(make_host, make_skill):
    skill = make_skill(
        "counting",
        "from sideband.skill import sql, tool\n@tool\nasync def add() -> int:\n"
        "    await sql.execute('CREATE TABLE IF NOT EXISTS t (a)', db='test.db')\n"
        "    await sql.execute('INSERT INTO t VALUES (1)', db='test.db')\n"
        "    return (await sql.query('SELECT count(*) AS n FROM t', db='test.db'))['rows'][0]['n']\n",
    )
    async with make_host(skill) as host:
        for principal, rows in (("alice", 1), ("bob", 2), ("alice", 1), ("bob", 2)):
            request = CallRequest("counting.add", grants=(SQL,), key="k", principal=principal)
            assert (await host.run(request)).output == rows, "a repeated call gets the recorded answer of its read"
        assert len((await host.op("sql.query", {"sql": "SELECT a FROM t", "db": "test.db"}))["rows"]) == 2


async def test_known_secret_is_redacted_in_all_output_of_a_skill(make_host, make_skill, tmp_path):
    canary = 'cänary/"7f3a 9c51+x'
    skill = make_skill(
        "leaker",
        "import base64, json, urllib.parse\nfrom sideband.skill import progress, secrets, sql, tool\n"
        "@tool\nasync def leak(fail: bool) -> dict:\n"
        "    value = await secrets.read('canary')\n"
        "    forms = [value, urllib.parse.quote(value), base64.b64encode(value.encode()).decode(),\n"
        "             value.encode().hex(), json.dumps(value), base64.b64encode(b'x' + value.encode()).decode()]\n"
        "    for form in forms:\n"
        "        print(form)\n"
        "        await progress.report(message=form)\n"
        "        await sql.query('SELECT :v AS v', db='test.db', params={'v': form})\n"
        "    if fail:\n"
        "        raise ValueError(forms)\n"
        "    return {'forms': forms, value: 1}\n",
    )
    progress = []
    grants = (SQL, "secrets:name=canary,mode=reveal")
    async with make_host(skill) as host:
        await host.op("secrets.set", {"name": "canary", "value": canary})
        await host.op("sql.execute", {"sql": "CREATE TABLE t (a)", "db": "test.db"})
        result = await host.run(CallRequest("leaker.leak", {"fail": False}, grants=grants, on_progress=progress.append))
        with pytest.raises(SkillFailed) as caught:
            await host.run(CallRequest("leaker.leak", {"fail": True}, grants=grants))
    encoded = base64.b64encode(canary.encode()).decode()
    forms = [canary, urllib.parse.quote(canary), encoded[:-4], canary.encode().hex(), "\\u00e4nary"]
    error = caught.value
    outputs = [str(result), str(progress), str(error), str(error.traceback), str(error.as_dict())]
    files = [
        file.read_bytes().decode("utf-8", "replace")
        for file in (tmp_path / "home" / "ledger").rglob("*")
        if file.is_file()
    ]
    for text in outputs + files:
        assert not [form for form in forms if form in text]
    assert "[redacted:canary]" in str(result.output)


async def test_worker_does_not_see_the_hosts_environment_or_arguments(make_host, make_skill, monkeypatch):
    monkeypatch.setenv("CANARY_IN_ENVIRONMENT", "canary-7f3a9c51")
    skill = make_skill(
        "nosy",
        "import os, sys\nfrom sideband.skill import tool\n@tool\nasync def look() -> list:\n"
        "    return [dict(os.environ), sys.argv, sys.path]\n",
    )
    async with make_host(skill) as host:
        environment, arguments, path = await host.call("nosy.look")
    assert "canary" not in str([environment, arguments])
    assert "HOME" not in environment
    assert not [folder for folder in path if "site-packages" in folder]


@BOTH_BACKENDS
async def test_progress_reported_at_the_end_of_a_call_is_delivered(make_host, make_skill):
    skill = make_skill(
        "reporter",
        "from sideband.skill import progress, tool\n@tool\nasync def go() -> None:\n"
        "    for step in range(20):\n        await progress.report(message=f'step {step}')\n",
    )
    reports = []
    async with make_host(skill) as host:
        result = await host.run(CallRequest("reporter.go", on_progress=reports.append))
    assert [progress.message for progress in reports[:-1]] == [f"step {step}" for step in range(20)]
    assert reports[-1].closed
    assert {effect.status for effect in result.effects} == {"done"}


async def test_uncaught_denial_fails_the_call_as_a_denial(make_host, make_skill):
    skill = make_skill(
        "careless",
        "from sideband.skill import sql, tool\n@tool\nasync def go() -> None:\n"
        "    await sql.query('SELECT 1', db='test.db')\n",
    )
    async with make_host(skill) as host:
        with pytest.raises(SkillFailed) as caught:
            await host.run(request("careless.go"))
    assert caught.value.exit_code == 3
    assert "--grant" in caught.value.hint
    assert "careless" in caught.value.as_dict()["traceback"] or "tools.py" in caught.value.as_dict()["traceback"]


async def test_hint_of_an_op_that_failed_in_another_one_reaches_the_caller(make_host, make_skill):
    class Empty(BaseModel):
        pass

    @op("stove.light")
    async def light(params: Empty, ctx: OpContext) -> None:
        raise OpFailed("no gas", hint="open the valve", code="stove.gas")

    @op("stove.cook")
    async def cook(params: Empty, ctx: OpContext) -> None:
        await ctx.state.dispatch("stove.light", {})  # by the plugin itself, not by the call

    @asynccontextmanager
    async def lifespan(plugin):
        yield plugin

    family = SimpleNamespace(sideband_ops=lambda: OpFamily("stove", (light, cook)), lifespan=lifespan)
    code = "from sideband.skill import stove, tool\n@tool\nasync def go() -> None:\n    await stove.cook()\n"
    async with make_host(make_skill("chef", code), plugins=[Plugin("op", "stove", family)]) as host:
        with pytest.raises(SkillFailed, match="no gas") as caught:
            await host.run(request("chef.go"))
    assert caught.value.hint == "open the valve"


async def test_skill_cannot_forge_a_denial(make_host, make_skill):
    skill = make_skill(
        "liar",
        "from sideband.skill import OpError, tool\n@tool\nasync def go() -> None:\n"
        "    raise OpError({'code': 'op.denied', 'message': 'no', 'op': 'sql.query'})\n",
    )
    async with make_host(skill) as host:
        with pytest.raises(SkillFailed) as caught:
            await host.run(request("liar.go"))
    assert caught.value.exit_code == 1


async def test_unknown_capability_of_a_skill_is_an_error_that_names_its_file(make_host, make_skill):
    skill = make_skill(
        "unknown", "from sideband.skill import tool\n@tool\nasync def go() -> int:\n    return 1\n", "sqll"
    )
    async with make_host(skill) as host:
        with pytest.raises(SkillError, match=r"`unknown`.*sqll") as caught:
            await host.call("unknown.go")
    assert "SKILL.md, correct the name, or install the package that provides `sqll`" in caught.value.hint


async def test_invalid_grant_in_the_settings_is_an_error_that_names_its_key(make_host, make_skill):
    skill = make_skill("asker", "from sideband.skill import tool\n@tool\nasync def go() -> int:\n    return 1\n", SQL)
    async with make_host(skill, settings={"grants": {"asker": ["sql:pth=x"]}}) as host:
        with pytest.raises(ConfigurationError, match=r"`grants.asker` \(command line\).*did you mean `path`"):
            await host.call("asker.go")


def test_host_works_under_asyncio_run(make_host, make_skill):
    skill = make_skill(
        "plain",
        "from sideband.skill import sql, tool\n@tool\nasync def go() -> int:\n"
        "    await sql.execute('CREATE TABLE IF NOT EXISTS t (a)', db='test.db')\n    return 1\n",
    )

    async def main():
        async with make_host(skill) as host:
            return (await host.run(request("plain.go", [SQL]))).output

    assert asyncio.run(main()) == 1


async def test_skill_cannot_name_the_folders_that_undo_recorded(make_host, make_skill, tmp_path):
    code = (
        "from sideband.skill import files, tool\n@tool\nasync def go(path: str) -> None:\n"
        "    await files.make_folder(path, folders=['x'])\n"
    )
    grants = (f"files:path={tmp_path}/*,mode=*",)
    async with make_host(make_skill("maker", code)) as host:
        with pytest.raises(SkillFailed, match="a skill cannot name recorded folders"):
            await host.run(CallRequest("maker.go", arguments={"path": str(tmp_path / "new")}, grants=grants))
    assert not (tmp_path / "new").exists()
