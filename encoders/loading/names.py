"""Names of models as the command line and `load_model` take them: one grammar, parsed here. No code is run.

    NAME    = {CONTROL:} [TWIN:] [tower:] MODEL
    CONTROL = a word of `CONTROLS`          TWIN = a word of `TWINS`
    MODEL   = LISTED | LISTED=PATH          a name of `list_models`; with a path, your own weights for it
            | ADAPTER:REST                  hear:MODULE[:WEIGHTS], xares:FILE.py:CLASS, mteb:NAME,
                                            detected-as-text:DETECTOR:MODEL
            | endpoint:MODEL@URL            a model on an OpenAI-compatible server
            | FILE.py:CLASS | INSTALLED     your own class, or an entry point of an installed package
            | FOLDER | ORG/NAME             of transformers: a local folder, or a repository of the Hub

docs/how-to/models.md explains each form.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from audio_compositionality.support.loopback import is_loopback

from ..base import ModelError
from ..controls import CONTROLS, ControlKind
from .listing import ModelListing, find_adapter, find_model, named_models
from .twins import TWINS, TwinKind

TOWER = "tower:"
"""The prefix that means the audio encoder of an audio language model."""

ENDPOINT = "endpoint:"
"""The prefix of the name of a model on a server."""

KEY_VARIABLE = "AUDIO_COMPOSITIONALITY_ENDPOINT_KEY"
"""The only environment variable from which the key for a server is read.

It has its own name, so that tokens and keys set for other services, such as HF_TOKEN, are sent to no server.
"""

GROUP = "audio_compositionality.encoders"
"""Entry points of this group are classes of models: NAME = "module:Class"."""

_SUFFIX = ".py"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_ENDPOINT = re.compile(r"(?P<model>[!-~]+?)@(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>[!-~]*)")
_ENDPOINT_FORM = f"{ENDPOINT}MODEL@URL, such as {ENDPOINT}Qwen/Qwen2-Audio-7B-Instruct@http://localhost:8000/v1"
_USUAL_PATHS = ("", "/v1")

NameForm = Literal["listed", "adapter", "endpoint", "file", "installed", "folder", "hub", "unknown"]
FrontKind = TypeVar("FrontKind", ControlKind, TwinKind)


@dataclass(frozen=True)
class ModelName:
    """A parsed name of a model.

    Attributes:
        text: the name as it was typed.
        controls: controls in front, the outermost first.
        twin: the kind of twin; None for the model itself.
        is_tower: whether the name means the audio encoder of an audio language model.
        model: name of the model itself.
        form: form of the name, which shows the kind of model; ``unknown`` if it matches nothing.
    """

    text: str
    controls: tuple[ControlKind, ...]
    twin: TwinKind | None
    is_tower: bool
    model: str
    form: NameForm

    @property
    def front(self) -> str:
        """The prefixes to the name of the model."""
        return self.text[: len(self.text) - len(self.model)]

    @property
    def uncontrolled(self) -> str:
        """The name without its controls."""
        return self.text[sum(len(kind.prefix) for kind in self.controls) :]

    @property
    def listing(self) -> ModelListing | None:
        """The listing of a listed model, else None."""
        return find_model(self.model.partition("=")[0]) if self.form == "listed" else None

    @property
    def path(self) -> str:
        """The path of a user's weights for a listed model; else empty."""
        return self.model.partition("=")[2] if self.form == "listed" else ""

    @property
    def prefix(self) -> str:
        """The adapter's prefix."""
        return self.model.partition(":")[0]

    @property
    def rest(self) -> str:
        """The rest of the name after the adapter's prefix."""
        return self.model.partition(":")[2]

    def check(self) -> None:
        """Raise an error if `load_model` would refuse the name by its form; no package that runs models is imported.

        Raises:
            ModelError: there is no listed model, file, folder, installed class or Hub id of this name.
        """
        if self.is_tower and self.form not in ("folder", "hub", "unknown"):
            raise ModelError(
                f"'{self.uncontrolled}': {TOWER} goes in front of the folder or Hub id of an audio "
                f"language model; '{self.model}' is neither"
            )
        if self.form == "adapter":
            adapter = find_adapter(self.prefix)
            assert adapter is not None
            adapter.check(self.rest)
        elif self.form == "file":
            split_file(self.model)
        elif self.form == "folder" and not Path(self.model).expanduser().joinpath("config.json").is_file():
            raise ModelError(
                f"folder '{self.model}' holds no config.json; pass a folder in which a transformers model was saved "
                "with save_pretrained()"
            )
        elif self.form == "unknown":
            if close := self._near():
                quoted = " or ".join(f"'{name}'" for name in close)
                raise ModelError(f"unknown model '{self.uncontrolled}'; did you mean {quoted}?")
            if "/" in self.model:
                raise ModelError(f"there is no folder '{self.model}', and it is not a Hub id (org/name) either")
            raise ModelError(
                f"unknown model '{self.uncontrolled}'; `audio-compositionality models` lists the known names. "
                "Otherwise pass a Hub id (org/name), an existing folder with config.json, preprocessor_config.json "
                "and safetensors weights, or your own class as path/to/file.py:ClassName"
            )

    def _near(self) -> list[str]:
        """Find existing names close to this one without its controls: each prefix replaced by the nearest valid one and
        the model by the nearest names, or ``tower:`` moved behind the twin or left out."""
        front = self.uncontrolled[: len(self.uncontrolled) - len(self.model)]
        *words, model = self.model.split(":")
        # Without other suites' prefixes: their lookup imports torch.
        prefixes = [*CONTROLS, *TWINS, TOWER.removesuffix(":")]
        corrected = [[word] if word in prefixes else difflib.get_close_matches(word, prefixes, n=1) for word in words]
        near = []
        if all(corrected):
            names, asked = [listing.name for listing in list_models()], model.partition("=")[0]
            models = difflib.get_close_matches(asked, names, n=3, cutoff=0.6)
            models = models or [name for name in names if asked and name.startswith(asked)][:3]
            if words and _form_of(model) != "unknown":
                models = [model]
            near = ["".join([front, *(f"{word}:" for (word,) in corrected), name]) for name in models]
        if self.is_tower:
            twin, model = _split(self.model, TWINS)
            near += [] if twin is None else [f"{twin.prefix}{TOWER}{model}"]
            near += [name.replace(TOWER, "", 1) for name in near] + [front.removesuffix(TOWER) + self.model]
        existing = []
        for name in dict.fromkeys(name for name in near if name != self.uncontrolled):
            with suppress(ModelError):
                check_name(name)
                existing.append(name)
        return existing[:3]


def parse_name(text: str) -> ModelName:
    """Parse the name of a model.

    Raises:
        ModelError: it means a twin of a twin or of a control, or a part or a twin of a model on a server, or the
            server's address is malformed.
    """
    control, inside = split_control(text)
    if control is not None:
        name = parse_name(inside)
        return replace(name, text=text, controls=(control, *name.controls))
    twin, model = split_twin(text)
    inner, controlled = split_control(model)
    if twin is not None and inner is not None:
        raise ModelError(
            f"'{text}' is a twin of a control; ask for a control of a twin, '{inner.prefix}{twin.prefix}{controlled}'"
        )
    plain = model.removeprefix(TOWER)
    is_tower = plain != model
    if is_endpoint(plain):
        address = parse_endpoint(plain)
        if twin is not None or is_tower:
            deed = "take a part of it" if twin is None else twin.deed
            raise ModelError(f"'{address.id}' runs on a server, so this package cannot {deed}")
    return ModelName(text, (), twin, is_tower, plain, _form_of(plain))


FORMS: tuple[tuple[NameForm, Callable[[str], bool]], ...] = (
    ("endpoint", lambda model: model.startswith(ENDPOINT)),
    # Files are tested before adapters, whose lookup imports the adapter.
    ("file", lambda model: is_file(model.partition(":")[0])),
    ("adapter", lambda model: ":" in model and find_adapter(model.partition(":")[0]) is not None),
    ("listed", lambda model: model.partition("=")[1:] != ("=", "") and find_model(model.partition("=")[0]) is not None),
    ("file", lambda model: is_file(model)),
    ("installed", lambda model: model in installed_classes()),
    ("folder", lambda model: bool(model) and Path(model).expanduser().is_dir()),
    ("hub", lambda model: _HUB_ID.fullmatch(model) is not None),
)
"""Forms of the name of a model, each with its test; the first match decides, else ``unknown``.
`registry._load` has a branch for each."""


def _form_of(model: str) -> NameForm:
    return next((form for form, is_it in FORMS if is_it(model)), "unknown")


def check_name(name: str) -> None:
    """Raise an error if `load_model` would refuse a name by its form; see `parse_name` and `ModelName.check`."""
    parse_name(name).check()


def split_control(name: str) -> tuple[ControlKind | None, str]:
    """Split off the first control of a name; None if the name has no control."""
    return _split(name, CONTROLS)


def split_twin(name: str) -> tuple[TwinKind | None, str]:
    """Split off the twin of a name; None if the name means no twin.

    Raises:
        ModelError: the name means a twin of a twin.
    """
    kind, rest = _split(name, TWINS)
    if kind is not None and _split(rest, TWINS)[0] is not None:
        raise ModelError(f"'{name}' is a twin of a twin; put one of {', '.join(TWINS)} in front of a model's name")
    return kind, rest


def _split(name: str, kinds: Mapping[str, FrontKind]) -> tuple[FrontKind | None, str]:
    first, colon, rest = name.partition(":")
    kind = kinds.get(first) if colon else None
    return (None, name) if kind is None else (kind, rest)


def is_twin(name: str) -> bool:
    """Whether a name means a twin, possibly under controls, so that the model depends on the seed."""
    return parse_name(name).twin is not None


def hub_id_of(name: str) -> str | None:
    """Return the Hub repository of the model that a name means; None if it has none."""
    listing = find_model(name)
    if listing is not None:
        return listing.source if isinstance(listing.source, str) else None
    return name if _HUB_ID.fullmatch(name) else None


def is_public(name: str) -> bool:
    """Whether `load_model` accepts a name on any machine: a listed name or a Hub id, with or without prefixes.

    Raises:
        ModelError: see `parse_name`.
    """
    model = parse_name(name).model
    return hub_id_of(model) is not None or find_model(model) is not None or model in installed_classes()


def absolute_name(name: str) -> str:
    """Return a name that works from any folder: files and folders have absolute paths.

    Raises:
        ModelError: see `parse_name`.
    """
    parsed = parse_name(name)
    if parsed.path:
        return f"{parsed.front}{parsed.model.partition('=')[0]}={Path(parsed.path).expanduser().resolve()}"
    return f"{parsed.front}{Path(parsed.model).expanduser().resolve()}" if parsed.form == "folder" else name


def list_models() -> list[ModelListing]:
    """Return the models with a listed name: baselines, pretrained models, and classes of installed packages.

    `load_model` also accepts other names.
    """
    listed = named_models()
    installed = [
        ModelListing(name, None, None, "not stated", "not stated", f"installed by {describe_installed(point)}")
        for name, point in sorted(installed_classes().items())
        if name not in listed
    ]
    return [*listed.values(), *installed]


def is_file(spec: str) -> bool:
    """Whether a name means a class in a file."""
    return spec.endswith(_SUFFIX) or spec.rpartition(":")[0].endswith(_SUFFIX)


def split_file(spec: str) -> tuple[Path, str]:
    """Return the path and the class of ``path/to/file.py:ClassName``.

    Raises:
        ModelError: there is no class or no such file.
    """
    file, colon, attribute = spec.rpartition(":") if not spec.endswith(_SUFFIX) else (spec, "", "")
    path = Path(file).expanduser()
    if not path.is_file():
        raise ModelError(f"'{spec}': there is no file '{file}'")
    if not colon or not attribute:
        raise ModelError(f"'{spec}' names no class of the file; give {path.name}:ClassName")
    return path, attribute


def split_detector(spec: str) -> tuple[str, str]:
    """Return the names of the detector and of the language model in ``DETECTOR:MODEL``; the second is empty if it is
    missing. DETECTOR is a listed name or ``path/to/file.py:ClassName``."""
    detector, _, model = spec.partition(":")
    if find_model(detector) is None:
        file, _, rest = spec.partition(f"{_SUFFIX}:")
        attribute, _, model = rest.partition(":")
        detector = f"{file}{_SUFFIX}:{attribute}"
    return detector, model


def installed_classes() -> Mapping[str, EntryPoint]:
    """Return the entry points of installed packages that are models, by name, without importing them."""
    return _installed_classes(tuple(sys.path))


@lru_cache(maxsize=1)
def _installed_classes(folders: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Read the entry points once per list of package folders: reading takes 7 ms or more, and every
    loaded model is looked up among them."""
    return MappingProxyType({point.name: point for point in entry_points(group=GROUP)})


def describe_installed(point: EntryPoint) -> str:
    """Return the name and version of the distribution that declares an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"


@dataclass(frozen=True)
class Address:
    """The address of a model on a server.

    Attributes:
        model: its name on the server.
        url: URL of the server, without `/chat/completions`, which is appended; holds no credentials.
    """

    model: str
    url: str

    @property
    def host(self) -> str:
        """The server's name and port, without the path, which holds a key at some gateways."""
        return urlsplit(self.url).netloc

    @property
    def id(self) -> str:
        """The model's id in results and in the cache of answers.

        Servers on one host are distinguished by a digest of their paths, if these are unusual.
        """
        path = urlsplit(self.url).path
        digest = "" if path in _USUAL_PATHS else f"~{hashlib.sha256(path.encode()).hexdigest()[:8]}"
        return f"{ENDPOINT}{self.model}@{self.host}{digest}"

    @property
    def is_open_to_listeners(self) -> bool:
        """Whether questions are sent to another machine unencrypted."""
        parts = urlsplit(self.url)
        return parts.scheme != "https" and not is_loopback(parts.hostname)


def is_endpoint(name: str) -> bool:
    """Whether a name means a model on a server."""
    return name.startswith(ENDPOINT)


def parse_endpoint(name: str) -> Address:
    """Return the model and the server of `endpoint:MODEL@URL`.

    Raises:
        ModelError: the name has another form, or the URL is not http or https, or can hold credentials: it has a
            user, a query or a fragment. The message shows only the scheme of the URL.
    """
    # In a mistyped name, everything after the first @ may hold a password.
    match = _ENDPOINT.fullmatch(name.removeprefix(ENDPOINT))
    if match is None:
        raise ModelError(f"the name of a model on a server must be {_ENDPOINT_FORM}")
    model, scheme, rest = match["model"], match["scheme"].lower(), match["rest"]
    what = f"'{ENDPOINT}{model}@{scheme}://…'"
    if scheme not in ("http", "https"):
        raise ModelError(f"{what}: the URL must begin with http:// or https://")
    if "@" in rest.partition("/")[0] or re.search(r"[?#\\]", rest):
        raise ModelError(
            f"{what}: the URL must be http(s)://HOST[:PORT][/PATH], without user, password, ? and #: names appear "
            f"in result files; the key belongs in the environment variable {KEY_VARIABLE}"
        )
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ModelError(f"{what}: the URL has no valid host or port; it must be http(s)://HOST[:PORT][/PATH]")
    # Case does not matter in addresses, so that one server gets one name.
    return Address(model, f"{scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}")
