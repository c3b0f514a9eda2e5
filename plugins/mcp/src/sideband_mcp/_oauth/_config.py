"""How a server is authorized with OAuth."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Scope = Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,200}$")]


class OAuthConfig(BaseModel):
    """How a server is authorized. All of it is optional: without a client, sideband registers one at each login.

    Attributes:
        scopes: the scopes to ask for; by default those that the server names.
        client_id: the id of a client that was registered before, or the address of its metadata document.
        client_secret: the name of the secret of that client, bound to the origin of the authorization server.
        redirect_port: the port of this machine to which the browser is sent after the login; by default a free one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scopes: Annotated[tuple[Scope, ...], Field(max_length=100)] = ()
    client_id: Annotated[str, Field(min_length=1, max_length=2_000)] | None = None
    client_secret: str | None = None
    redirect_port: Annotated[int, Field(ge=1_024, le=65_535)] | None = None

    @model_validator(mode="after")
    def _secret_has_client(self) -> Self:
        if self.client_secret is not None and (self.client_id is None or self.document is not None):
            raise ValueError("`client_secret` needs the `client_id` of a registered client")
        return self

    @property
    def document(self) -> str | None:
        """The address of the metadata document of the client; ``None`` if its id is not an address."""
        found = self.client_id
        return found if found is not None and found.startswith("https://") else None
