"""Things that are known by name: those of this package, and those that other packages offer by entry points."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Generic, TypeVar, cast

from suffice.errors import OptionError, listing, meant

T = TypeVar("T")


class Registry(Generic[T]):
    """Values by name, each loaded when it is first asked for.

    A package that is installed beside this one offers more of them as entry points of a `group`; they are looked up
    where a name is not known here, so that they cannot take the place of what this package has under a name.
    """

    def __init__(self, group: str, one: str = "value", reserved: Collection[str] = ()) -> None:
        """group: of entry points, each of which names a value; one: what messages call a value.

        reserved: names that options have for something else, which no value may have.
        """
        self.group, self.one, self.reserved = group, one, reserved
        self._known: dict[str, Callable[[], T]] = {}

    def register(self, name: str, load: Callable[[], T]) -> None:
        """Enter what gives a value, under its name."""
        self._known[name] = load

    def add(self, name: str, value: T) -> None:
        """Enter a value under a name that no other has."""
        if name in self._known or name in self.reserved:
            raise OptionError(f"There is {self.one} {name!r} already; give another name.")
        self._known[name] = lambda: value

    def remove(self, name: str) -> None:
        """Take a value out again."""
        del self._known[name]

    def own(self) -> tuple[str, ...]:
        """The names that were entered, in that order."""
        return tuple(self._known)

    def names(self) -> tuple[str, ...]:
        """The same, then those that other packages offer."""
        return (*self._known, *(name for name in self._offered() if name not in self._known))

    def find(self, name: str) -> T | None:
        """The value under a name; None where there is none."""
        if name not in self._known:
            self._known |= {other: load for other, load in self._offered().items() if other == name}
        load = self._known.get(name)
        return None if load is None else load()

    def __getitem__(self, name: str) -> T:
        """The value under a name that is known to be there."""
        value = self.find(name)
        if value is None:
            raise KeyError(name)
        return value

    def named(self, name: Any, option: str, others: Collection[str] = ()) -> T:
        """The value that an option names; others: names that it takes besides, for the message."""
        value = self.find(name) if isinstance(name, str) else None
        if value is None:
            known = list(dict.fromkeys([*others, *self.names()]))
            near = meant(name, known) if isinstance(name, str) else ""
            raise OptionError(f"{option} is {name!r}; expected one of {listing(known, 20)}.{near}")
        return value

    def _offered(self) -> dict[str, Callable[[], T]]:
        """What other packages offer: reading it takes milliseconds, so it waits until someone asks."""
        from importlib.metadata import entry_points

        return {entry.name: cast("Callable[[], T]", entry.load) for entry in entry_points(group=self.group)}
