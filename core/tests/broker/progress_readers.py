"""What the tests of progress have in common: a reader of events, and parameters."""

import anyio
import pytest
from pydantic import BaseModel

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
CANARY = "s3cr3t-canary-value"


class Nothing(BaseModel):
    text: str = ""


class Reader:
    """A consumer that collects events, and waits at the first one until it may continue."""

    def __init__(self, *, waits=False):
        self.events = []
        self.began = anyio.Event()
        self.may_continue = anyio.Event()
        if not waits:
            self.may_continue.set()

    async def take(self, event):
        self.events.append(event)
        self.began.set()
        await self.may_continue.wait()

    def of(self, stream):
        """Return the events of a stream. Check that its offsets are continuous, and that it was closed once, last."""
        events = [one for one in self.events if one.stream == stream]
        offset = 0
        for one in events:
            assert one.offset == offset
            offset += size_of(one)
        assert [one.closed for one in events] == [False] * (len(events) - 1) + [True]
        return events[:-1]

    def text(self, stream="stdout"):
        """Return the text of a stream without gaps."""
        events = self.of(stream)
        assert [one.gap for one in events] == [None] * len(events)
        return "".join(one.text for one in events)


def size_of(event):
    """Return the size of an event: bytes of a text, the number of reports, or that of what is missing."""
    if event.gap is not None:
        return event.gap
    if event.text is not None:
        return len(event.text.encode())
    return 0 if event.closed else 1
