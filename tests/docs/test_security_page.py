"""What the page about security says is true."""

import errno
import json
import re

import pytest
from sideband.loading import SkillSources
from sideband.workers import Isolation
from sideband_sandbox._workers._remedies import NamespaceFacts, namespace_remedy
from sideband_skills import FolderLoader

PAGE = "docs/security.md"


def test_the_program_of_the_security_page_shows_what_was_proved(tmp_path, page, run_program):
    (program,) = page(PAGE).examples("python")
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr
    tier, *lines = done.stdout.splitlines()
    assert tier == "full"
    assert "a worker could not fork" in lines
    assert any(line.startswith("not stopped: bugs of the kernel") for line in lines)


def test_the_commands_of_the_security_page_show_the_tier_of_a_call_and_of_its_effects(newcomer, sideband, page):
    call, query = page(PAGE).commands()
    called = sideband(*call, folder=newcomer)
    assert called.returncode == 0, called.stderr
    assert json.loads(called.stdout)["isolation"] == "full"
    effects = json.loads(sideband(*query, folder=newcomer).stdout)
    assert {effect["entries"][0]["isolation"] for effect in effects} == {"full"}


@pytest.mark.anyio
async def test_the_skill_of_the_security_page_gets_a_worker_for_each_call(tmp_path, sideband, page):
    (markdown,) = page(PAGE).examples("markdown")
    folder = tmp_path / "careful"
    folder.mkdir()
    (folder / "SKILL.md").write_text(markdown)
    assert sideband("skills", "validate", folder).returncode == 0
    (skill,) = (await FolderLoader().load(SkillSources(folders=(folder,)))).skills
    assert skill.alone


def test_the_security_page_names_every_tier_and_no_other(page):
    named = re.findall(r"^\| `([a-z-]+)` \|", page(PAGE).section("The tiers"), re.MULTILINE)
    assert sorted(named) == sorted(tier.label for tier in Isolation)


def test_the_security_page_has_a_line_for_each_cause_that_doctor_names(page):
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
