import sys

import pytest
import tomli_w
from sideband.settings import LoadedSettings, Settings, load_settings, trust_project


@pytest.fixture
def lock(tmp_path, monkeypatch):
    """Write a lock with settings into the environment of this process."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    def write(adjustable=(), **settings):
        data = {"version": 1, "plugins": [], "packages": [], "settings": settings, "dist": {"adjustable": adjustable}}
        (tmp_path / "sideband.lock").write_text(tomli_w.dumps(data))

    return write


def effective(home, path, **options):
    found = load_settings(home, **options)
    return next(value for key, value, _ in found.effective() if key == path)


TIGHTENED = [
    ("isolation", "no-namespaces", "full", "full"),
    ("isolation", "full", "none", "full"),
    ("isolation", "no-namespaces,call", "full", "full,call"),
    ("timeout", 30.0, 5, 5.0),
    ("timeout", 30.0, 500, 30.0),
    ("memory", "512M", "1G", "512M"),
    ("memory", "512M", "64M", "64M"),
    ("workers", 4, 2, 2),
    ("workers", 4, 400, 4),
    ("resume", "ask", "replay", "ask"),
    ("resume", "ask", "never", "never"),
    ("require_open_secrets", True, False, True),
    ("require_open_secrets", False, True, True),
    ("guards", ["limits"], [], ["limits"]),
    ("guards", ["limits"], ["loop"], ["limits", "loop"]),
    ("workers", 4, "many", 4),
]


@pytest.mark.parametrize("case", TIGHTENED)
def test_other_sources_can_only_restrict_what_the_lock_sets(home, lock, case):
    key, locked, given, result = case
    lock(policy={key: locked})
    assert effective(home, f"policy.{key}", flags={"policy": {key: given}}) == result


@pytest.mark.parametrize("source", ["user", "project", "variable", "flag"])
def test_no_source_can_loosen_the_lock(home, lock, tmp_path, source):
    lock(
        policy={"timeout": 5, "deny": {"op.shell": "no programs"}, "isolation": "full"},
        plugins={"http": {"retries": 1}},
    )
    text = '[policy]\ntimeout = 50\nisolation = "none"\ndeny = {"op.shell" = ""}\n[plugins.http]\nretries = 9\nx = 1\n'
    options = {}
    if source == "user":
        (home / "sideband.toml").write_text(text)
    elif source == "project":
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "sideband.toml").write_text(text)
        trust_project(home, folder)
        options["project"] = folder
    elif source == "variable":
        options["environment"] = {
            "SIDEBAND_POLICY__TIMEOUT": "50",
            "SIDEBAND_POLICY__ISOLATION": "none",
            "SIDEBAND_POLICY__DENY": "{}",
            "SIDEBAND_PLUGINS__HTTP__RETRIES": "9",
        }
    else:
        plugins = {"http": {"retries": 9}}
        options["flags"] = {
            "policy": {"timeout": 50, "isolation": "none", "deny": {}, "strict": False},
            "plugins": plugins,
        }
    found = load_settings(home, **options)
    policy = found.settings.policy
    assert (policy.timeout, policy.isolation, policy.deny) == (5.0, "full", {"op.shell": "no programs"})
    assert found.settings.plugins == {"http": {"retries": 1}}
    assert found.plugin_policy().strict
    (notice,) = (one for one in found.notices if "is locked" in one)
    assert "`policy.timeout`" in notice
    assert found.sources["policy", "timeout"].endswith("sideband.lock")


def test_settings_that_a_program_builds_itself_are_strict_and_require_the_guards_too(lock):
    lock(policy={"guards": ["limits"]})
    policy = LoadedSettings(Settings(), {}).plugin_policy()
    assert (policy.strict, policy.guards) == (True, {"limits"})


def test_plugins_can_be_denied_in_addition(home, lock):
    lock(policy={"deny": {"op.shell": "no programs"}})
    found = load_settings(home, flags={"policy": {"deny": {"op.sql": "not now"}}})
    assert found.settings.policy.deny == {"op.shell": "no programs", "op.sql": "not now"}
    assert found.notices == ()


def test_grants_of_the_lock_can_be_narrowed_and_not_widened(home, lock):
    lock(grants={"notes": ["http:host=a.example", "sql"]})
    grants = {"notes": ["http:host=a.example,method=GET", "http"], "other": ["shell"], "plugin:http": ["shell"]}
    found = load_settings(home, flags={"grants": grants})
    assert found.settings.grants == {"notes": ["http:host=a.example,method=GET"]}
    assert "`grants.other`" in found.notices[0]
    none = load_settings(home, flags={"grants": {"notes": []}})
    assert none.settings.grants == {"notes": []}
    foreign = load_settings(home, flags={"grants": {"notes": ["shell"]}})
    assert foreign.settings.grants == {"notes": ["http:host=a.example", "sql"]}


@pytest.mark.parametrize("value", ["http", 5, [5], ["?"], {"a": "b"}])
def test_invalid_grants_leave_those_of_the_lock(home, lock, value):
    lock(grants={"notes": ["sql"]})
    assert load_settings(home, flags={"grants": {"notes": value}}).settings.grants == {"notes": ["sql"]}


def test_preferences_that_the_lock_does_not_set_are_free(home, lock):
    lock(agent={"turns": 5})
    found = load_settings(home, flags={"agent": {"model": "scripted:x", "turns": 500}}).settings.agent
    assert (found.model, found.turns) == ("scripted:x", 5)


@pytest.mark.parametrize("key", ["disabled", "explicit"])
def test_tools_that_the_lock_removes_stay_removed(home, lock, key):
    lock(tools={key: ["write"], "suggest_over": 30})
    found = load_settings(home, flags={"tools": {key: ["edit"], "suggest_over": 9}}).settings.tools
    assert (getattr(found, key), found.suggest_over) == (["write", "edit"], 30)


@pytest.mark.parametrize("junk", ["edit", 5, {}])
def test_invalid_list_of_tools_leaves_that_of_the_lock(home, lock, junk):
    lock(tools={"disabled": ["write"]})
    assert load_settings(home, flags={"tools": {"disabled": junk}}).settings.tools.disabled[:1] == ["write"]


def test_adjustable_keys_are_free(home, lock):
    lock(adjustable=["plugins.http", "policy.timeout", "grants.notes"], policy={"timeout": 5, "workers": 3})
    flags = {
        "policy": {"timeout": 50, "workers": 50},
        "plugins": {"http": {"retries": 9}, "sql": {"x": 1}},
        "grants": {"notes": ["http"]},
    }
    found = load_settings(home, flags=flags).settings
    assert (found.policy.timeout, found.policy.workers, found.plugins) == (50, 3, {"http": {"retries": 9}})
    assert found.grants == {"notes": ["http"]}


@pytest.mark.parametrize("junk", [5, [], "x"])
@pytest.mark.parametrize("section", ["policy", "plugins", "grants"])
def test_a_section_cannot_be_replaced(home, lock, section, junk):
    lock(policy={"timeout": 5}, plugins={"http": {"retries": 1}}, grants={"notes": ["sql"]})
    found = load_settings(home, flags={section: junk})
    assert found.settings.policy.timeout == 5
    assert found.settings.plugins == {"http": {"retries": 1}}
    assert found.settings.grants == {"notes": ["sql"]}
