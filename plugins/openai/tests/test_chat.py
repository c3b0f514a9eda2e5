import pytest
from sideband.messages import TextPart, Usage
from sideband.providers import TextDelta

pytestmark = pytest.mark.anyio


async def test_text_comes_in_pieces_and_then_as_a_whole(client, server, make):
    server.reply(make.events(make.chunk(content="Hel"), make.chunk(content="lo"), make.chunk(finish="stop")))
    *deltas, finished = await client.events()
    assert deltas == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert finished.message.content == (TextPart(text="Hello"),)
    assert (finished.message.stop, finished.message.usage) == ("end", Usage())
