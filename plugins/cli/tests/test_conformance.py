"""The plugins of this package pass the tests that every plugin of their kinds passes."""

from sideband.plugins import find_entry_points
from sideband_testing.conformance import CommandConformance, Example, OpFamilyConformance, SkillConformance

COMMANDS = [one.name for one in find_entry_points("command") if one.distribution == "sideband-cli"]
globals().update(
    {
        f"Test{name.capitalize()}Command": type(
            f"Test{name.capitalize()}Command",
            (CommandConformance,),
            {"plugin": f"command.{name}", "max_modules": 60, "__module__": __name__},
        )
        for name in COMMANDS
    }
)


class TestDemoSkill(SkillConformance):
    plugin = "skill.demo"


class TestDemoOps(OpFamilyConformance):
    plugin = "op.demo"
    also = ("op.secrets",)
    settings = {"plugins": {"secrets": {"backend": "memory"}}}
    max_modules = 60
    examples = (Example("demo.service", {}),)
