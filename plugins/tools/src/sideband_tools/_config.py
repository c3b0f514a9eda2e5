"""The table `[plugins.tools]`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from sideband.tools import ToolContext


class SearchConfig(BaseModel):
    """The service that searches the web.

    Attributes:
        service: the kind of service.
        url: its address, such as ``https://search.example.org``.
        key: the name of a secret that is sent with each request, bound to this address.
        results: the maximum number of results of one search.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    service: Literal["searxng"] = "searxng"
    url: Annotated[str, Field(pattern=r"^https?://[^/?#@]+(/[^?#]*)?$")]
    key: str | None = None
    results: Annotated[int, Field(ge=1, le=50)] = 10


class Config(BaseModel):
    """The places and services with which the tools work, and the folder of the user's own skills.

    Attributes:
        places: folders that the tools may read and change: relative to the working directory of the agent, absolute,
            or beginning with `~/`. The user is asked for the rights to them once.
        commands: whether there are tools that run commands in the places.
        network: whether commands may use the network.
        programs: further folders that commands may read, with programs and libraries, such as that of an interpreter.
        local_hosts: hosts of the user's own network that ``fetch`` may reach, such as ``wiki.corp.example``. All others
            must have a public address.
        search: the service that searches the web; ``search`` fails without it.
        image_model: the model that answers questions about images, as ``provider:model``; the agent's own if omitted.
        skills: the folder in which skills are written and deleted, in the form of a place.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    places: Annotated[tuple[str, ...], Field(max_length=100)] = (".",)
    commands: bool = True
    network: bool = False
    programs: Annotated[tuple[str, ...], Field(max_length=8)] = ()
    local_hosts: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    search: SearchConfig | None = None
    image_model: str | None = None
    skills: Annotated[str, Field(min_length=1, max_length=4_096)] = "~/.agents/skills"


def config_of(ctx: ToolContext) -> Config:
    """Return the configuration of the plugin."""
    return ctx.config if isinstance(ctx.config, Config) else Config()
