"""Networks that pyAgrum makes and writes, read here, and written here, read there: every probability by label.

The tables are asymmetric, of 2, 3 and 4 parents with 2 to 5 states in any order, and so is the order in which parents
are declared: an axis taken for another one moves most entries.
"""

import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import suffice as sf
from network_files import Found, read_by_pyagrum

gum: Any = pytest.importorskip("pyagrum")

SEEDS = [0, 1, 2]
NAMED = ["bif", "bifxml", "net", "dsl", "xdsl"]
WRITTEN = ["bif", "bifxml", "net"]


def network_of_pyagrum(seed: int) -> Any:
    """Five nodes, of which the last three have all, or all but none, of those before them as parents."""
    rng = np.random.default_rng(seed)
    names, cards = rng.permutation(list("azbyc")), rng.permutation([2, 3, 4, 5, 3])
    model = gum.BayesNet("asymmetric")
    for name, card in zip(names, cards, strict=True):
        model.add(gum.LabelizedVariable(str(name), str(name), [f"s{state}" for state in range(card)]))
    for count in (2, 3, 4):
        for parent in rng.permutation(count):
            model.addArc(str(names[parent]), str(names[count]))
    for name in model.names():
        table = model.cpt(name)
        card = model.variable(name).domainSize()
        table.fillWith(rng.dirichlet(np.ones(card), size=table.domainSize() // card).ravel().tolist())
    return model


def largest_difference(net: sf.BayesianNetwork, model: Any, found: Found, *, numbered: bool) -> float:
    """Largest difference of any entry of any table, by label; where `numbered`, names are places in pyAgrum's list."""
    worst = 0.0
    for name, (parents, states, values) in found.items():
        table = net.table(model.idFromName(name) if numbered else name)
        axes = [model.idFromName(axis) if numbered else axis for axis in (*parents, name)]
        assert set(table.variables) == set(axes)
        for place in np.ndindex(*values.shape):
            labels = {
                axis: code if numbered else states[own][code]
                for axis, own, code in zip(axes, (*parents, name), place, strict=True)
            }
            worst = max(worst, abs(float(table.sel(labels)) - float(values[place])))
    return worst


def in_memory(model: Any) -> Found:
    """The tables that pyAgrum holds, with the axes (parents ..., node): the first variable of a table is fastest."""
    found: Found = {}
    for name in model.names():
        table = model.cpt(name)
        axes = list(reversed(table.names))
        parents = [axis for axis in axes if axis != name]
        values = np.moveaxis(np.asarray(table.toarray()), axes.index(name), -1)
        found[name] = (parents, {axis: list(model.variable(axis).labels()) for axis in axes}, values)
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ending", NAMED)
def test_files_that_pyagrum_writes_hold_its_tables(tmp_path: Path, ending: str, seed: int) -> None:
    model = network_of_pyagrum(seed)
    gum.saveBN(model, str(tmp_path / f"net.{ending}"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = sf.read(tmp_path / f"net.{ending}")
    # Files of most formats hold six digits.
    assert largest_difference(net, model, in_memory(model), numbered=False) < 2e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_uai_files_of_pyagrum_are_read_right_and_with_a_warning(tmp_path: Path, seed: int) -> None:
    model = network_of_pyagrum(seed)
    path = tmp_path / "net.uai"
    gum.saveBN(model, str(path))
    with pytest.warns(sf.SufficeWarning, match="does not say in which order the parents") as caught:
        net = sf.read(path)
    assert [warning.filename for warning in caught] == [__file__]
    assert largest_difference(net, model, in_memory(model), numbered=True) < 2e-6


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ending", ["uai", "xdsl"])
def test_the_order_of_parents_is_chosen(tmp_path: Path, ending: str, seed: int) -> None:
    model = network_of_pyagrum(seed)
    path = tmp_path / f"net.{ending}"
    gum.saveBN(model, str(path))
    apart = {}
    orders: tuple[Literal["forward", "reversed"], ...] = ("forward", "reversed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for order in orders:
            net = sf.read(path, parent_order=order)
            apart[order] = largest_difference(net, model, in_memory(model), numbered=ending == "uai")
    assert apart["reversed"] < 2e-6
    assert apart["forward"] > 0.1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ending", [*WRITTEN, "uai"])
def test_files_that_are_written_here_are_read_the_same_here_and_there(tmp_path: Path, ending: str, seed: int) -> None:
    model = network_of_pyagrum(seed)
    gum.saveBN(model, str(tmp_path / "theirs.bifxml"))
    net = sf.read(tmp_path / "theirs.bifxml")
    path = tmp_path / f"ours.{ending}"
    net.write(path)
    again = sf.read(path, parent_order="forward") if ending == "uai" else sf.read(path)
    places = {name: code if ending == "uai" else name for code, name in enumerate(net.nodes)}
    for name in net.nodes:
        mine, other = net.table(name), again.table(places[name])
        assert [places[axis] for axis in mine.variables] == list(other.variables)
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(other))
    if ending != "uai":
        assert largest_difference(net, model, read_by_pyagrum(path), numbered=False) < 1e-6
