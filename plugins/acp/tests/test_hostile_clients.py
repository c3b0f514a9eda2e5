"""Clients that do not follow the protocol, do not read, or leave."""

import json
import socket

import anyio
import pytest
from acp import text_block
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

HELLO = {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class Raw:
    """A client that sends what it likes."""

    def __init__(self, opened):
        self.opened, self.buffer = opened, b""
        opened.socket.setblocking(False)

    async def write(self, data):
        view = memoryview(data)
        while view:
            await anyio.wait_writable(self.opened.socket)
            view = view[self.opened.socket.send(view[:65_536]) :]

    async def send(self, **message):
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def read(self):
        """Return the next message, or ``None`` at the end."""
        while b"\n" not in self.buffer:
            await anyio.wait_readable(self.opened.socket)
            data = self.opened.socket.recv(65_536)
            if not data:
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    async def answer(self, number):
        """Return the answer to a request. Updates before it are dropped."""
        while (message := await self.read()).get("id") != number or "method" in message:
            pass
        return message

    async def ask(self, number, method, **params):
        await self.send(id=number, method=method, params=params)
        return await self.answer(number)

    async def begin(self, number, session):
        """Send a prompt whose tool waits, and return once it does."""
        self.opened.script.turns.append(Turn(tool_calls=[("things__wait", {})]))
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        await self.send(id=number, method="session/prompt", params=prompt)
        while (await self.read()).get("params", {}).get("update", {}).get("status") != "in_progress":
            pass

    async def open(self):
        """Open a session, and return its id."""
        await self.ask(0, "initialize", **HELLO)
        found = await self.ask(1, "session/new", cwd=str(self.opened.folder), mcpServers=[])
        return found["result"]["sessionId"]


@pytest.fixture
async def raw(connect):
    async with connect(raw=True, message=100_000, requests=4) as opened:
        yield Raw(opened)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no message", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": NaN}}', -32700),
        (b"[" * 50_000, -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (b'{"id": {}, "method": "initialize"}', -32600),
        (b'{"id": 1.5, "method": "initialize"}', -32600),
        (b'{"id": true, "method": "initialize"}', -32600),
        (b'{"id": 5, "method": ["initialize"]}', -32600),
        (b'{"id": 5, "method": "initialize", "params": [1]}', -32602),
        (b'{"id": 5, "method": "initialize"}', -32602),
        (b'{"id": 5, "method": "session/fork", "params": {"sessionId": "a", "cwd": "/"}}', -32601),
        (b'{"id": 5, "method": "fs/read_text_file", "params": {}}', -32601),
        (b'{"id": 5, "method": "_secret", "params": {}}', -32601),
    ],
)
async def test_message_that_is_not_a_request_is_answered_with_an_error(raw, line, code):
    await raw.write(line + b"\n")
    answer = await raw.read()
    assert answer["error"]["code"] == code
    assert (await raw.ask(9, "initialize", **HELLO))["result"]["protocolVersion"] == 1


async def test_answers_and_notifications_without_meaning_are_ignored(raw):
    for line in (
        b'{"id": 0, "result": {}}',
        b'{"id": [], "result": {}}',
        b'{"id": 77, "error": "no"}',
        b'{"method": "session/update", "params": {}}',
        b'{"method": "session/cancel", "params": {}}',
        b'{"method": "session/cancel", "params": {"sessionId": 5}}',
        b"{}",
    ):
        await raw.write(line + b"\n")
    assert (await raw.ask(9, "initialize", **HELLO))["result"]["protocolVersion"] == 1


async def test_metadata_of_a_request_cannot_replace_its_parameters(raw):
    session = await raw.open()
    for meta in ({"session_id": ["other"]}, {"self": 1}, {"prompt": [{"type": "text"}]}):
        raw.opened.script.turns.append("Hello.")
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        for name in ("_meta", "field_meta"):
            await raw.send(id=f"{meta}{name}", method="session/prompt", params={**prompt, name: meta})
            assert (await raw.answer(f"{meta}{name}"))["result"]["stopReason"] == "end_turn"
            raw.opened.script.turns.append("Hello.")


async def test_errors_about_parameters_do_not_repeat_them(raw):
    answer = await raw.ask(3, "session/new", cwd={"much": "x" * 50_000}, mcpServers=[])
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["errors"][0]["loc"] == ["cwd"]
    assert len(json.dumps(answer)) < 2_000


async def test_id_of_a_request_in_progress_is_refused(raw):
    session = await raw.open()
    await raw.begin(10, session)
    await raw.send(id=10, method="session/list", params={})
    answer = await raw.read()
    while "error" not in answer:
        answer = await raw.read()
    assert "in progress" in answer["error"]["message"]
    await raw.send(method="session/cancel", params={"sessionId": session})
    assert (await raw.answer(10))["result"]["stopReason"] == "cancelled"
    assert (await raw.ask(10, "session/list"))["result"]["sessions"][0]["sessionId"] == session


async def test_more_requests_than_allowed_are_refused(raw):
    await raw.open()
    sessions = []
    for number in range(4):
        found = await raw.ask(10 + number, "session/new", cwd=str(raw.opened.folder), mcpServers=[])
        sessions.append(found["result"]["sessionId"])
    for number, session in enumerate(sessions):
        await raw.begin(20 + number, session)
    assert "more than 4 requests" in (await raw.ask(30, "session/list"))["error"]["message"]
    await raw.send(method="session/cancel", params={"sessionId": sessions[0]})
    assert (await raw.answer(20))["result"]["stopReason"] == "cancelled"
    assert "result" in await raw.ask(31, "session/list")


async def test_answer_to_a_new_session_is_sent_before_its_updates(raw):
    await raw.ask(0, "initialize", **HELLO)
    await raw.send(id=1, method="session/new", params={"cwd": str(raw.opened.folder), "mcpServers": []})
    first, second = await raw.read(), await raw.read()
    assert first["id"] == 1
    assert second["params"]["update"]["sessionUpdate"] == "available_commands_update"


async def test_half_of_a_character_is_replaced(raw):
    session = await raw.open()
    raw.opened.script.turns.append("Hello.")
    prompt = [{"type": "text", "text": "a \ud800 b"}]
    answer = await raw.ask(10, "session/prompt", sessionId=session, prompt=prompt)
    assert answer["result"]["stopReason"] == "end_turn"
    assert raw.opened.script.requests[-1].messages[-1].text == "a \ufffd b"


async def test_client_that_closes_its_end_and_does_not_read_ends_too(connect, script):
    async with connect(raw=True, seconds=0.1) as opened:
        raw = Raw(opened)
        session = await raw.open()
        script.turns.append("x" * 2_000_000)
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        await raw.send(id=10, method="session/prompt", params=prompt)
        await raw.read()
        opened.socket.shutdown(socket.SHUT_WR)
        await opened.served.wait()


async def test_message_that_is_too_long_ends_the_connection(raw, caplog):
    await raw.ask(0, "initialize", **HELLO)
    await raw.write(b"x" * 101_000)
    await raw.opened.served.wait()
    assert "more than 100,000 bytes" in caplog.text


async def test_end_of_the_input_cancels_the_prompt_and_answers_it(raw):
    session = await raw.open()
    await raw.begin(10, session)
    raw.opened.socket.shutdown(socket.SHUT_WR)
    assert (await raw.answer(10))["result"]["stopReason"] == "cancelled"
    await raw.opened.served.wait()


async def test_requests_before_the_end_of_the_input_are_answered(raw):
    await raw.send(id=0, method="initialize", params=HELLO)
    raw.opened.socket.shutdown(socket.SHUT_WR)
    assert (await raw.read())["result"]["protocolVersion"] == 1
    await raw.opened.served.wait()


async def test_client_that_leaves_ends_the_connection_and_its_session_is_stored(connect):
    async with connect(raw=True) as opened:
        raw = Raw(opened)
        session = await raw.open()
        await raw.begin(10, session)
        opened.socket.close()
        await opened.served.wait()
    async with connect() as editor:
        await editor.agent.load_session(cwd=str(editor.folder), session_id=session, mcp_servers=[])
        assert editor.user.text("user_message_chunk") == "go"
        assert [one.status for one in editor.user.of("tool_call")] == ["failed"]


async def test_client_that_does_not_read_loses_its_session_and_not_the_memory(connect, script, caplog):
    async with connect(raw=True, waiting=200_000) as opened:
        raw = Raw(opened)
        session = await raw.open()
        script.turns += [*[Turn(text="x" * 200_000, tool_calls=[("things__echo", {"text": "a"})])] * 5, "done"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        await raw.send(id=10, method="session/prompt", params=prompt)
        while "does not read" not in caplog.text:  # noqa: ASYNC110  nothing announces it
            await anyio.sleep(0.01)
        assert (await raw.ask(11, "session/prompt", **prompt))["error"]["code"] == -32002
        opened.socket.close()


async def test_client_that_reads_slowly_gets_everything(connect, script):
    async with connect() as editor:
        script.turns += [Turn(text="y" * 50_000, tool_calls=[("things__echo", {"text": "z" * 30_000})]), "done"]
        await editor.agent.prompt(session_id=editor.session, prompt=[text_block("go")])
        assert editor.user.text() == "y" * 50_000 + "done"
