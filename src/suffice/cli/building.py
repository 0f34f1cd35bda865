"""The model that a structure, the data and the options ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import suffice as sf
from suffice.calls import meant_argument
from suffice.cli.commands import seen
from suffice.cli.structures import GivenStructure
from suffice.errors import OptionError

GRAPHS = ("bayes", "markov", "gaussian")


@dataclass(frozen=True)
class CommandOptions:
    """Options of a fit as they came from the command line; those left out are not handed on."""

    kind: str | None = None
    prior: str | None = None
    estimate: str | None = None
    solver: str | None = None
    hidden: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, Any] = field(default_factory=dict)
    further: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    progress: bool = False

    def options(self, *, prior: object = None) -> dict[str, Any]:
        """Keyword arguments for a constructor."""
        options: dict[str, Any] = {"progress": self.progress} if self.progress else {}
        for name, value in (("estimate", self.estimate), ("solver", self.solver), ("random_state", self.seed)):
            if value is not None:
                options[name] = value
        if prior is not None:
            options["prior"] = prior
        return options | {name: as_value(text) for name, text in self.further.items()}

    def check(self, kind: str) -> None:
        """Refuse what only networks and graphs have."""
        for flag, given in (("--hidden", self.hidden), ("--states", self.states)):
            if given:
                raise OptionError(f"--model {kind} takes no {flag}; it speaks of variables of a network.")


def as_value(text: str) -> Any:
    """A value given as text: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def pairs(items: Sequence[str], what: str) -> dict[str, str]:
    """``name=value`` items by name."""
    values: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not (name and equals):
            raise OptionError(f"{what} {item!r}: expected name=value.")
        if name in values:
            raise OptionError(f"{what} says {name!r} twice: {values[name]!r} and {value!r}. Say it once.")
        values[name] = value
    return values


def read_options(items: Sequence[str]) -> dict[str, Any]:
    """Further options by name, their values as JSON or text."""
    return {name: as_value(text) for name, text in pairs(items, "--option").items()}


def read_states(items: Sequence[str]) -> dict[str, Any]:
    """Declared states by variable, from ``NAME=a,b,c``, ``NAME=real`` or JSON files with such a dict."""
    states: dict[str, Any] = {}
    for item in items:
        if "=" not in item:
            states |= _states_file(Path(item))
    for name, text in pairs([item for item in items if "=" in item], "--states").items():
        states[name] = text if text in ("discrete", "real", "count") else _listed(text)
    return states


def _listed(text: str) -> list[Any]:
    """The values in a JSON list, or between commas."""
    whole = as_value(text)
    return whole if isinstance(whole, list) else [as_value(part.strip()) for part in text.split(",")]


def hidden_states(text: str) -> Any:
    """What ``--hidden NAME=`` says: a number of states, their names, or real."""
    return _listed(text) if "," in text else as_value(text)


def _states_file(path: Path) -> dict[str, Any]:
    try:
        states = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise OptionError(f"--states {str(path)!r} is not JSON; expected a dict such as {_EXAMPLE}.") from None
    if not isinstance(states, dict) or not all(isinstance(one, list | str) for one in states.values()):
        raise OptionError(f"--states {str(path)!r} holds no states by variable; expected a dict such as {_EXAMPLE}.")
    return states


_EXAMPLE = '{"rain": ["no", "yes"], "depth": "real"}'


def build_graph(structure: GivenStructure, chosen: CommandOptions, data: object = None) -> Any:
    """An unfitted network or graph; data say whether lines join numbers or states."""
    kind = chosen.kind or _kind_of(structure, data)
    _check_kind(structure, kind)
    chosen = replace(chosen, states={**structure.states, **chosen.states})
    if kind == "bayes":
        return _bayesian(structure, chosen)
    if kind == "gaussian":
        if chosen.states or chosen.hidden:
            raise OptionError("A GaussianGraph is about numbers and takes no --states and no --hidden.")
        source: Any = structure.model if structure.model is not None else list(structure.cliques)
        nodes = None if structure.model is not None else _names(structure)
        return made(sf.GaussianGraph, source, nodes, **chosen.options(prior=weights_prior(chosen.prior)))
    terms: Any = (
        structure.model if structure.model is not None else [*structure.cliques, *((n,) for n in structure.alone)]
    )
    options = _with_states(chosen.options(prior=weights_prior(chosen.prior)), chosen)
    return made(sf.MarkovNetwork, terms, **_with_hidden(options, chosen))


def _check_kind(structure: GivenStructure, kind: str) -> None:
    """Refuse edges of one kind for a model of the other."""
    structure.directed  # noqa: B018  Both kinds at once are refused first.
    if kind == "bayes" and structure.cliques:
        lines = " -- ".join(structure.cliques[0])
        raise OptionError(f"The structure has lines ({lines}), and --model bayes takes arrows, as in 'A -> B'.")
    if kind != "bayes" and structure.arrows:
        arrow = " -> ".join(structure.arrows[0])
        raise OptionError(f"The structure has arrows ({arrow}), and --model {kind} takes lines, as in 'A -- B'.")


def _with_states(options: dict[str, Any], chosen: CommandOptions) -> dict[str, Any]:
    return options | {"states": dict(chosen.states)} if chosen.states else options


def _with_hidden(options: dict[str, Any], chosen: CommandOptions) -> dict[str, Any]:
    hidden = {name: hidden_states(text) for name, text in chosen.hidden.items()}
    return options | {"hidden": hidden} if hidden else options


#: Options that no text can spell.
_IN_PYTHON = ("structure", "callback")


def made(cls: Any, *arguments: object, **options: object) -> Any:
    """The model; an option that it does not have is a mistake of the user."""
    known = [name for name in cls._option_names() if name not in _IN_PYTHON]
    unknown = sorted(set(options) - set(known))
    if unknown:
        flag = f"--{unknown[0]}" if unknown[0] in ("estimate", "solver", "prior") else f"--option {unknown[0]}"
        near = meant_argument(unknown[0], known)
        raise OptionError(f"A {cls.__name__} takes no {flag}; its options are {', '.join(known)}.{near}")
    return cls(*arguments, **options)


def _names(structure: GivenStructure) -> list[str]:
    named = [name for clique in structure.cliques for name in clique]
    return list(dict.fromkeys([*named, *structure.alone]))


def _kind_of(structure: GivenStructure, data: object) -> str:
    model = structure.model
    if model is not None:
        portrait = seen(model)
        if portrait.kind not in GRAPHS:
            raise OptionError(f"The structure is a {portrait.title}; expected a network or a graph.")
        return portrait.kind
    if structure.directed:
        return "bayes"
    return "gaussian" if data is not None and _all_real(_names(structure), data) else "markov"


def _all_real(names: list[str], data: object) -> bool:
    """Whether every column holds numbers that are not states."""
    domain = domain_of(data, names)
    known = [name for name in names if name in domain]
    return bool(known) and all(domain[name].kind == "real" for name in known)


def domain_of(data: object, names: Sequence[Any]) -> sf.Domain:
    """What some columns of rows, or of a summary, hold; columns that are not there are left out."""
    from suffice.fitting.summaries import resolved_domain
    from suffice.sources import open_source

    if isinstance(data, sf.Summary):
        return data.domain
    source = open_source(data)
    return resolved_domain(source, dict.fromkeys(name for name in names if name in source.columns))


def _bayesian(structure: GivenStructure, chosen: CommandOptions) -> Any:
    prior = chosen.prior
    read = _linear_prior(prior) if prior is not None and prior.startswith("linear:") else counts_prior(prior)
    options = _with_hidden(_with_states(chosen.options(prior=read), chosen), chosen)
    if prior is not None and ":" in prior and isinstance(read, str):
        options["equivalent_sample_size"] = _rows_of_prior(prior)
    source: Any = structure.model
    if source is None:
        parents: dict[str, list[str]] = {name: [] for name in structure.alone}
        for parent, child in structure.arrows:
            parents.setdefault(parent, [])
            parents.setdefault(child, []).append(parent)
        source = parents
    return made(sf.BayesianNetwork, source, **options)


def _linear_prior(text: str) -> Any:
    """``linear:ALPHA:BETA``: shape and scale of the variance of real nodes, whose weights are normal around 0."""
    try:
        alpha, beta = map(float, text.split(":")[1:])
    except ValueError:
        raise OptionError(f"--prior {text!r}: expected two numbers, shape and scale, as in linear:2:1.") from None
    return sf.LinearGaussianPrior(alpha, beta)


def _rows_of_prior(text: str) -> float:
    """The weight in rows that stands behind the colon."""
    try:
        return float(text.partition(":")[2])
    except ValueError:
        raise OptionError(f"--prior {text!r}: expected a number of rows behind the colon, as in bdeu:10.") from None


def counts_prior(text: str | None) -> Any:
    """A number of pseudo-counts, or the name of a prior with its weight in rows: 1, bdeu, bdeu:10, k2."""
    if text is None:
        return None
    name = text.partition(":")[0]
    try:
        return float(name)
    except ValueError:
        return name


def weights_prior(text: str | None) -> Any:
    """A prior on weights: a variance, ``normal:10`` or ``laplace:1``."""
    if text is None:
        return None
    name, colon, number = text.partition(":")
    try:
        scale = float(number if colon else name)
    except ValueError:
        raise OptionError(f"The prior {text!r} is not one of a variance such as 10, normal:10 or laplace:1.") from None
    if colon and name not in ("normal", "laplace"):
        raise OptionError(f"The prior {text!r} is not one of a variance such as 10, normal:10 or laplace:1.")
    return sf.Laplace(scale=scale) if name == "laplace" else sf.Normal(variance=scale)
