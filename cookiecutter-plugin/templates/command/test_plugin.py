"""The command does what each command must do, and what its README says."""

from argparse import ArgumentError, ArgumentParser
from typing import ClassVar

import pytest
from sideband_testing import HostFactory
from sideband_testing.conformance import CommandConformance, CommandExample

from {{ cookiecutter.__module }}.plugin import configure, run

NAME = "{{ cookiecutter.__entry }}"


class TestConformance(CommandConformance):
    plugin = f"command.{NAME}"
    examples: ClassVar = [CommandExample([]), CommandExample(["--last", "5", "--family", "crypto"])]


@pytest.mark.anyio
async def test_effects_are_counted(sideband_host: HostFactory) -> None:
    parser = ArgumentParser()
    configure(parser)
    async with sideband_host("op.crypto") as host:
        assert await run(parser.parse_args([]), host) == ([], "no effect is recorded", 0)
        for _ in range(2):
            await host.op("crypto.hash", {"data": "abc"})
        counted = await run(parser.parse_args(["--family", "crypto"]), host)
        assert counted.data == [{"op": "crypto.hash", "status": "done", "effects": 2}]
        assert (await run(parser.parse_args(["--last", "1"]), host)).data[0]["effects"] == 1


@pytest.mark.parametrize("number", ["0", "-1", "100001", "all"])
def test_invalid_number_is_refused(number: str) -> None:
    parser = ArgumentParser(exit_on_error=False)
    configure(parser)
    with pytest.raises((ArgumentError, SystemExit)):
        parser.parse_args(["--last", number])
