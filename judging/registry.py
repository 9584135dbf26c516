"""Registries: tasks, benchmarks and chat contracts are all declared and looked up in this way."""

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Generic, Protocol, TypeVar

from judging.errors import CustosError


class Named(Protocol):
    """Something that a registry can hold."""

    @property
    def name(self) -> str:
        """Return the name to look the entry up by."""
        ...


EntryT = TypeVar("EntryT", bound=Named)
MakerT = TypeVar("MakerT", bound=Callable[[], Named])


class Registry(Generic[EntryT]):
    """Entries of one kind, declared by a decorator in the modules of one package.

    Adding an entry is adding a file to the package. The package is imported when an entry is first
    looked up; ``entries`` are those that are known so far, by name. ``kind`` is the word for an
    entry in error messages.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self.entries: dict[str, EntryT] = {}
        self._imported_folders: tuple[str, ...] = ()

    def declare(self, make: MakerT) -> MakerT:
        """Add what a class or a function without arguments makes; use as a decorator."""
        entry = make()
        if entry.name in self.entries:
            raise ValueError(f"{self.kind} '{entry.name}' is already declared")
        self.entries[entry.name] = entry  # type: ignore[assignment]  # a package's makers make its entries
        return make

    def get(self, name: str) -> EntryT:
        """Return the entry of a name; raise ``CustosError``, which lists them, if there is none."""
        self._import_package()
        if name not in self.entries:
            raise CustosError(f"{self.kind} '{name}' is not one of {', '.join(self.names())}")
        return self.entries[name]

    def names(self) -> tuple[str, ...]:
        """List all names in alphabetical order."""
        self._import_package()
        return tuple(sorted(self.entries))

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[EntryT]:
        """Yield the entries in alphabetical order of their names."""
        return (self.entries[name] for name in self.names())

    def _import_package(self) -> None:
        folders = tuple(import_module(self.package).__path__)
        if folders != self._imported_folders:
            for module in pkgutil.iter_modules(folders):
                import_module(f"{self.package}.{module.name}")
            self._imported_folders = folders
