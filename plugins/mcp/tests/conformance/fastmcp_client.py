"""Use a server with the client of another maker, FastMCP, which has an environment of its own.

Usage: fastmcp_client.py URL COMMAND…: the address of `everything.py`, and a command that serves the same tools.
"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def use(transport):
    """Use what the server offers, and return how many things were checked."""
    progress = []

    async def on_progress(current, total, message):
        progress.append((current, total))

    async def on_question(message, response_type, params, context):
        return {"other_1": "blue"}

    async with Client(transport, elicitation_handler=on_question, progress_handler=on_progress) as client:
        tools = {one.name for one in await client.list_tools()}
        text = await client.call_tool("test_simple_text", {})
        image = await client.call_tool("test_image_content", {})
        failed = await client.call_tool("test_error_handling", {}, raise_on_error=False)
        await client.call_tool("test_tool_with_progress", {})
        answer = await client.call_tool("test_elicitation", {"message": "Which color?"})
        (read,) = await client.read_resource("skill://test-prompt/references/static.txt")
        prompt = await client.get_prompt("test-prompt")
    checks = {
        "tools": "test_simple_text" in tools,
        "text": text.content[0].text.startswith("This is a simple text"),
        "effect": "sideband/effect" in (text.meta or {}),
        "image": image.content[0].type == "image",
        "error": failed.is_error,
        "progress": progress[-1] == (100, 100),
        "question": answer.content[0].text == "User response: blue",
        "resource": read.text.startswith("This is the content"),
        "prompt": "This is a prompt." in prompt.messages[0].content.text,
    }
    if wrong := [name for name, is_right in checks.items() if not is_right]:
        sys.exit(f"FastMCP: wrong: {', '.join(wrong)}")
    return len(checks)


async def main():
    url, command, *arguments = sys.argv[1:]
    for name, transport in (
        ("Streamable HTTP", StreamableHttpTransport(url)),
        ("standard input and output", StdioTransport(command, arguments)),
    ):
        print(f"FastMCP over {name}: {await use(transport)} checks passed")


asyncio.run(main())
