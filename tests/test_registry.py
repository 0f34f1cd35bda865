"""Things that are known by name, and those that other packages offer."""

from typing import Any

import pytest

from suffice.registry import Registry


class Offered:
    """An entry point, as another package declares it."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value, self.loaded = name, value, 0

    def load(self) -> Any:
        self.loaded += 1
        return self.value


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Offered]:
    entries = {name: Offered(name, value) for name, value in (("two", 20), ("three", 3))}
    groups = {"things": entries}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: groups.get(group, {}).values())
    return entries


def test_values_are_loaded_when_they_are_asked_for(offered: dict[str, Offered]) -> None:
    calls = []
    registry: Registry[int] = Registry("things")
    registry.register("one", lambda: calls.append("one") or 1)  # type: ignore[func-returns-value]
    assert calls == []
    assert registry.find("one") == 1
    assert registry.find("three") == 3
    assert offered["two"].loaded == 0
    assert registry.find("four") is None


def test_names_of_this_package_come_first_and_stay(offered: dict[str, Offered]) -> None:
    registry: Registry[int] = Registry("things")
    registry.register("two", lambda: 2)
    assert registry.own() == ("two",)
    assert registry.names() == ("two", "three")
    assert registry.find("two") == 2
    assert Registry("others").names() == ()
