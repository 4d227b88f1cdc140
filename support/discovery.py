"""Objects that are discovered rather than listed: one in each module of a folder, and in installed packages."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module, metadata
from typing import Generic, TypeVar

from .errors import AudioCompositionalityError
from .text import first_line

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """Objects by name: each module of a package that has `attribute` gives one, each entry point of a group another.

    A new object is a new file; nothing has to be edited. Modules are imported when they are asked for: the one of that
    name where objects have the names of their files, else one after the other until one has the object.
    """

    def __init__(
        self,
        package: str | None,
        attribute: str,
        group: str,
        name_of: Callable[[Thing], str],
        *,
        further: Callable[[Thing], Iterable[str]] = lambda thing: (),
        helpers: Sequence[str] | None = None,
        first: str = "",
        listed: Sequence[Thing] = (),
    ) -> None:
        """Nothing is imported until it is needed.

        Args:
            package: dotted name of the package whose modules have objects; None where all objects are `listed`.
            attribute: name of the object in a module; modules without it are skipped.
            group: of entry points, each of which names such an object.
            name_of: an object's own name.
            further: other names of an object.
            helpers: modules without an object, where each other module has one of its own name; None where an object
                may have another name than its module.
            first: the module that is imported before the others.
            listed: objects without a module of their own.
        """
        self._package = package
        self._attribute = attribute
        self._group = group
        self._name_of = name_of
        self._further = further
        self._helpers = helpers
        self._first = first
        self._listed = tuple(listed)
        self._added: dict[str, Thing] = {}

    def add(self, thing: Thing) -> None:
        """Make an object known in this process; it takes the place of another of its name."""
        self._added[self._name_of(thing)] = thing

    def all(self) -> dict[str, Thing]:
        """All objects by their names, those of the package first."""
        return {**self._found, **self._added}

    @cached_property
    def _found(self) -> dict[str, Thing]:
        found: dict[str, Thing] = {}
        for thing in (*self._listed, *self._of_package(), *self._installed()):
            found.setdefault(self._name_of(thing), thing)
        return found

    def names(self) -> tuple[str, ...]:
        """All names, in the order of `all`; modules whose objects have the names of their files are not imported."""
        if self._helpers is None:
            return tuple(self.all())
        listed, installed = (map(self._name_of, things) for things in (self._listed, self._installed()))
        return tuple(dict.fromkeys((*listed, *self._modules, *installed, *self._added)))

    def find(self, name: str) -> Thing | None:
        """The object of a name, None where there is none.

        Raises:
            AudioCompositionalityError: its module is unusable, or an entry point cannot be loaded.
        """
        if self._helpers is not None and name in self._modules and name not in self._added:
            return self._import(name)
        things = self.each(name)
        return next((thing for thing in things if name in (self._name_of(thing), *self._further(thing))), None)

    def each(self, name: str = "") -> Iterator[Thing]:
        """The objects, each imported in its turn: those of this process first, the entry point of a name before the
        others."""
        yield from self._added.values()
        yield from self._listed
        yield from self._of_package()
        yield from self._installed(name)

    @cached_property
    def _modules(self) -> tuple[str, ...]:
        """The names of the modules that may have an object."""
        if self._package is None:
            return ()
        modules = pkgutil.iter_modules(import_module(self._package).__path__)
        names = [module.name for module in modules if not module.ispkg and module.name not in (self._helpers or ())]
        return tuple(sorted(names, key=lambda name: name != self._first))

    def _of_package(self) -> Iterator[Thing]:
        """The objects of the modules; an incomplete module does not prevent the others."""
        for name in self._modules:
            try:
                thing = self._import(name)
            except AudioCompositionalityError as error:
                warnings.warn(f"{self._package}.{name} is left out: {error}", stacklevel=3)
                continue
            if thing is not None:
                yield thing

    def _import(self, name: str) -> Thing | None:
        return getattr(import_module(f"{self._package}.{name}"), self._attribute, None)

    def _installed(self, name: str = "") -> Iterator[Thing]:
        """The objects of entry points, that of a name first; each is loaded in its turn."""
        for point in sorted(self._points, key=lambda point: point.name != name):
            try:
                yield point.load()
            except Exception as error:
                raise AudioCompositionalityError(
                    f"the entry point {point.name!r} of the group {self._group} cannot be loaded "
                    f"({first_line(error)}): mend or uninstall the package that has it"
                ) from error

    @cached_property
    def _points(self) -> tuple[metadata.EntryPoint, ...]:
        return tuple(metadata.entry_points(group=self._group))
