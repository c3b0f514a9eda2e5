"""Sessions in pi's format: an import followed by an export restores the original file."""

import json

import pytest
from sideband.messages import AssistantMessage, ToolCallPart, UserMessage
from sideband_agent.sessions import (
    CustomMessageEntry,
    ForeignEntry,
    MessageEntry,
    SessionUnreadable,
)

pytestmark = pytest.mark.anyio

TIME = "2026-01-02T03:04:05.678Z"
HEADER = {"type": "session", "version": 3, "id": "4c1d-uuid", "timestamp": TIME, "cwd": "/tmp/x", "parentSession": "/p"}
COST = {"input": 0.5, "output": 0.25, "cacheRead": 0, "cacheWrite": 0, "total": 0.75}
USAGE = {"input": 10, "output": 5, "cacheRead": 2, "cacheWrite": 1, "totalTokens": 18, "cost": COST}
SIGNED = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
HIDDEN = {"type": "thinking", "thinking": "", "thinkingSignature": "opaque", "redacted": True}
CALL = {"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {"command": "ls", "timeout": None}}
ASSISTANT = {
    "role": "assistant",
    "content": [SIGNED, HIDDEN, {"type": "text", "text": "ok", "textSignature": "ts"}, CALL],
    "api": "anthropic-messages",
    "provider": "anthropic",
    "model": "claude-x",
    "usage": USAGE,
    "stopReason": "toolUse",
    "timestamp": 1,
}
RESULT = {
    "role": "toolResult",
    "toolCallId": "call_1",
    "toolName": "bash",
    "content": [{"type": "text", "text": "a.txt"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}],
    "details": {"truncation": None},
    "isError": False,
    "timestamp": 2,
}
SHELL = {
    "role": "bashExecution",
    "command": "make",
    "output": "broken",
    "exitCode": 2,
    "cancelled": False,
    "truncated": False,
    "timestamp": 3,
}
CUSTOM = {"role": "custom", "customType": "ext", "content": "note", "display": False, "details": [1], "timestamp": 4}


def message(entry, parent, content):
    return {"type": "message", "id": entry, "parentId": parent, "timestamp": TIME, "message": content}


def line(kind, entry, parent, **fields):
    return {"type": kind, "id": entry, "parentId": parent, "timestamp": TIME, **fields}


WHOLE = [
    HEADER,
    line("model_change", "00000001", None, provider="anthropic", modelId="claude-x"),
    line("thinking_level_change", "00000002", "00000001", thinkingLevel="xhigh"),
    message("00000003", "00000002", {"role": "user", "content": "hello", "timestamp": 1767323045678}),
    message("00000004", "00000003", ASSISTANT),
    message("00000005", "00000004", RESULT),
    message("00000006", "00000005", SHELL),
    message("00000007", "00000006", {**SHELL, "excludeFromContext": True}),
    message("00000008", "00000007", CUSTOM),
    line("custom", "00000009", "00000008", customType="ext", data={"n": 1}),
    line("custom", "0000000a", "00000009", customType="ext"),
    line("custom_message", "0000000b", "0000000a", customType="ext", content="shown", display=True, details={"d": 1}),
    line("session_info", "0000000c", "0000000b", name="  a name "),
    line("label", "0000000d", "0000000c", targetId="00000003", label="here"),
    line("label", "0000000e", "0000000d", targetId="00000004"),
    line("branch_summary", "0000000f", "0000000e", fromId="root", summary="went", details={"x": 1}, fromHook=True),
    line("hologram", "00000010", "0000000f", light=[1, None, {"deep": True}]),
    message("00000011", "00000010", {"role": "user", "content": [{"type": "smell", "rose": 1}], "timestamp": 5}),
    message("00000012", "00000011", {**ASSISTANT, "stopReason": "error", "errorMessage": "boom", "content": []}),
]
COMPACTED = [
    line(
        "compaction",
        "00000013",
        "00000012",
        summary="sum",
        firstKeptEntryId="00000006",
        tokensBefore=99,
        details={"readFiles": ["a"], "modifiedFiles": ["b"]},
    ),
    line(
        "compaction", "00000014", "00000013", summary="sum2", firstKeptEntryId="00000008", tokensBefore=7, details=[1]
    ),
]


@pytest.fixture
def take(sessions):
    """Return a function that imports lines, and returns the tree and the notices."""

    async def take(lines):
        info, notices = await sessions.import_([json.dumps(one) + "\n" for one in lines])
        return await sessions.read(info.id), notices

    return take


async def test_import_and_export_restore_every_line(take, sessions):
    tree, _ = await take([*WHOLE, *COMPACTED])
    again = [json.loads(one) for one in await sessions.export(tree.id, format="pi")]
    assert again == [*WHOLE, *COMPACTED]


async def test_fork_and_our_own_format_preserve_every_line(take, sessions):
    tree, _ = await take([*WHOLE, *COMPACTED])
    async with await sessions.fork(tree.id) as fork:
        pass
    forked = [json.loads(one) for one in await sessions.export(fork.id, format="pi")]
    assert forked[1 : len(WHOLE) + 2] == [*WHOLE, *COMPACTED][1:]
    info, _ = await sessions.import_(list(await sessions.export(tree.id)))
    assert [json.loads(one) for one in await sessions.export(info.id, format="pi")] == [*WHOLE, *COMPACTED]


async def test_models_see_the_same_messages_as_in_pi(take):
    tree, notices = await take(WHOLE)
    context = tree.context()
    hello, answer, result, shell, custom, shown, branch = context.messages
    assert hello == UserMessage(content="hello")
    assert isinstance(answer, AssistantMessage)
    assert (answer.model, answer.stop, answer.text) == ("anthropic:claude-x", "tool_calls", "ok")
    assert answer.tool_calls == (ToolCallPart(id="call_1", name="bash", arguments={"command": "ls", "timeout": None}),)
    assert (answer.content[0].signature, answer.content[1].redacted) == ("sig", True)
    assert (answer.usage.context, answer.usage.cost) == (18, 0.75)
    assert (result.call, result.tool, result.text, result.is_error) == ("call_1", "bash", "a.txt", False)
    assert result.content[1].media_type == "image/png"
    assert all(part in shell.text for part in ("make", "broken", "exit code 2"))
    assert (custom.text, custom.source, shown.text) == ("note", "ext", "shown")
    assert "went" in branch.text
    assert (context.model, context.thinking) == ("anthropic:claude-x", "xhigh")
    assert tree.labels == {"00000003": "here"}
    assert tree.name == "  a name "
    assert str(tree.folder) == "/tmp/x"
    assert [notice.split(":")[0] for notice in notices] == [
        "line 17 is stored but hidden from models",
        "line 18 is stored but hidden from models",
    ]


async def test_last_compaction_applies(take):
    tree, _ = await take([*WHOLE, *COMPACTED])
    summary, custom, *_ = tree.context().messages
    assert ("sum2" in summary.text, custom.text) == (True, "note")
    first, second = (entry for entry in tree.entries if entry.type == "compaction")
    assert (first.read_files, first.modified_files, first.tokens_before) == (("a",), ("b",), 99)
    assert second.details == [1]


async def test_own_session_is_exported_in_pi_format(sessions):
    async with await sessions.create(name="n") as session:
        first, _ = await session.append(
            MessageEntry(message=UserMessage(content="hello")),
            MessageEntry(message=AssistantMessage(content="hi", model="openai:gpt-x")),
        )
        await session.append(CustomMessageEntry(plugin="p", message=UserMessage(content="note")))
        await session.rewind(first)
    header, named, hello, hi, note, back = (json.loads(one) for one in await sessions.export(session.id, format="pi"))
    assert (header["type"], header["version"], header["id"]) == ("session", 3, session.id)
    assert (named["type"], named["name"]) == ("session_info", "n")
    assert hello["message"]["content"] == [{"type": "text", "text": "hello"}]
    assert isinstance(hello["message"]["timestamp"], int)
    assert (hi["message"]["provider"], hi["message"]["model"]) == ("openai", "gpt-x")
    assert (hi["message"]["stopReason"], hi["parentId"]) == ("stop", hello["id"])
    assert (note["type"], note["customType"], note["display"]) == ("custom_message", "p", True)
    # pi continues at the last line of a file.
    assert (back["type"], back["parentId"]) == ("custom", first)


async def test_version_1_is_upgraded(take, sessions):
    lines = [
        {"type": "session", "id": "old", "timestamp": TIME, "cwd": "/tmp/x", "provider": "anthropic"},
        {"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "a", "timestamp": 1}},
        {"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "b", "timestamp": 1}},
        {"type": "message", "timestamp": TIME, "message": {**CUSTOM, "role": "hookMessage"}},
        {"type": "compaction", "timestamp": TIME, "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 1},
    ]
    tree, notices = await take(lines)
    assert notices == ()
    assert [one.text for one in tree.context().messages][1:] == ["b", "note"]
    header, *_, compaction = (json.loads(one) for one in await sessions.export(tree.id, format="pi"))
    assert (header["version"], header["provider"]) == (3, "anthropic")
    assert compaction["firstKeptEntryId"] == tree.entries[1].id


async def test_version_2_is_upgraded(take):
    tree, notices = await take([{**HEADER, "version": 2}, message("00000001", None, {**CUSTOM, "role": "hookMessage"})])
    assert (notices, tree.context().messages[0].text) == ((), "note")


@pytest.mark.parametrize("version", [4, "3", 0, None])
async def test_unsupported_version_is_rejected(take, version):
    with pytest.raises(SessionUnreadable, match="of pi's format"):
        await take([{**HEADER, "version": version}])


async def test_duplicate_ids_are_renamed(take):
    contents = [{"role": "user", "content": text, "timestamp": 1} for text in "abc"]
    tree, notices = await take(
        [
            HEADER,
            message("00000001", None, contents[0]),
            message("00000001", "00000001", contents[1]),
            message("00000003", "00000001", contents[2]),
        ]
    )
    assert [one.text for one in tree.context().messages] == ["a", "b", "c"]
    assert len(notices) == 1


@pytest.mark.parametrize(
    "content",
    [
        {"role": "assistant", "content": "x"},
        {"role": "assistant", "content": [{**CALL, "arguments": "{"}], "provider": "p", "model": "m"},
        {"role": [], "content": 1},
        {"role": "user"},
        {"role": "user", "content": [{"type": "image", "data": "x", "mimeType": "text/html"}]},
        {"role": "toolResult", "toolCallId": 3, "toolName": "x", "content": [], "isError": "maybe"},
        {"role": "custom", "customType": "x"},
        [],
        None,
        "text",
    ],
)
async def test_message_that_cannot_be_converted_is_stored_with_a_notice(take, sessions, content):
    lines = [HEADER, message("00000001", None, content)]
    tree, notices = await take(lines)
    assert isinstance(tree.entries[0], ForeignEntry)
    assert tree.context().messages == ()
    assert notices[0].startswith("line 2 is stored but hidden from models: ")
    assert [json.loads(one) for one in await sessions.export(tree.id, format="pi")] == lines


async def test_time_in_another_format_is_preserved(take, sessions):
    lines = [HEADER, {**message("00000001", None, {"role": "user", "content": "a", "timestamp": 1}), "timestamp": 17}]
    tree, notices = await take(lines)
    assert (notices, tree.entries[0].time) == ((), "")
    assert [json.loads(one) for one in await sessions.export(tree.id, format="pi")] == lines
