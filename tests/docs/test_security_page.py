"""The examples and tables of the security page are correct."""

import base64
import errno
import html
import json
import re
import zlib
from urllib.parse import quote

import anyio
import pytest
from sideband import Host
from sideband.broker import Redaction
from sideband.hooks import Redactors
from sideband.loading import SkillSources
from sideband.workers import Isolation
from sideband_sandbox._workers._remedies import NamespaceFacts, namespace_remedy
from sideband_skills import FolderLoader

PAGE = "docs/security.md"


def test_program_shows_the_verified_isolation(tmp_path, page, run_program):
    (program,) = page(PAGE).examples("python")
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr
    tier, *lines = done.stdout.splitlines()
    assert tier == "full"
    assert "a worker could not fork" in lines
    assert any(line.startswith("not prevented: ") and "kernel" in line for line in lines)


def test_commands_show_the_tier_of_a_call_and_of_its_effects(newcomer, sideband, page):
    call, query = page(PAGE).commands()
    called = sideband(*call, folder=newcomer)
    assert called.returncode == 0, called.stderr
    assert json.loads(called.stdout)["isolation"] == "full"
    effects = json.loads(sideband(*query, folder=newcomer).stdout)
    of_worker = [effect for effect in effects if effect["op"] != "approval.answer"]
    assert {effect["entries"][0]["isolation"] for effect in of_worker} == {"full"}


def test_example_skill_requests_a_worker_for_each_call(tmp_path, sideband, page):
    (markdown,) = page(PAGE).examples("markdown")
    folder = tmp_path / "careful"
    folder.mkdir()
    (folder / "SKILL.md").write_text(markdown)
    assert sideband("skills", "validate", folder).returncode == 0
    (skill,) = anyio.run(FolderLoader().load, SkillSources(folders=(folder,))).skills
    assert skill.alone


def test_page_lists_exactly_the_existing_tiers(page):
    named = re.findall(r"^\| `([a-z-]+)` \|", page(PAGE).section("Isolation tiers"), re.MULTILINE)
    assert sorted(named) == sorted(tier.label for tier in Isolation)


def test_page_mentions_every_cause_that_doctor_reports(page):
    settings = {"kernel.apparmor_restrict_unprivileged_userns": 1, "kernel.unprivileged_userns_clone": 0}
    for facts in (
        NamespaceFacts(settings=settings, filtered=True, profile="docker-default"),
        NamespaceFacts(root=True),
        NamespaceFacts(),
    ):
        remedy = namespace_remedy(errno.EPERM, facts)
        for word in re.findall(
            r"kernel\.[a-z_]+|user\.[a-z_]+|CAP_[A-Z_]+|--[a-z-]+|[a-z_]*mount[a-z_]*|chroot", remedy
        ):
            assert word in page(PAGE).text, word


KNOWN = 's3cr3t/välue&"more"'


def test_known_value_is_found_in_the_listed_forms_only():
    redaction = Redaction()
    redaction.protect(KNOWN, "demo")
    raw = KNOWN.encode()
    once = json.dumps(KNOWN)[1:-1]
    units = "".join(f"\\u{ord(one):04x}" for one in KNOWN)
    encoded = base64.b64encode(b"ab" + raw + b"cd").decode()
    forms = [KNOWN, quote(KNOWN), quote(KNOWN, safe=""), raw.hex(), raw.hex().upper(), once, html.escape(KNOWN), units,
             repr(KNOWN)[1:-1], base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(), encoded,
             f"{encoded[:14]}\n{encoded[14:]}"]  # fmt: skip
    for form in forms:
        assert "[redacted:demo]" in redaction.text(f"<{form}>"), form
    other = [KNOWN[::-1], base64.b32encode(raw).decode(), base64.b64encode(zlib.compress(raw)).decode()]
    for form in other:
        assert redaction.text(form) == form
    redaction.protect("abc", "short")
    assert redaction.text("abc") == "abc"


def test_unknown_value_is_found_by_key_or_pattern_only(page):
    (row,) = [line for line in page(PAGE).text.splitlines() if line.startswith("| key |")]
    keys = [name for name in re.findall(r"`(\w+)`", row) if name != "http"]
    assert len(keys) >= 6
    token = "ghp_" + "a1B2" * 9
    redaction = Redaction()
    assert redaction.data(dict.fromkeys(keys, token)) == dict.fromkeys(keys, "[redacted]")
    harmless = {"nextPageToken": token, "max_tokens": 12345, "text": f"use {token}"}
    assert redaction.data(harmless) == harmless
    redaction.add_pattern("ghp_[A-Za-z0-9]{36}", "github")
    assert redaction.text(f"use {token}") == "use [redacted:github]"


@pytest.mark.anyio
async def test_default_distribution_registers_no_pattern(tmp_path):
    async with Host(home=tmp_path) as host:
        assert await host.hooks.collect(Redactors()) == ()
