"""What is said to whoever has no namespaces."""

import errno
import os

import pytest
from sideband_sandbox._remedies import NamespaceFacts, error_number, namespace_facts, namespace_remedy

APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
DEBIAN = "kernel.unprivileged_userns_clone"
OPEN = {APPARMOR: 0, DEBIAN: 1, "user.max_user_namespaces": 9000}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES])
@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (NamespaceFacts(settings={**OPEN, DEBIAN: 0}), f"sysctl {DEBIAN}=1"),
        (NamespaceFacts(settings={**OPEN, APPARMOR: 1}), f"sysctl {APPARMOR}=0"),
        (NamespaceFacts(settings={**OPEN, APPARMOR: 1}), "AppArmor profile"),
        (NamespaceFacts(settings=OPEN, filtered=True), "seccomp=PROFILE"),
        (NamespaceFacts(root=True, filtered=True, settings=OPEN), "CAP_SYS_ADMIN"),
        (NamespaceFacts(root=True, administrator=True, profile="docker-default"), "docker-default"),
        (NamespaceFacts(settings=OPEN), "chroot"),
        (NamespaceFacts(), "SELinux"),
    ],
)
def test_a_refusal_is_answered_by_what_refuses(number, facts, said):
    assert said in namespace_remedy(number, facts)


def test_every_cause_that_can_be_seen_is_named():
    facts = NamespaceFacts(settings={APPARMOR: 1, DEBIAN: 0}, filtered=True, profile="strict")
    remedy = namespace_remedy(errno.EPERM, facts)
    for said in (APPARMOR, DEBIAN, "seccomp", "strict"):
        assert said in remedy
    assert "chroot" not in remedy


def test_what_is_about_ordinary_users_is_not_said_to_root():
    facts = NamespaceFacts(root=True, administrator=True, settings={APPARMOR: 1, DEBIAN: 0})
    remedy = namespace_remedy(errno.EPERM, facts)
    assert APPARMOR not in remedy
    assert DEBIAN not in remedy


def test_where_none_are_allowed_it_says_which_to_allow():
    settings = {"user.max_user_namespaces": 0, "user.max_net_namespaces": 0, "user.max_pid_namespaces": 5}
    remedy = namespace_remedy(errno.ENOSPC, NamespaceFacts(settings=settings))
    assert remedy == "allow some: sysctl user.max_net_namespaces=10000 user.max_user_namespaces=10000"


def test_where_there_are_too_many_it_does_not_speak_of_permissions():
    remedy = namespace_remedy(errno.ENOSPC, NamespaceFacts(settings={**OPEN, DEBIAN: 0}))
    assert "32 deep" in remedy
    assert DEBIAN not in remedy


def test_a_kernel_that_does_not_know_them_has_to_be_another():
    assert "CONFIG_USER_NS" in namespace_remedy(errno.EINVAL, NamespaceFacts())


def test_other_errors_have_no_remedy():
    assert namespace_remedy(errno.ENOMEM, NamespaceFacts(settings={DEBIAN: 0})) == ""


@pytest.mark.parametrize(
    ("problem", "number"),
    [
        ("lock-down step `namespaces` failed: [Errno 1] unshare: Operation not permitted", 1),
        ("the throw-away worker did not answer within 20 s", None),
        ("", None),
    ],
)
def test_the_number_is_found_in_the_words(problem, number):
    assert error_number(problem) == number


def machine(folder, *, status="", profile="", **settings):
    (folder / "process/attr").mkdir(parents=True)
    (folder / "process/status").write_text(status)
    (folder / "process/attr/current").write_text(profile)
    for name, value in settings.items():
        file = folder / "settings" / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    return namespace_facts(folder / "process", folder / "settings")


def test_the_facts_are_read(tmp_path):
    facts = machine(
        tmp_path,
        status="Name:\tx\nCapEff:\t0000000000200000\nSeccomp:\t2\n",
        profile="docker-default (enforce)\n",
        kernel__apparmor_restrict_unprivileged_userns=1,
        kernel__unprivileged_userns_clone=0,
        user__max_user_namespaces=0,
    )
    assert facts == NamespaceFacts(
        root=os.geteuid() == 0,
        administrator=True,
        filtered=True,
        profile="docker-default",
        settings={APPARMOR: 1, DEBIAN: 0, "user.max_user_namespaces": 0},
    )


@pytest.mark.parametrize("profile", ["unconfined", "", "lenient (complain)", "u:r:shell:s0"])
def test_a_profile_that_forbids_nothing_is_none(tmp_path, profile):
    assert machine(tmp_path, profile=profile).profile == ""


def test_without_a_filter_and_rights_there_are_none(tmp_path):
    facts = machine(tmp_path, status="CapEff:\t0000000000000000\nSeccomp:\t0\n")
    assert (facts.filtered, facts.administrator) == (False, False)


def test_a_machine_that_shows_nothing_is_no_error(tmp_path):
    assert namespace_facts(tmp_path, tmp_path) == NamespaceFacts(root=os.geteuid() == 0)
