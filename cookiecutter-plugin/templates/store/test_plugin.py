"""The store does what each store must do, and what its README says."""

import json
from pathlib import Path

import pytest
from sideband_testing import HostFactory
from sideband_testing.conformance import StoreConformance

from {{ cookiecutter.__module }}.plugin import FILE, open_journal

NAME = "{{ cookiecutter.__entry }}"


class TestConformance(StoreConformance):
    plugin = f"store.{NAME}"


@pytest.mark.anyio
async def test_host_keeps_its_state_in_readable_lines(sideband_host: HostFactory) -> None:
    async with sideband_host(f"store.{NAME}", "op.crypto") as host:
        await host.op("crypto.hash", {"data": "abc"}, key="once")
    lines = next(sideband_host.home.rglob(FILE)).read_text().splitlines()
    assert {change[0] for line in lines for change in json.loads(line)} >= {"put"}


@pytest.mark.anyio
async def test_torn_line_is_removed(tmp_path: Path) -> None:
    async with open_journal(tmp_path) as store:
        await store.put("one", {})
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'[["put", "tw')
    async with open_journal(tmp_path) as store:
        assert await store.keys() == ["one"]
        await store.put("three", {})
        assert await store.keys() == ["one", "three"]
    async with open_journal(tmp_path) as store:
        assert await store.keys() == ["one", "three"]
