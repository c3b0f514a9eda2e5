import sys

from sideband.plugins import find_entry_points


def of(site, *distributions):
    found = find_entry_points()
    return [one for one in found if not distributions or one.distribution in distributions]


def test_entry_point_contains_all_metadata(site):
    module = site.plugin("op", "tidal", "", requires=["sideband-core>=0.1,<1", "attrs"], version="2.5")
    (found,) = of(site, "test-tidal")
    assert (found.api, found.kind, found.name, found.value) == (1, "op", "tidal", module)
    assert (found.distribution, found.version, found.location) == ("test-tidal", "2.5", str(site.folder))
    assert found.requires == ("sideband-core>=0.1,<1",)
    assert (found.unmet, found.editable, found.installer, found.hashed) == ("", False, "by-hand", True)


def test_discovery_does_not_import_plugins(site):
    module = site.plugin("op", "tidal", "raise RuntimeError('imported')")
    assert of(site, "test-tidal")
    assert module not in sys.modules


def test_find_entry_points_filters_by_kind(site):
    site.plugin("op", "tidal", "")
    site.plugin("hook", "surf", "")
    kinds = {found.kind for found in find_entry_points("hook")}
    assert kinds == {"hook"}


def test_other_groups_are_ignored(site):
    site.distribution("test-other", {"console_scripts": {"x": "y:z"}, "sideband_like.v1.op": {"x": "y"}})
    assert not of(site, "test-other")


def test_group_without_a_version_has_version_0(site):
    site.distribution("test-old", {"sideband.op": {"x": "y"}})
    (found,) = of(site, "test-old")
    assert (found.api, found.kind) == (0, "op")


def test_shadowed_distribution_is_ignored(site, tmp_path, monkeypatch):
    site.distribution("test-tidal", {"sideband.v1.op": {"tidal": "later"}}, version="1.0")
    first = tmp_path / "first"
    site.distribution("Test_Tidal", {"sideband.v1.op": {"tidal": "earlier"}}, version="2.0", folder=first)
    monkeypatch.syspath_prepend(str(first))
    (found,) = of(site, "test-tidal", "Test_Tidal")
    assert (found.value, found.version) == ("earlier", "2.0")


def test_distribution_without_plugins_shadows_one_with_plugins(site, tmp_path, monkeypatch):
    site.distribution("test-tidal", {"sideband.v1.op": {"tidal": "later"}})
    first = tmp_path / "first"
    site.distribution("test-tidal", {}, version="2.0", folder=first)
    monkeypatch.syspath_prepend(str(first))
    assert not of(site, "test-tidal")


def test_editable_distribution_has_no_hashes(site):
    module = site.module()
    site.distribution(
        "test-tidal",
        {"sideband.v1.op": {"tidal": module}},
        modules=[module],
        direct_url='{"url": "file:///x", "dir_info": {"editable": true}}',
    )
    (found,) = of(site, "test-tidal")
    assert (found.editable, found.hashed) == (True, False)


def test_unmet_requirement_is_reported(site):
    site.plugin("op", "tidal", "", requires=["sideband_core>=99"])
    (found,) = of(site, "test-tidal")
    assert "requires sideband-core>=99" in found.unmet


def test_requirement_for_another_environment_is_ignored(site):
    site.plugin("op", "tidal", "", requires=["sideband-core>=99; python_version < '3'"])
    assert of(site, "test-tidal")[0].unmet == ""


def test_invalid_requirement_is_reported(site):
    site.plugin("op", "tidal", "", requires=["sideband-core>>nonsense"])
    assert "its requirement `sideband-core>>nonsense` is invalid" in of(site, "test-tidal")[0].unmet


def test_working_directory_does_not_provide_plugins(site, tmp_path, monkeypatch):
    folder = tmp_path / "downloads"
    site.distribution("test-hostile", {"sideband.v1.hook": {"hostile": "evil"}}, folder=folder)
    monkeypatch.chdir(folder)
    for entry in ("", ".", str(folder)):
        monkeypatch.setattr(sys, "path", [entry, *sys.path])
        assert not of(site, "test-hostile")


def test_link_to_the_working_directory_does_not_provide_plugins(site, tmp_path, monkeypatch):
    folder = tmp_path / "downloads"
    site.distribution("test-hostile", {"sideband.v1.hook": {"hostile": "evil"}}, folder=folder)
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(tmp_path / "link"))
    assert not of(site, "test-hostile")


def test_deleted_working_directory_is_not_an_error(site, tmp_path, monkeypatch):
    site.plugin("op", "tidal", "")
    (tmp_path / "deleted").mkdir()
    monkeypatch.chdir(tmp_path / "deleted")
    (tmp_path / "deleted").rmdir()
    assert of(site, "test-tidal")


def test_damaged_metadata_does_not_hide_other_distributions(site):
    from sideband.plugins._metadata import read_installed

    site.plugin("op", "tidal", "")
    (site.distribution("test-nameless", {"sideband.v1.op": {"x": "y"}}) / "METADATA").unlink()
    broken = site.distribution("test-broken", {"sideband.v1.op": {"x": "y"}})
    (broken / "entry_points.txt").write_bytes(b"[sideband.v1.op]\nno equals sign\n")
    binary = site.distribution("test-binary", {"sideband.v1.op": {"x": "y"}})
    (binary / "METADATA").write_bytes(b"\xff\xfe\x00Name: \xff")
    assert of(site, "test-tidal")
    problems = [problem for problem in read_installed().problems if str(site.folder) in problem]
    assert len(problems) == 2
    assert all("no name in its metadata" in problem for problem in problems)


FAST = {"extras": ["fast", "all"], "requires": ['no-such-thing>=2; extra == "fast"', 'test-surf[Fast]; extra == "all"']}


def surf(site, extra, **details):
    """Write a distribution with an op that requires an extra, and return why it cannot be used."""
    module = site.module()
    site.distribution("test-surf", {"sideband.v1.op": {"surf": f"{module} [{extra}]"}}, **(FAST | details))
    (found,) = of(site, "test-surf")
    return found.unmet


def test_extra_that_is_not_installed_is_reported(site):
    problem = "the extra `test-surf[fast]` requires no-such-thing>=2, but it is not installed"
    assert surf(site, "fast") == problem


def test_extra_with_another_version_of_a_requirement_is_reported(site):
    site.distribution("No_Such.Thing", {}, version="1.5")
    assert surf(site, "fast").endswith("requires no-such-thing>=2, but 1.5 is installed")


def test_extra_is_accepted_once_its_requirements_are_installed(site):
    assert surf(site, "fast")
    site.distribution("no-such-thing", {}, version="2.1rc1")
    assert [one.unmet for one in of(site, "test-surf")] == [""]


def test_extra_that_requires_another_one_is_followed(site):
    assert "`test-surf[fast]` requires no-such-thing>=2" in surf(site, "All")


def test_extra_that_requires_itself_ends(site):
    assert surf(site, "all", requires=['test-surf[all]; extra == "all"']) == ""


def test_requirements_of_other_extras_and_environments_are_not_needed(site):
    requires = [
        "absent",
        'absent; python_version > "3"',
        'absent; extra == "all"',
        'absent; extra == "fast" and python_version < "3"',
    ]
    assert surf(site, "fast", requires=requires) == ""


def test_unknown_extra_is_reported(site):
    assert surf(site, "fsat") == "test-surf does not define the extra `fsat`"


def test_invalid_requirement_of_an_extra_is_reported(site):
    assert "cannot be read" in surf(site, "fast", requires=['??? ; extra == "fast"'])
