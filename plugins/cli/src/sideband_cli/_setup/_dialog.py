"""The questions of a first start, each of which has a default."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import define, field, frozen
from sideband import UsageError

from .._dialogs._questions import answered, chosen, confirmed, say, secret
from .._errors import KeyRefused
from .._terminal._words import one_line
from ._choices import Choices, folders_in
from ._keys import is_refusal, store_key
from ._services import Service, address_problem, is_local, origin_of, services_of
from ._survey import FoundService, FoundServices, counted, survey

if TYPE_CHECKING:
    from sideband.settings import LoadedSettings

_ADDRESS = "http://127.0.0.1:8000/v1"
_MOST_SHOWN = 15
_NOT_IN_NAMES = re.compile("[^a-z0-9]+")
_NONE = "none yet: skills work without a model"
_OTHER = "another service or server, with an API like that of OpenAI"
_LATER = (
    "There is no model yet. To run one on this machine, install Ollama, and then:\n  ollama pull qwen3 && sideband init"
)


@frozen
class _ModelPlace:
    """A place where a model runs: a service, another one, or no place."""

    text: str
    found: FoundService | None = None


@define
class Dialog:
    """Asks the questions of the setup, or answers them with the defaults.

    Args:
        arguments: the options of the host.
        settings: the settings so far.
        asks: whether to ask; otherwise each answer is the default.
    """

    _arguments: Namespace
    _settings: LoadedSettings
    _asks: bool = True
    _services: dict[str, Mapping[str, Any]] = field(factory=dict, init=False)

    def run(self) -> Choices:
        """Ask all questions."""
        if self._asks:
            say("This sets up a model, its key and folders of skills. Enter accepts a default.")
        model = self._model()
        return Choices(model, self._services, self._folders())

    def _model(self) -> str:
        """Return the model that the user chooses; an empty text for none."""
        services = services_of(self._settings.settings.plugins)
        if self._asks:
            say("looking for models …")
        surveyed = survey(self._arguments, services)
        while True:
            places = _places(surveyed)
            place = places[self._choice("Where does the model run?", places, self._default_place(places))]
            if place.text == _NONE:
                say(_LATER)
                return ""
            found = self._other() if place.found is None else self._with_key(place.found, surveyed)
            if found is not None and found.models:
                return f"{found.service.provider}:{self._name(found)}"
            if found is not None:
                say(one_line(f"{found.service.title} has no models: {found.problem or 'its list is empty'}"))

    def _default_place(self, places: Sequence[_ModelPlace]) -> int:
        """Return the place of the model in use, else of a server here, else of a service whose key is known."""
        used = (self._settings.settings.agent.model or "").partition(":")[0]
        usable = [one.found is not None and bool(one.found.models) for one in places]
        for number, place in enumerate(places):
            if usable[number] and place.found is not None and place.found.service.provider == used:
                return number
        return usable.index(True) if any(usable) else len(places) - 1

    def _choice(self, question: str, places: Sequence[_ModelPlace], default: int) -> int:
        return chosen(question, [one.text for one in places], default) if self._asks else default

    def _with_key(self, found: FoundService, surveyed: FoundServices) -> FoundService | None:
        """Return a service with its models, after asking for its key if it needs one; ``None`` if there is no key."""
        service = found.service
        if service.is_local:
            return found
        if found.models:
            place = f"in the variable {service.variable}" if service.variable else "in your store of secrets"
            known = service.secret in surveyed.stored or bool(service.variable)
            if not self._asks or not known or confirmed(f"Use the key of {service.title} {place}?"):
                return found
        return self._asked_key(service)

    def _asked_key(
        self, service: Service, settings: Iterable[str] = (), *, untried: bool = True
    ) -> FoundService | None:
        while value := secret(f"Key of {service.title}, which is not shown (Enter for none)").strip():
            try:
                return store_key(self._arguments, service, value, settings=settings, untried=untried)
            except KeyRefused as error:
                say(one_line(error.message))  # a line of the service must not look like one of ours
                say("Try again.")
            except UsageError as error:
                say(one_line(f"{error.message}; {error.hint}"))
                break
        return None

    def _other(self) -> FoundService | None:
        """Ask for the address of a service, and return the service with its models; ``None`` to choose again."""
        address = answered("Address of its API, which usually ends with /v1", _ADDRESS)
        if problem := address_problem(address):
            say(problem)
            return None
        name = self._service_name(address)
        if name is None:
            return None
        provider, table = f"openai-{name}", {"base_url": address}
        service = Service(provider, name, is_local(address), origin_of(address), provider)
        settings = [f"plugins.openai.services.{name}.base_url={address}"]
        found = survey(self._arguments, [service], settings=settings).services[provider]
        if not found.models and (not service.is_local or is_refusal(found)):
            found = self._asked_key(service, settings, untried=False) or found
        if found.models:
            self._services[name] = table
        return found

    def _service_name(self, address: str) -> str | None:
        """Ask for the name of a service; ``None`` if it is that of another one, which is kept."""
        host = urlsplit(address).hostname or ""
        usual = "local" if is_local(address) else _as_name(host.removeprefix("api.").rpartition(".")[0]) or "other"
        known = {one.provider: one.origin for one in services_of(self._settings.settings.plugins)}

        def is_free(name: str) -> bool:
            return known.get(f"openai-{name}", "") in ("", origin_of(address))

        suggested = next(filter(is_free, chain([usual], (f"{usual}-{number}" for number in count(2)))))
        name = _as_name(answered("A name for it", suggested)) or suggested
        replaced = known.get(f"openai-{name}", "")
        if is_free(name) or confirmed(f"{name} is at {replaced} now. Replace it?", default=False):
            return name
        return None

    def _name(self, found: FoundService) -> str:
        """Return the model of a service that the user chooses."""
        used, models = (self._settings.settings.agent.model or "").partition(":"), list(found.models)
        if used[0] == found.service.provider and used[2] in models:
            models.insert(0, models.pop(models.index(used[2])))
        if not self._asks or len(models) == 1:
            return models[0]
        shown = models[:_MOST_SHOWN]
        if len(models) > len(shown):
            shown.append(f"another one of the {len(models)}")
        number = chosen("Which model?", shown)
        if number < _MOST_SHOWN:
            return models[number]
        while (name := answered("Its name", models[0])) not in models:
            say(f"{found.service.title} has no model of this name")
        return name

    def _folders(self) -> tuple[str, ...]:
        """Return the folders of skills that the user adds."""
        while self._asks:
            text = answered("More folders of skills besides ~/.sideband/skills, separated by commas", "none")
            if text == "none":
                break
            paths, missing = folders_in(text)
            if not missing:
                return tuple(paths)
            say(f"there is no folder {missing[0]}")
        return ()


def _as_name(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")


def _places(surveyed: FoundServices) -> list[_ModelPlace]:
    local = [
        _ModelPlace(f"on this machine, with {one.service.title} ({counted(one.models)})", one) for one in surveyed.local
    ]
    hosted = [
        _ModelPlace(f"{one.service.title} ({counted(one.models) if one.models else 'needs a key'})", one)
        for one in surveyed.services.values()
        if not one.service.is_local and one.is_known
    ]
    return [*local, *hosted, _ModelPlace(_OTHER), _ModelPlace(_NONE)]
