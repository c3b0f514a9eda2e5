import hashlib
import json
import tomllib
from uuid import UUID

import pytest
import tomli_w
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.pylock import Pylock
from packaging.requirements import Requirement
from sideband.__main__ import main
from sideband_dist import DistLock, DistRefused, InstallFailed
from sideband_dist._exporting import FORMATS
from sideband_dist._files import lock_text, read_manifest, write_text
from sideband_dist._locking import LockOptions, _plugins, make_lock
from sideband_dist._uv import PackageSources, resolve
from sideband_skill_packages import InstallerMissing


def test_init_writes_a_file_that_is_valid_and_names_what_is_installed(dist, folder):
    code, data = dist("init", "--name", "acme")
    assert code == 0
    manifest = read_manifest(folder / "sideband.toml")
    assert manifest.dist.name == "acme"
    assert set(data["packages"]) == set(manifest.dist.packages)
    assert "guard-limits" in manifest.settings.policy.guards
    code, data = dist("init")
    assert (code, data["error"]["code"]) == (2, "usage")
    assert dist("init", "--force")[0] == 0


def test_exports_are_valid_and_complete(lock):
    pylock = Pylock.from_dict(tomllib.loads(FORMATS["pylock"](lock)))
    pylock.validate()
    assert [(str(one.name), str(one.version)) for one in pylock.packages] == [
        ("acme-geo", "1.0"),
        ("acme-watch", "2.0"),
    ]
    lines = FORMATS["requirements"](lock).replace("\\\n", "").splitlines()
    parsed = [Requirement(line.partition("--hash")[0]) for line in lines]
    assert [str(one.marker or "") for one in parsed] == ["", 'sys_platform != "win32"']
    assert lines[1].count("--hash=sha256:") == 2
    text = FORMATS["cyclonedx"](lock)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    assert {one["purl"] for one in bill["components"]} == {"pkg:pypi/acme-geo@1.0", "pkg:pypi/acme-watch@2.0"}
    assert UUID(bill["serialNumber"].removeprefix("urn:uuid:"))
    assert text == FORMATS["cyclonedx"](lock)
    docker = FORMATS["dockerfile"](lock)
    assert "python:3.11-slim" in docker
    assert "/opt/acme/sideband.lock" in docker


def test_exports_name_only_the_places_that_the_team_named(data):
    data["dist"] |= {"indexes": ["https://acme.example/pip"], "wheels": ["wheels"], "default_index": False}
    lock = DistLock.model_validate(data)
    requirements = FORMATS["requirements"](lock).splitlines()
    assert requirements[:2] == ["--index-url https://acme.example/pip", "--find-links wheels"]
    assert 'index = "https://acme.example/pip"' in FORMATS["pylock"](lock)


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("dist", {"name": "acme\nRUN evil"}),
        ("dist", {"name": "acme/../../etc"}),
        ("dist", {"python": ">=3.11\nRUN evil"}),
        ("dist", {"indexes": ["https://acme.example\n--trusted-host evil.example"]}),
        ("dist", {"indexes": ["https://acme.example --extra-index-url https://evil.example"]}),
        ("dist", {"indexes": ["https://user:pa55word@acme.example/pip"]}),
        ("dist", {"indexes": ["--no-verify"]}),
        ("dist", {"wheels": ["wheels\n--index-url https://evil.example"]}),
        ("packages", {"name": "acme-geo\n--index-url https://evil.example"}),
        ("packages", {"name": "acme_geo"}),
        ("packages", {"version": "1.0 @ https://evil.example/x.whl"}),
        ("packages", {"marker": "python_version > '3' --config-settings=a=b"}),
        ("packages", {"marker": "x\n--index-url https://evil.example"}),
        ("packages", {"wheels": f"{'1' * 64}  ../../evil.whl\n"}),
        ("packages", {"wheels": f"{'1' * 64}  a.whl --index-url https://evil.example\n"}),
        ("packages", {"requires": ["missing"]}),
        ("plugins", {"package": "missing"}),
    ],
)
def test_lock_that_would_add_something_to_an_export_is_refused(dist, folder, data, table, change):
    (data["dist"] if table == "dist" else data[table][0]).update(change)
    write_text(folder / "sideband.lock", tomli_w.dumps(data))
    for name in FORMATS:
        code, found = dist("export", "--format", name)
        assert (code, found["error"]["code"]) == (5, "dist.invalid")
        assert "pa55word" not in json.dumps(found)


@pytest.mark.parametrize(
    "table",
    [
        'indexes = ["https://user:pa55word@acme.example/pip"]',
        'indexes = ["https://pa55word@acme.example/pip"]',
        'wheels = ["a\\n--index-url https://evil.example"]',
        'packages.acme = {extras = ["a]\\nevil"]}',
        'packages.acme = {path = "a\\nb"}',
    ],
)
def test_place_with_a_password_or_another_line_is_refused(dist, folder, table):
    (folder / "sideband.toml").write_text(f'[dist]\n{table}\npackages.geo = "*"\n')
    code, found = dist("lock")
    assert (code, found["error"]["code"]) == (5, "dist.invalid")
    assert "pa55word" not in json.dumps(found)
    assert not (folder / "sideband.lock").exists()


def test_passwords_of_indexes_that_uv_is_configured_with_are_not_in_errors(folder, monkeypatch):
    monkeypatch.setenv("UV_INDEX", "http://user:pa55word@127.0.0.1:1/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(InstallFailed, match="127") as caught:
        resolve("acme-geo", PackageSources(), ">=3.11", folder)
    assert "pa55word" not in f"{caught.value}{caught.value.as_dict()}"


@pytest.mark.parametrize("others", [{"default_index": True}, {"indexes": ["https://a.example", "https://b.example"]}])
def test_pylock_names_no_index_if_packages_may_be_from_another(data, others):
    data["dist"] |= {"indexes": ["https://acme.example/pip"], "default_index": False, **others}
    assert "index = " not in FORMATS["pylock"](DistLock.model_validate(data))


@pytest.mark.parametrize(
    ("table", "expected"),
    [("[dist]\nwheel = []", "`dist.wheel`: unknown key (did you mean `wheels`?)"), ("[polcy]", "did you mean `policy`?")],
)
def test_unknown_key_suggests_the_closest_and_has_no_place_in_code(dist, folder, table, expected):
    (folder / "sideband.toml").write_text(f"{table}\n")
    code, data = dist("lock")
    assert (code, data["error"]["code"]) == (5, "dist.invalid")
    assert expected in data["error"]["message"]
    assert "raised_at" not in data["error"]


def test_missing_file_has_no_place_in_code(dist):
    assert "raised_at" not in dist("lock")[1]["error"]


@pytest.mark.parametrize("changed", [True, False])
def test_sync_says_that_the_file_was_changed_since_it_was_locked(folder, data, capsys, changed):
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").touch()
    manifest = folder / "sideband.toml"
    manifest.write_text('[dist.packages]\nacme-geo = "*"\n')
    data["manifest"] = "0" * 64 if changed else hashlib.sha256(manifest.read_bytes()).hexdigest()
    write_text(folder / "sideband.lock", lock_text(DistLock.model_validate(data)))
    main(["dist", "sync", "--environment", "mine"])
    assert ("changed since it was locked; `sideband dist lock`" in capsys.readouterr().err) is changed


def test_export_writes_a_file(dist, folder, lock):
    write_text(folder / "sideband.lock", lock_text(lock))
    code, data = dist("export", "--format", "requirements", "--output", "requirements.txt")
    assert (code, data["file"]) == (0, "requirements.txt")
    assert (folder / "requirements.txt").read_text() == FORMATS["requirements"](lock)


def test_diff_names_versions_hashes_plugins_ops_levels_rights_and_settings(dist, folder, data):
    write_text(folder / "sideband.lock", lock_text(DistLock.model_validate(data)))
    data["packages"][0] |= {
        "version": "1.1",
        "requires": [],
        "wheels": f"{'3' * 64}  acme_geo-1.1-py3-none-any.whl\n",
    }
    del data["packages"][1]
    data["plugins"][1] |= {"ops": {"geo.find": "RESTRICTED geo", "geo.drop": "PRIVILEGED geo"}, "uses": ["http"]}
    del data["plugins"][0]
    data["settings"]["policy"] = {"isolation": "none", "workers": 3}
    write_text(folder / "new.lock", lock_text(DistLock.model_validate(data)))
    code, found = dist("diff", "sideband.lock", "new.lock")
    assert code == 0
    assert {(one["what"], one["name"], one["change"]) for one in found} == {
        ("package", "acme-geo", "version"),
        ("package", "acme-geo", "hash"),
        ("package", "acme-watch (sys_platform != 'win32')", "removed"),
        ("plugin", "guard.watch", "removed"),
        ("plugin", "op.geo", "op geo.find"),
        ("plugin", "op.geo", "op geo.drop"),
        ("plugin", "op.geo", "right http"),
        ("plugin", "op.geo", "right http:host=geo.example"),
        ("setting", "policy.isolation", "value"),
        ("setting", "policy.deny.op.shell", "removed"),
        ("setting", "policy.workers", "added"),
    }
    level = next(one for one in found if one["change"] == "op geo.find")
    assert (level["old"], level["new"]) == ("MONITORED geo", "RESTRICTED geo")
    assert dist("diff", "new.lock", "new.lock") == (0, [])


def test_check_refuses_a_lock_of_another_sideband_toml(dist, folder, lock):
    write_text(folder / "sideband.lock", lock_text(lock))
    (folder / "sideband.toml").write_text("[dist.packages]\nacme = '*'\n")
    code, data = dist("check")
    assert (code, data["error"]["code"]) == (5, "dist.invalid")
    assert "was made from another sideband.toml" in data["error"]["message"]


@pytest.mark.parametrize("words", [("check",), ("export", "--format", "pylock"), ("diff", "old.lock"), ("lock",)])
def test_missing_files_are_named(dist, words):
    code, data = dist(*words)
    assert (code, data["error"]["code"]) == (5, "dist.invalid")
    assert data["error"]["hint"]


def test_sync_does_not_replace_a_folder_that_is_not_an_environment(dist, folder, lock):
    write_text(folder / "sideband.lock", lock_text(lock))
    (folder / "mine").mkdir()
    code, data = dist("sync", "--environment", "mine")
    assert (code, data["error"]["code"]) == (5, "dist.invalid")
    assert list((folder / "mine").iterdir()) == []


def test_package_that_does_not_exist_is_reported_and_nothing_is_written(dist, folder):
    (folder / "sideband.toml").write_text("[dist]\noffline = true\n[dist.packages]\nacme-nothing = '*'\n")
    code, data = dist("lock")
    assert (code, data["error"]["code"]) == (4, "dist.install")
    assert [one.name for one in folder.iterdir()] == ["sideband.toml"]


def test_local_package_with_another_name_is_refused(folder):
    (folder / "other-1.0-py3-none-any.whl").write_bytes(b"")
    packages = "[dist.packages]\nacme = { path = 'other-1.0-py3-none-any.whl' }\n"
    (folder / "sideband.toml").write_text(packages)
    manifest = read_manifest(folder / "sideband.toml")
    with pytest.raises(ValueError, match=r"is the package other-1\.0"):
        make_lock(manifest, folder / "sideband.lock", LockOptions(cached=True))


def described(**changes):
    plugin = {"kind": "op", "name": "geo", "value": "geo", "api": 1, "distribution": "Acme_Geo", "version": "1"}
    return {**plugin, "state": "found", "reason": "", "ops": {}, "uses": [], **changes}


def test_plugins_that_hosts_would_not_start_with_are_all_named(folder):
    text = "[dist.packages]\nacme-geo = '*'\n[policy]\nguards = ['watch']\n"
    (folder / "sideband.toml").write_text(text)
    manifest = read_manifest(folder / "sideband.toml")
    found = [
        described(),
        described(name="map", state="failed", reason="it is claimed by two"),
        described(name="sea", distribution="acme-sea"),
        described(name="old", state="denied", distribution="acme-old"),
    ]
    with pytest.raises(DistRefused) as caught:
        _plugins({"plugins": found, "problems": []}, manifest)
    assert caught.value.problems == (
        "op.map (Acme_Geo 1): it is claimed by two",
        "acme-sea has plugins, but is not in `[dist.packages]`",
        "the required guard `watch` is missing",
    )


def test_uv_is_searched_in_absolute_folders_only(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "uv", None)
    monkeypatch.setenv("PATH", "bin:")
    (folder / "bin").mkdir()
    (folder / "bin" / "uv").write_text("#!/bin/sh\n")
    (folder / "bin" / "uv").chmod(0o755)
    with pytest.raises(InstallerMissing):
        resolve("", PackageSources(), ">=3.11", folder)


def test_configured_indexes_of_the_user_are_not_used_by_an_offline_distribution(monkeypatch):
    monkeypatch.setenv("UV_INDEX_URL", "https://elsewhere.example/pip")
    assert "UV_INDEX_URL" not in PackageSources(offline=True).environment()
    assert "UV_INDEX_URL" in PackageSources().environment()
    assert PackageSources(offline=True).words() == ["--no-index", "--no-config"]
    words = PackageSources(("a", "b"), default_index=False).words()
    assert words == ["--default-index", "b", "--no-config", "--index", "a"]


def test_failure_of_uv_has_its_output(folder):
    with pytest.raises(InstallFailed, match="could not resolve the packages"):
        resolve("acme nonsense ==", PackageSources(offline=True), ">=3.11", folder)
