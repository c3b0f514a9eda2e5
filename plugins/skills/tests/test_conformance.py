"""The plugins pass the tests that every loader and every op family passes."""

from sideband_testing.conformance import Example, LoaderConformance, OpFamilyConformance

MANIFEST = "---\nname: notes\ndescription: Keeps notes.\n---\n\nKeep notes.\n"


class TestSkills(LoaderConformance):
    plugin = "loader.skills"
    max_modules = 120


class TestSkillOps(OpFamilyConformance):
    plugin = "op.skills"
    max_modules = 140
    examples = (
        Example("skills.allow", {"skill": "notes", "tools": ["edit"]}),
        Example("skills.check", {"folder": "/nowhere/notes", "file": "SKILL.md", "content": MANIFEST}),
        Example("skills.install", {"requirements": ["tiny @ https://example.com/tiny"]}, error="skills.packages"),
        Example("skills.run", {"folder": "/no/notes", "digest": "0" * 64, "script": "a.py"}, error="skills.unreadable"),
        Example("skills.prepare", {"folder": "/nowhere/notes"}, error="skills.unreadable"),
    )
