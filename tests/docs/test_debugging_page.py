"""The examples of the page on what plugins do work, in their order."""

import pytest

PAGE = "docs/plugins/debugging.md"

pytestmark = pytest.mark.anyio


async def test_examples_show_what_plugins_do(tmp_path, page, walk, monkeypatch):
    walk(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)
    (slowest, *_) = await page(PAGE).module("async def slow_hooks").slow_hooks(tmp_path / "other")
    assert (slowest.hook, slowest.plugin, slowest.result) == ("op_call", "guard-limits", "kept")
