"""The table ``[plugins.services]``."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

ServiceName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=64)]


class Config(BaseModel):
    """The table ``[plugins.services]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    providers: dict[ServiceName, str] = Field(
        default_factory=dict,
        description="The skill to use for a service, whichever other skills provide it, and whatever callers ask for.",
    )
