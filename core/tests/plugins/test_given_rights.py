"""The list of plugins shows to which op family rights of its own were given, and by whom."""

from sideband.plugins import PluginPolicy, PluginRecord, note_rights


def test_only_the_op_plugin_of_the_name_and_the_distribution_is_shown_with_its_rights(tmp_path):
    (tmp_path / "grants.toml").write_text('[plugins."geo:first"]\ncapabilities = ["web:host=a", "web:host=b"]\n')
    records = [
        PluginRecord("op", "geo", distribution="first"),
        PluginRecord("op", "geo", distribution="second"),
        PluginRecord("hook", "geo", distribution="first"),
        PluginRecord("op", "map", distribution="first"),
    ]
    note_rights(tmp_path, PluginPolicy(rights={"plugin:geo": ("web:host=b", "mail")}), records)
    found = [[(one["capability"], one["given_by"]) for one in record.rights] for record in records]
    by_policy = [("mail", "policy"), ("web:host=b", "policy")]
    assert found == [[by_policy[0], ("web:host=a", "remembered"), by_policy[1]], by_policy, [], []]
