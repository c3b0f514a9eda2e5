"""The examples and tables of the security page are correct."""

import errno
import json
import re

import anyio
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
    assert {effect["entries"][0]["isolation"] for effect in effects} == {"full"}


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
