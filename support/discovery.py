"""Discovery of objects in the modules of a package and in installed packages, without a list of them."""

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
    """Objects by name: one from each module of a package that has `attribute`, and one from each entry point of a
    group.

    Adding an object means adding a file; nothing has to be edited. Modules are imported only when needed. If objects
    are named after their files, only the module of the requested name is imported; otherwise one after another until
    one has the object.
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
        """Import nothing until it is needed.

        Args:
            package: dotted name of the package whose modules have objects; None if all objects are `listed`.
            attribute: name of the object in a module; modules without it are skipped.
            group: group of entry points; each names an object.
            name_of: returns an object's name.
            further: returns other names of an object.
            helpers: modules without an object, if every other module has an object named after it; None if objects may
                have other names than their modules.
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
        """Add an object for this process; it replaces any object of the same name."""
        self._added[self._name_of(thing)] = thing

    def all(self) -> dict[str, Thing]:
        """Return all objects by name, objects of the package first."""
        return {**self._found, **self._added}

    @cached_property
    def _found(self) -> dict[str, Thing]:
        found: dict[str, Thing] = {}
        for thing in (*self._listed, *self._of_package(), *self._installed()):
            found.setdefault(self._name_of(thing), thing)
        return found

    def names(self) -> tuple[str, ...]:
        """Return all names in the order of `all`; modules whose objects are named after them are not imported."""
        if self._helpers is None:
            return tuple(self.all())
        listed, installed = (map(self._name_of, things) for things in (self._listed, self._installed()))
        return tuple(dict.fromkeys((*listed, *self._modules, *installed, *self._added)))

    def find(self, name: str) -> Thing | None:
        """Return the object with this name; None if there is none.

        Raises:
            AudioCompositionalityError: its module is unusable, or an entry point cannot be loaded.
        """
        if self._helpers is not None and name in self._modules and name not in self._added:
            return self._import(name)
        things = self.each(name)
        return next((thing for thing in things if name in (self._name_of(thing), *self._further(thing))), None)

    def each(self, name: str = "") -> Iterator[Thing]:
        """Yield the objects, importing each when it is reached: objects added in this process first, and the entry
        point called `name` before the others."""
        yield from self._added.values()
        yield from self._listed
        yield from self._of_package()
        yield from self._installed(name)

    @cached_property
    def _modules(self) -> tuple[str, ...]:
        """Return the names of the modules that may have an object."""
        if self._package is None:
            return ()
        modules = pkgutil.iter_modules(import_module(self._package).__path__)
        names = [module.name for module in modules if not module.ispkg and module.name not in (self._helpers or ())]
        return tuple(sorted(names, key=lambda name: name != self._first))

    def _of_package(self) -> Iterator[Thing]:
        """Yield the objects of the modules; a module that cannot be imported is skipped with a warning."""
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
        """Yield the objects of the entry points, the one called `name` first; each is loaded when it is reached."""
        for point in sorted(self._points, key=lambda point: point.name != name):
            try:
                yield point.load()
            except Exception as error:
                raise AudioCompositionalityError(
                    f"the entry point {point.name!r} of the group {self._group} cannot be loaded "
                    f"({first_line(error)}): fix or uninstall the package that provides it"
                ) from error

    @cached_property
    def _points(self) -> tuple[metadata.EntryPoint, ...]:
        return tuple(metadata.entry_points(group=self._group))
