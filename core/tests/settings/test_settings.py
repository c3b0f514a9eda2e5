"""Layers of settings, their precedence, and messages about invalid values."""

import os

import pytest
from sideband import ConfigurationError
from sideband.settings import Settings, load_settings, merge, setting, trust_project, trusted_project
from sideband.workers import Isolation


def write(folder, text):
    file = folder / "sideband.toml"
    file.write_text(text)
    return file


def timeout(seconds):
    return f"[policy]\ntimeout = {seconds}\n"


def test_defaults_apply_without_layers(home):
    loaded = load_settings(home)
    assert loaded.settings == Settings()
    assert {source for _, _, source in loaded.effective()} == {"default"}


def test_each_layer_overrides_the_previous_and_names_its_source(home, project):
    sources = {}
    user = write(home, timeout(1))
    sources["user"] = load_settings(home, project=project)
    file = write(project, timeout(2))
    trust_project(home, project)
    sources["project"] = load_settings(home, project=project)
    environment = {"SIDEBAND_POLICY__TIMEOUT": "3"}
    sources["variable"] = load_settings(home, project=project, environment=environment)
    flags = {"policy": {"timeout": 4}}
    sources["command line"] = load_settings(home, project=project, environment=environment, flags=flags)
    assert [(loaded.settings.policy.timeout, loaded.sources["policy", "timeout"]) for loaded in sources.values()] == [
        (1, str(user)),
        (2, str(file)),
        (3, "SIDEBAND_POLICY__TIMEOUT"),
        (4, "command line"),
    ]


def test_layer_changes_only_the_keys_that_it_sets(home):
    write(home, "[policy]\ntimeout = 5\nstrict = true\n[plugins.http]\na = 1\nb = {x = 1, y = 2}\n")
    loaded = load_settings(home, flags={"plugins": {"http": {"b": {"x": 3}}}, "policy": {"timeout": 6}})
    assert (loaded.settings.policy.timeout, loaded.settings.policy.strict) == (6, True)
    # The value of a plugin's key is replaced, not merged.
    assert loaded.settings.plugins == {"http": {"a": 1, "b": {"x": 3}}}


def test_untrusted_project_is_ignored_with_a_notice(home, project):
    file = write(project, timeout(2))
    loaded = load_settings(home, project=project)
    assert loaded.settings.policy.timeout == 60
    assert str(file) in loaded.notices[0]
    assert "--trust" in loaded.notices[0]


def test_modified_project_must_be_trusted_again(home, project):
    write(project, timeout(2))
    trust_project(home, project)
    assert load_settings(home, project=project).settings.policy.timeout == 2
    write(project, timeout(3))
    loaded = load_settings(home, project=project)
    assert loaded.settings.policy.timeout == 60
    assert loaded.notices


def test_trusting_a_project_keeps_other_trusted_projects(home, project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for folder in (project, other):
        write(folder, timeout(2))
        trust_project(home, folder)
    assert not load_settings(home, project=project).notices
    assert not load_settings(home, project=other).notices


def test_project_file_of_a_parent_folder_applies(home, project):
    write(project, timeout(2))
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    trust_project(home, below)
    assert load_settings(home, project=below).settings.policy.timeout == 2


def test_user_file_is_not_a_project_file(home):
    write(home, timeout(2))
    loaded = load_settings(home, project=home)
    assert (loaded.settings.policy.timeout, loaded.notices) == (2, ())


def test_folder_without_a_project_file_is_trusted_until_it_has_one(home, project):
    assert trusted_project(home, project) is None
    trust_project(home, project)
    (project / "deeper").mkdir()
    assert trusted_project(home, project / "deeper") == project
    assert trusted_project(home, project.parent) is None
    assert load_settings(home, project=project).notices == ()
    write(project, timeout(2))
    assert trusted_project(home, project / "deeper") is None
    assert load_settings(home, project=project).settings.policy.timeout != 2


def test_file_of_a_parent_folder_ends_the_trust_in_a_folder_without_one(home, project):
    trust_project(home, project)
    write(project.parent, timeout(2))
    assert trusted_project(home, project) is None


def test_invalid_toml_names_the_file(home):
    file = write(home, "timeout = = 5")
    with pytest.raises(ConfigurationError, match="invalid TOML") as caught:
        load_settings(home)
    assert caught.value.source == str(file)
    assert caught.value.exit_code == 5


def test_binary_file_is_rejected(home):
    (home / "sideband.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="invalid TOML"):
        load_settings(home)


def test_unreadable_file_is_named(home, monkeypatch):
    file = write(home, timeout(1))

    def fail(self, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(self))

    for name in ("read_text", "read_bytes"):
        monkeypatch.setattr(type(file), name, fail)
    with pytest.raises(ConfigurationError, match="cannot be read: Permission denied") as caught:
        load_settings(home)
    assert caught.value.source == str(file)


def test_misspelt_key_suggests_the_closest_and_names_its_source(home):
    file = write(home, "[policy]\ntimout = 5\n")
    with pytest.raises(ConfigurationError, match=r"`policy.timout`.*did you mean `policy.timeout`") as caught:
        load_settings(home)
    assert caught.value.source == str(file)


def test_table_of_a_plugin_at_the_top_suggests_its_place(home):
    write(home, '[geo]\nkey = "secret-value"\n')
    with pytest.raises(ConfigurationError, match=r"unknown key \(did you mean `\[plugins.geo\]`\?\)") as caught:
        load_settings(home)
    assert "secret-value" not in str(caught.value.as_dict())


def test_unknown_value_at_the_top_suggests_no_plugin(home):
    write(home, "geo = 5\n")
    with pytest.raises(ConfigurationError, match=r"unknown key$"):
        load_settings(home)


def test_variable_of_a_plugin_without_its_section_suggests_its_place(home):
    (notice,) = load_settings(home, environment={"SIDEBAND_GEO__UNITS": "km"}).notices
    assert "unknown section `geo` (did you mean `SIDEBAND_PLUGINS__GEO__UNITS`?)" in notice


def test_misspelt_section_suggests_the_closest(home):
    with pytest.raises(ConfigurationError, match="did you mean `policy`"):
        load_settings(home, flags={"polcy": {"timeout": 5}})


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("timeout", 0, "greater than 0"),
        ("timeout", float("nan"), "finite"),
        ("maximum_timeout", float("inf"), "finite"),
        ("maximum_timeout", 59, "must be at least `timeout`, which is 60"),
        ("isolation", "strong", "`full`.*`,call`.*strong"),
        ("isolation", "full,none", "expected a tier, `call`, or both"),
        ("isolation", "call,call", "expected a tier, `call`, or both"),
        ("isolation", "", "`full`.*`,call`"),
        ("memory", "1X", "`512M` or `2G`"),
        ("memory", "-1G", "`512M` or `2G`"),
        ("memory", True, "`512M` or `2G`"),
        ("memory", 1.5, "`512M` or `2G`"),
        ("memory", "31M", "between 32M"),
        ("memory", "17T", "and 16T"),
        ("maximum_memory", "512M", "must be at least `memory`, which is 1G"),
        ("workers", 0, "greater than or equal to 1"),
        ("workers", 1001, "less than or equal to 1000"),
        ("idle_seconds", 0, "greater than or equal to 1"),
        ("order", {"op_cal": ["a"]}, r"unknown hook `op_cal` \(did you mean `op_call`"),
        ("deadlines", {"op_cal": 1.0}, r"unknown hook `op_cal` \(did you mean `op_call`"),
    ],
)
def test_invalid_value_names_its_key_and_source(home, key, value, problem):
    with pytest.raises(ConfigurationError, match=problem) as caught:
        load_settings(home, flags={"policy": {key: value}})
    assert caught.value.key == f"policy.{key}"
    assert caught.value.source == "command line"


def test_text_in_place_of_a_table_shows_how_to_write_one(home):
    json = '{"op.demo": "no"}'
    with pytest.raises(ConfigurationError, match=r"`policy\.deny`.*expected a table") as caught:
        load_settings(home, environment={"SIDEBAND_POLICY__DENY": json})
    assert caught.value.hint == 'write a table of TOML, such as { NAME = "value" }'


@pytest.mark.parametrize(("key", "value"), [("memory", "5G"), ("timeout", 3601)])
def test_default_must_not_exceed_the_maximum(home, key, value):
    with pytest.raises(ConfigurationError, match=f"`policy.maximum_{key}`: must be at least `{key}`"):
        load_settings(home, flags={"policy": {key: value}})
    load_settings(home, flags={"policy": {key: value, f"maximum_{key}": value}})


@pytest.mark.parametrize(
    ("text", "tier", "alone", "shown"),
    [
        ("full", Isolation.FULL, False, "full"),
        ("call", Isolation.FULL, True, "full,call"),
        ("no-namespaces,call", Isolation.NO_NAMESPACES, True, "no-namespaces,call"),
        ("call, none", Isolation.NONE, True, "none,call"),
    ],
)
def test_isolation_is_parsed_into_tier_and_alone(home, text, tier, alone, shown):
    policy = load_settings(home, environment={"SIDEBAND_POLICY__ISOLATION": text}).settings.policy
    assert (policy.tier, policy.alone, policy.isolation) == (tier, alone, shown)


@pytest.mark.parametrize(
    ("text", "count"),
    [("64M", 64 << 20), ("1g", 1 << 30), ("2GiB", 2 << 30), ("1 TB", 1 << 40), (40_000_000, 40_000_000)],
)
def test_memory_accepts_bytes_and_units(home, text, count):
    flags = {"policy": {"memory": text, "maximum_memory": "16T"}}
    assert load_settings(home, flags=flags).settings.policy.memory == count


def test_variable_without_a_key_is_rejected(home):
    with pytest.raises(ConfigurationError, match="`SIDEBAND_POLICY` does not name a key"):
        load_settings(home, environment={"SIDEBAND_POLICY": "5"})
    with pytest.raises(ConfigurationError, match="does not name a key"):
        load_settings(home, environment={"SIDEBAND_POLICY__": "5"})


def test_unrelated_variables_are_ignored(home):
    loaded = load_settings(home, environment={"SIDEBAND_HOME": "/x", "POLICY__TIMEOUT": "5", "PATH": "/bin"})
    assert loaded.settings == Settings()


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), ("true", True), ('["a"]', ["a"]), ("full", "full"), ('"5"', "5"), ("a b", "a b")]
)
def test_setting_is_parsed_as_toml_or_used_as_text(text, value):
    assert setting(["policy", "x"], text) == {"policy": {"x": value}}


def test_table_replaces_a_scalar():
    into = {"plugins": {"http": 5}}
    merge(into, {"plugins": {"http": {"a": 1}}})
    assert into == {"plugins": {"http": {"a": 1}}}


def test_effective_yields_each_key_with_value_and_source(home):
    file = write(home, '[policy.deny]\n"op.http" = "no network"\n[grants]\nstars = ["http"]\n')
    effective = {key: (value, source) for key, value, source in load_settings(home).effective()}
    assert effective["policy.deny.op.http"] == ("no network", str(file))
    assert effective["grants.stars"] == (["http"], str(file))
    assert effective["policy.timeout"] == (60.0, "default")


def test_plugin_policy_contains_the_source_of_each_key(home):
    file = write(home, '[plugins.http]\na = 1\n[policy]\nonly = ["op.http"]\norder = {op_call = ["x"]}\n')
    policy = load_settings(home).plugin_policy()
    assert policy.config_source == {"http": str(file), "http.a": str(file)}
    assert policy.only == frozenset({"op.http"})
    assert policy.order == {"op_call": ("x",)}


def test_unknown_keys_of_distributions_are_rejected_with_the_closest_one(home):
    write(home, '[dist]\nname = "ours"\nindexs = []\n')
    with pytest.raises(ConfigurationError, match=r"`dist.indexs`.*did you mean `dist.indexes`") as caught:
        load_settings(home)
    assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('packages = { "a b" = "*" }', "`a b` is not the name of a package"),
        ('packages = { acme = "1.0" }', r'expected a version such as "~=1.2"'),
        ('packages = { acme = { path = "x", hash = "y" } }', "unknown key"),
        ('adjustable = ["policy"]', "a key such as `policy.timeout`, got `policy`"),
        ('adjustable = ["policy.deny"]', "always locked"),
        ('adjustable = ["policy.guards"]', "always locked"),
        ('adjustable = ["policy.tmeout"]', "always locked, or not a key"),
    ],
)
def test_invalid_distribution_is_rejected_by_name(home, line, problem):
    write(home, f"[dist]\n{line}\n")
    with pytest.raises(ConfigurationError, match=problem):
        load_settings(home)


@pytest.mark.parametrize(
    "text",
    [
        '[dist]\nindexes = ["https://me:pa55word@acme.example/pip"]\n',
        '[dist]\nindexes = "https://me:pa55word@acme.example/pip"\n',
        '[dist]\npackages.acme = {path = ["https://pa55word@acme.example"]}\n',
        '[plugins]\nopenai = ["pa55word"]\n',
        '[plugins]\nopenai = "pa55word"\n',
    ],
)
def test_message_about_a_value_has_no_secret(home, text):
    write(home, text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(home)
    assert "pa55word" not in f"{caught.value}{caught.value.as_dict()}"


def test_version_of_a_package_can_be_a_text(home):
    write(home, '[dist.packages]\nsideband-http = "~=0.1"\nours = { path = "../ours" }\n')
    packages = load_settings(home).settings.dist.packages
    assert (packages["sideband-http"].version, packages["ours"].path) == ("~=0.1", "../ours")


def test_tolerant_loading_omits_invalid_parts_and_lists_them(home):
    write(home, '[agent]\nmodle = "x"\n[policy]\ntimeout = "x"\nworkers = 5\n[grants]\na = 1\nb = ["sql"]\n')
    loaded = load_settings(home, environment={"SIDEBAND_AGENT__TURNS": "many"}, tolerant=True)
    assert sorted(problem.key for problem in loaded.problems) == [
        *("agent.modle", "agent.turns", "grants.a", "policy.timeout")
    ]
    assert (loaded.settings.policy.timeout, loaded.settings.policy.workers) == (60, 5)
    assert loaded.settings.grants == {"b": ["sql"]}
    assert loaded.policy_problem is None
    assert loaded.plugin_policy().only is None


def test_tolerant_loading_omits_a_file_and_a_variable_but_not_others(home):
    write(home, "[policy\n")
    environment = {"SIDEBAND_POLICY": "x", "SIDEBAND_POLICY__TIMEOUT": "5"}
    loaded = load_settings(home, environment=environment, tolerant=True)
    assert [problem.key for problem in loaded.problems] == ["sideband.toml", "policy"]
    assert loaded.settings.policy.timeout == 5
    assert loaded.policy_problem is loaded.problems[0]


@pytest.mark.parametrize(
    "text",
    [
        '[policy]\ndeny = {"op.http" = 1}\n',
        "[policy]\nonly = [1]\n",
        "[policy]\nconflicts = 1\n",
        "[policy]\nstrikt = true\n",
        "[polcy]\n",
        "policy = 1\n",
        '[policy]\ntimeout = 9999\ndeny = {"op.http" = "no"}\n',  # exceeds the default of `maximum_timeout`
    ],
)
def test_plugins_are_denied_if_an_invalid_part_may_concern_them(home, text):
    write(home, text)
    loaded = load_settings(home, tolerant=True)
    assert loaded.policy_problem is not None
    assert loaded.plugin_policy().only == {"sideband-cli"}
    assert "the configuration is invalid" in loaded.plugin_policy().only_reason


def test_project_that_replaces_the_file_of_a_plugin_is_reported(home, project):
    user = write(home, '[policy.files]\n"guard.night" = "night.py"\n"hook.same" = "/same.py"\n')
    file = write(project, '[policy.files]\n"guard.night" = "day.py"\n"hook.same" = "/same.py"\n')
    trust_project(home, project)
    loaded = load_settings(home, project=project)
    assert loaded.notices == (f"{file} replaces the file of `guard.night`, which {user} sets",)


@pytest.mark.parametrize("name", ["proj 🚀", 'a "quoted" name'])
def test_project_in_a_folder_with_any_name_can_be_trusted(home, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    write(folder, timeout(2))
    trust_project(home, folder)
    assert load_settings(home, project=folder).settings.policy.timeout == 2


def test_project_whose_path_cannot_be_stored_is_refused_and_others_stay_trusted(home, project, tmp_path):
    write(project, timeout(2))
    trust_project(home, project)
    folder = tmp_path / os.fsdecode(b"bad\xff")
    folder.mkdir()
    with pytest.raises(ConfigurationError, match="its path is not UTF-8"):
        trust_project(home, folder)
    assert trusted_project(home, project) == project
