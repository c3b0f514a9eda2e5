"""Sources of secrets with one fault each."""

import logging
import os
from contextlib import suppress
from types import SimpleNamespace

import anyio
from sideband import Plugin
from sideband_testing import SecretSourceConformance

LOG = logging.getLogger("faulty")
HOME = "https://home.example"
HELD = {"the-first-value": [HOME], "the-second-value": []}


class Good:
    name = "tokens"

    def __init__(self):
        self.closed = "it was not opened"

    async def open(self, ctx):
        await anyio.lowlevel.checkpoint()
        path = ctx.home / "faulty" / "list"
        for line in path.read_text().splitlines() if path.exists() else ():
            value, origin = line.split("|")
            self.register(ctx, value, origin)
        self.closed = None

    def register(self, ctx, value, origin):
        ctx.protect(value, "token", origins=[origin] if origin else [])


def source(cls):
    value = SimpleNamespace(sideband_secret_sources=lambda: [cls()], backends=("asyncio",))
    return Plugin("secrets", "faulty", value)


class Base(SecretSourceConformance):
    fault = ""
    holds = HELD

    async def store_secrets(self, host):
        (host.home / "faulty").mkdir()
        lines = [f"{value}|{''.join(origins)}\n" for value, origins in HELD.items()]
        (host.home / "faulty" / "list").write_text("".join(lines))


class TestGood(Base):
    plugin = source(Good)


class ClaimsToBeOpen(Good):
    def __init__(self):
        self.closed = None


class TestClaimsToBeOpen(Base):
    fault = "test_it_is_closed_until_it_is_opened"
    plugin = source(ClaimsToBeOpen)


class StaysClosed(Good):
    async def open(self, ctx):
        await super().open(ctx)
        self.closed = "it was not opened"


class TestStaysClosed(Base):
    fault = "test_values_are_known_before_the_first_effect"
    plugin = source(StaysClosed)
    overrides = {"test_values_are_sent_to_their_origins_only": "nothing is sent while a source is closed"}


class KeepsOne(Good):
    def register(self, ctx, value, origin):
        if origin:
            super().register(ctx, value, origin)


class TestKeepsOne(Base):
    fault = "test_values_are_known_before_the_first_effect"
    plugin = source(KeepsOne)
    overrides = {"test_values_are_sent_to_their_origins_only": "what is unknown is sent anywhere"}


class ForgetsOrigins(Good):
    def register(self, ctx, value, origin):
        ctx.protect(value, "token")


class TestForgetsOrigins(Base):
    fault = "test_values_are_sent_to_their_origins_only"
    plugin = source(ForgetsOrigins)


class AllowsOneElsewhere(Good):
    def register(self, ctx, value, origin):
        ctx.protect(value, "token", origins=[HOME])


class TestAllowsOneElsewhere(Base):
    fault = "test_values_are_sent_to_their_origins_only"
    plugin = source(AllowsOneElsewhere)


class Writes(Good):
    async def open(self, ctx):
        await super().open(ctx)
        (ctx.home / "faulty").mkdir(exist_ok=True)
        (ctx.home / "faulty" / "opened").touch()


class TestWrites(Base):
    fault = "test_opening_changes_and_asks_nothing"
    plugin = source(Writes)

    async def store_secrets(self, host):
        (host.home / "faulty" / "opened").unlink()
        (host.home / "faulty").rmdir()
        await super().store_secrets(host)


class Asks(Good):
    async def open(self, ctx):
        with suppress(EOFError, OSError):
            input("passphrase: ")  # noqa: ASYNC250  its fault
        await super().open(ctx)


class TestAsks(Base):
    fault = "test_opening_changes_and_asks_nothing"
    plugin = source(Asks)


class IgnoresDamage(Good):
    async def open(self, ctx):
        try:
            await super().open(ctx)
        except ValueError:
            self.closed = None


class TestIgnoresDamage(Base):
    fault = "test_damaged_files_close_it"
    plugin = source(IgnoresDamage)


class LeaksWhenCancelled(Good):
    async def open(self, ctx):
        descriptor = os.open(os.devnull, os.O_RDONLY)
        await super().open(ctx)
        os.close(descriptor)


class TestCancelledLeavesADescriptor(Base):
    fault = "test_cancellation_leaves_nothing_behind"
    plugin = source(LeaksWhenCancelled)
    overrides = {"test_damaged_files_close_it": "what fails leaves the descriptor too"}


class Logs(Good):
    def register(self, ctx, value, origin):
        LOG.debug("found %s", value)
        super().register(ctx, value, origin)


class TestLogsValues(Base):
    fault = "test_secrets_stay_hidden"
    plugin = source(Logs)


class Shows(Good):
    def register(self, ctx, value, origin):
        super().register(ctx, value, origin)
        self.value = value

    def __repr__(self):
        return f"Shows({vars(self)})"


class TestShowsValues(Base):
    fault = "test_secrets_stay_hidden"
    plugin = source(Shows)
