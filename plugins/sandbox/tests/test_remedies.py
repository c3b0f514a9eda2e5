"""The remedies that are suggested on a machine that does not permit namespaces."""

import errno
import os

import pytest
from sideband_sandbox._sandbox import _hint
from sideband_sandbox._workers._candidates import remedy
from sideband_sandbox._workers._plan import Variant
from sideband_sandbox._workers._remedies import NamespaceFacts, error_number, namespace_facts, namespace_remedy

APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
DEBIAN = "kernel.unprivileged_userns_clone"
OPEN = {APPARMOR: 0, DEBIAN: 1, "user.max_user_namespaces": 9000}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES])
@pytest.mark.parametrize(
    ("facts", "text"),
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
def test_remedy_names_the_cause_of_a_refusal(number, facts, text):
    assert text in namespace_remedy(number, facts)


def test_remedy_names_every_detected_cause():
    facts = NamespaceFacts(settings={APPARMOR: 1, DEBIAN: 0}, filtered=True, profile="strict")
    text = namespace_remedy(errno.EPERM, facts)
    for cause in (APPARMOR, DEBIAN, "seccomp", "strict"):
        assert cause in text
    assert "chroot" not in text


def test_remedy_for_root_omits_settings_of_ordinary_users():
    facts = NamespaceFacts(root=True, administrator=True, settings={APPARMOR: 1, DEBIAN: 0})
    text = namespace_remedy(errno.EPERM, facts)
    assert APPARMOR not in text
    assert DEBIAN not in text


def test_limit_of_zero_is_named_with_its_setting():
    settings = {"user.max_user_namespaces": 0, "user.max_net_namespaces": 0, "user.max_pid_namespaces": 5}
    text = namespace_remedy(errno.ENOSPC, NamespaceFacts(settings=settings))
    assert text.endswith("sysctl user.max_net_namespaces=10000 user.max_user_namespaces=10000")


def test_exhausted_namespaces_are_not_blamed_on_permissions():
    text = namespace_remedy(errno.ENOSPC, NamespaceFacts(settings={**OPEN, DEBIAN: 0}))
    assert "32 levels" in text
    assert DEBIAN not in text


def test_kernel_without_namespaces_has_to_be_replaced():
    assert "CONFIG_USER_NS" in namespace_remedy(errno.EINVAL, NamespaceFacts())


def test_other_errors_have_no_remedy():
    assert namespace_remedy(errno.ENOMEM, NamespaceFacts(settings={DEBIAN: 0})) == ""


@pytest.mark.parametrize(
    ("problem", "number"),
    [
        ("lockdown step `namespaces` failed: [Errno 1] unshare: Operation not permitted", 1),
        ("the probe worker did not answer within 20 s", None),
        ("", None),
    ],
)
def test_error_number_is_parsed_from_the_message(problem, number):
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


def test_facts_are_read_from_proc(tmp_path):
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
def test_profile_that_is_not_enforced_is_ignored(tmp_path, profile):
    assert machine(tmp_path, profile=profile).profile == ""


def test_missing_filter_and_capability_are_reported(tmp_path):
    facts = machine(tmp_path, status="CapEff:\t0000000000000000\nSeccomp:\t0\n")
    assert (facts.filtered, facts.administrator) == (False, False)


def test_missing_files_are_ignored(tmp_path):
    assert namespace_facts(tmp_path, tmp_path) == NamespaceFacts(root=os.geteuid() == 0)


@pytest.mark.parametrize("variant", [Variant(namespaces=True, own_user=True), Variant(own_user=True)])
def test_user_namespace_without_other_users_is_named(variant):
    # The host is root of a user namespace without other users: neither namespaces nor folders are the cause.
    text = remedy(variant, "lockdown step `identity` failed: [Errno 1] Operation not permitted")
    assert "more than one user ID" in text
    assert "chroot" not in text
    assert "readable" not in text


def test_remedy_is_not_repeated():
    hints = [_hint([], "namespaces: no", "; do this")]
    assert hints == ["namespaces: no; do this"]
    assert _hint(hints, "a user namespace: no", "; do this") == "a user namespace: no"
    assert _hint(hints, "namespaces: no", "; do this") == hints[0]  # a duplicate hint, which the caller drops
    assert _hint(hints, "a user ID: no", "; do that") == "a user ID: no; do that"
