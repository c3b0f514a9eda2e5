"""The op family does what each op family must do, and what its README says."""

from contextlib import suppress
from typing import ClassVar

import pytest
from sideband import Host
from sideband.ops import OpDenied, OpFailed
from sideband_testing import HostFactory
from sideband_testing.conformance import Example, OpFamilyConformance

FAMILY = "{{ cookiecutter.__entry }}"


class TestConformance(OpFamilyConformance):
    plugin = f"op.{FAMILY}"
    config: ClassVar = {"max_characters": 20}
    examples: ClassVar = [
        Example(f"{FAMILY}.get", {"key": "kept"}, result="a text"),
        Example(f"{FAMILY}.get", {"key": "other"}, error=f"{FAMILY}.missing"),
        Example(f"{FAMILY}.set", {"key": "kept", "text": "another"}),
        Example(f"{FAMILY}.set", {"key": "new", "text": "x"}),
        Example(f"{FAMILY}.set", {"key": "new", "text": "x" * 21}, error=f"{FAMILY}.long"),
        Example(f"{FAMILY}.delete", {"key": "kept"}),
        Example(f"{FAMILY}.delete", {"key": "other"}, error=f"{FAMILY}.missing"),
    ]

    async def prepare_host(self, host: Host, example: Example) -> None:  # noqa: ARG002
        await host.op(f"{FAMILY}.set", {"key": "kept", "text": "a text"})
        for key in ("new", "other"):
            with suppress(OpFailed):  # it is missing
                await host.op(f"{FAMILY}.delete", {"key": key})


@pytest.mark.anyio
async def test_grant_limits_the_keys(sideband_host: HostFactory) -> None:
    async with sideband_host(f"op.{FAMILY}") as host:
        rights = [f"{FAMILY}:key=notes-*,mode=read|write"]
        await host.op(f"{FAMILY}.set", {"key": "notes-1", "text": "tea"}, grants=rights)
        assert await host.op(f"{FAMILY}.get", {"key": "notes-1"}, grants=rights) == "tea"
        with pytest.raises(OpDenied):
            await host.op(f"{FAMILY}.get", {"key": "other"}, grants=rights)
