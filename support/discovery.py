"""Things that are found rather than listed: an object in each module of a folder, and in installed packages."""

from __future__ import annotations

import importlib.metadata
import pkgutil
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Generic, TypeVar, cast

from .errors import AudioCompositionalityError
from .text import first_line

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """Objects by name: each module of a package that has `attribute` gives one, each entry point of a group another.

    A new one is a new file; nothing has to be edited.
    """

    def __init__(
        self,
        package: str | None,
        attribute: str,
        group: str,
        name_of: Callable[[Thing], str],
        *,
        listed: Sequence[Thing] = (),
    ) -> None:
        """Nothing is imported before `all` is called.

        Args:
            package: dotted name of the package whose modules are looked into; None where all are `listed`.
            attribute: name of the object in a module; modules without it are passed over.
            group: of entry points, each of which names such an object.
            name_of: an object's own name.
            listed: objects that there are whatever modules there are.
        """
        self._package = package
        self._listed = tuple(listed)
        self._attribute = attribute
        self._group = group
        self._name_of = name_of
        self._found: dict[str, Thing] | None = None
        self._added: dict[str, Thing] = {}

    def add(self, thing: Thing) -> None:
        """Make an object known in this process; it takes the place of another of its name."""
        self._added[self._name_of(thing)] = thing

    def all(self) -> dict[str, Thing]:
        """All objects by their names, those of the package first."""
        if self._found is None:
            self._found = self._look()
        return {**self._found, **self._added}

    def _look(self) -> dict[str, Thing]:
        things = list(self._listed)
        modules = pkgutil.iter_modules(import_module(self._package).__path__) if self._package else ()
        for module in modules:
            name = f"{self._package}.{module.name}"
            try:
                thing = getattr(import_module(name), self._attribute, None)
            except AudioCompositionalityError as error:
                # One that is incomplete does not take the others with it.
                warnings.warn(f"{name} is left out: {error}", stacklevel=2)
                continue
            if thing is not None:
                things.append(cast(Thing, thing))
        named = {self._name_of(thing): thing for thing in things}
        for point in importlib.metadata.entry_points(group=self._group):
            try:
                thing = point.load()
            except Exception as error:
                raise AudioCompositionalityError(
                    f"the entry point {point.name!r} of the group {self._group} cannot be loaded "
                    f"({first_line(error)}): mend or uninstall the package that has it"
                ) from error
            named.setdefault(self._name_of(thing), thing)
        return named
