"""Objects that are discovered rather than listed: one in each module of a folder, and in installed packages."""

from __future__ import annotations

import importlib.metadata
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import Generic, TypeVar, cast

from .errors import AudioCompositionalityError
from .text import first_line

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """Objects by name: each module of a package that has `attribute` gives one, each entry point of a group another.

    A new object is a new file; nothing has to be edited. A line of that file begins with the attribute, and the
    object's names stand in it, in quotes: so the files are searched as text, and only the needed ones are imported.
    """

    def __init__(
        self,
        package: str | None,
        attribute: str,
        group: str,
        name_of: Callable[[Thing], str],
        *,
        further: Callable[[Thing], Iterable[str]] = lambda thing: (),
        is_named_by_file: bool = False,
        listed: Sequence[Thing] = (),
    ) -> None:
        """Nothing is imported until it is needed.

        Args:
            package: dotted name of the package whose modules are searched; None where all objects are `listed`.
            attribute: name of the object in a module; modules without it are skipped.
            group: of entry points, each of which names such an object.
            name_of: an object's own name.
            further: other names of an object.
            is_named_by_file: whether each object has the name of its module.
            listed: objects without a module of their own.
        """
        self._package = package
        self._listed = tuple(listed)
        self._stated = re.compile(rf"^{attribute}\b", re.M)
        self._attribute = attribute
        self._group = group
        self._name_of = name_of
        self._further = further
        self._is_named_by_file = is_named_by_file
        self._found: dict[str, Thing] | None = None
        self._loaded: dict[int, Thing] = {}
        self._added: dict[str, Thing] = {}

    def add(self, thing: Thing) -> None:
        """Make an object known in this process; it takes the place of another of its name."""
        self._added[self._name_of(thing)] = thing

    def all(self) -> dict[str, Thing]:
        """All objects by their names, those of the package first."""
        if self._found is None:
            named = {self._name_of(thing): thing for thing in (*self._listed, *self._imported(self._texts))}
            for thing in self._of_points():
                named.setdefault(self._name_of(thing), thing)
            self._found = named
        return {**self._found, **self._added}

    def names(self) -> tuple[str, ...]:
        """All names, in the order of `all`; modules whose objects have the names of their files are not imported."""
        if self._found is not None or not self._is_named_by_file or None in self._texts.values():
            return tuple(self.all())
        listed, installed = (map(self._name_of, things) for things in (self._listed, self._of_points()))
        return tuple(dict.fromkeys((*listed, *self._texts, *installed, *self._added)))

    def find(self, name: str) -> Thing | None:
        """The object of a name, None where there is none. Of the package, only the object's own module is imported.

        Raises:
            AudioCompositionalityError: its module is unusable, or an entry point cannot be loaded.
        """
        if self._is_named_by_file and name not in self._added and name in self._texts:
            return self._import(name)
        return next(
            (thing for thing in self.naming(name) if name in (self._name_of(thing), *self._further(thing))), None
        )

    def naming(self, text: str) -> Iterator[Thing]:
        """The objects that may have a text among their names, one after the other: registered ones, those whose modules
        have the text in quotes, also after a slash, and those of entry points, the one of that name first."""
        yield from self._added.values()
        yield from self._listed
        last = text.rpartition("/")[2]
        quoted = re.compile(rf"[\"'/]{re.escape(last)}[\"']")
        if last:
            yield from self._imported(name for name, code in self._texts.items() if code is None or quoted.search(code))
        yield from self._of_points(text)

    @cached_property
    def _texts(self) -> Mapping[str, str | None]:
        """The modules that state the attribute, with their texts, None for a module without source."""
        texts = _texts_of(self._package) if self._package else {}
        return {name: code for name, code in texts.items() if code is None or self._stated.search(code)}

    def _imported(self, names: Iterable[str]) -> Iterator[Thing]:
        """The objects of modules; an incomplete module does not prevent the others."""
        for name in names:
            try:
                thing = self._import(name)
            except AudioCompositionalityError as error:
                warnings.warn(f"{self._package}.{name} is left out: {error}", stacklevel=3)
                continue
            if thing is not None:
                yield thing

    def _import(self, name: str) -> Thing | None:
        return cast("Thing | None", getattr(import_module(f"{self._package}.{name}"), self._attribute, None))

    @cached_property
    def _points(self) -> tuple[importlib.metadata.EntryPoint, ...]:
        return tuple(importlib.metadata.entry_points(group=self._group))

    def _of_points(self, first: str = "") -> Iterator[Thing]:
        """The objects of entry points, that of a name first; each is loaded in its turn."""
        for place, point in sorted(enumerate(self._points), key=lambda one: one[1].name != first):
            if place not in self._loaded:
                try:
                    self._loaded[place] = point.load()
                except Exception as error:
                    raise AudioCompositionalityError(
                        f"the entry point {point.name!r} of the group {self._group} cannot be loaded "
                        f"({first_line(error)}): mend or uninstall the package that has it"
                    ) from error
            yield self._loaded[place]


@cache
def _texts_of(package: str) -> Mapping[str, str | None]:
    """The text of each module of a package by the module's name, None without source, as for compiled modules."""
    texts: dict[str, str | None] = {}
    for module in pkgutil.iter_modules(import_module(package).__path__):
        spec = module.module_finder.find_spec(f"{package}.{module.name}", None)
        get_source = getattr(spec and spec.loader, "get_source", lambda name: None)
        texts[module.name] = get_source(f"{package}.{module.name}")
    return texts
