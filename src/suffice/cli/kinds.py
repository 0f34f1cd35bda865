"""The kinds of model that the command knows, and what it tells of any of them."""

from __future__ import annotations

from typing import Any

from suffice.cli.commands import DistributionCommands, ModelCommands, seen
from suffice.errors import NotFittedError, OptionError, meant
from suffice.fitting.portrait import Portrait
from suffice.registry import Registry

#: Edges of a graph that are printed.
MOST_EDGES = 20
#: Kind of a model, as its portrait has it -> its commands; other packages offer theirs in the group of entry points.
COMMANDS: Registry[type[ModelCommands]] = Registry("suffice.commands")


def _bayes() -> type[ModelCommands]:
    from suffice.cli.graphs import GraphCommands

    return GraphCommands


def _markov() -> type[ModelCommands]:
    from suffice.cli.graphs import MarkovCommands

    return MarkovCommands


def _gaussian() -> type[ModelCommands]:
    from suffice.cli.graphs import GaussianCommands

    return GaussianCommands


def _glm() -> type[ModelCommands]:
    from suffice.cli.regressions import RegressionCommands

    return RegressionCommands


def _chain() -> type[ModelCommands]:
    from suffice.cli.chains import ChainCommands

    return ChainCommands


def _hmm() -> type[ModelCommands]:
    from suffice.cli.hidden_chains import HiddenChainCommands

    return HiddenChainCommands


def _crf() -> type[ModelCommands]:
    from suffice.cli.tagging import TaggingCommands

    return TaggingCommands


for _kind, _load in (
    *(("bayes", _bayes), ("markov", _markov), ("gaussian", _gaussian)),
    *(("glm", _glm), ("chain", _chain), ("hmm", _hmm), ("crf", _crf)),
):
    COMMANDS.register(_kind, _load)


#: Other words for kinds, the longer ones first.
_WORDS = {
    **{"hidden": "hmm", "chain": "chain", "ngram": "chain", "n-gram": "chain", "field": "crf", "bn": "bayes"},
    **{"mrf": "markov", "ising": "markov", "log-linear": "markov", "regression": "glm", "logit": "glm"},
    **{"poisson": "glm", "binomial": "glm", "ggm": "gaussian"},
}


def commands_for(kind: str) -> type[ModelCommands]:
    """The commands of a kind that ``--model`` names."""
    commands = COMMANDS.find(kind)
    if commands is None:
        names = COMMANDS.names()
        elsewhere = next((known for word, known in _WORDS.items() if word in kind.lower()), None)
        near = meant(kind, names) if elsewhere is None else f" Did you mean {elsewhere!r}?"
        raise OptionError(f"--model {kind!r}: expected one of {', '.join(names)}.{near}")
    return commands


def commands_of(model: object) -> ModelCommands:
    """How this model is asked."""
    portrait = seen(model)
    if portrait.kind == "distribution":
        return DistributionCommands(model, portrait)
    return (COMMANDS.find(portrait.kind) or ModelCommands)(model, portrait)


# -- what `show` tells -----------------------------------------------------------------------------------------------


def description(model: Any, *, for_programs: bool = False) -> dict[str, Any]:
    """Kind, structure, parameters (as text, or as data for programs), report."""
    import suffice as sf

    if isinstance(model, sf.Summary):
        asked = [str(statistic) for statistic in model.answers]
        shown = asked if for_programs else ", ".join(asked)
        return {"model": "Summary", "rows": model.rows, "weight": model.weight, "statistics": shown}
    portrait = seen(model)
    facts = {"model": portrait.title} | _structure(portrait, for_programs=for_programs)
    for name, fact in portrait.facts.items():
        facts[name] = ", ".join(map(str, fact)) if isinstance(fact, tuple) and not for_programs else fact
    size = _size(portrait)
    if size is not None:
        facts |= {"n_params": size, "parameters": portrait.parameters() if for_programs else portrait.text()}
    if portrait.notes:
        facts["notes"] = portrait.notes if for_programs else "; ".join(map(str, portrait.notes))
    try:
        facts["report"] = model.report_
    except NotFittedError:
        pass
    return facts


def _structure(portrait: Portrait, *, for_programs: bool) -> dict[str, Any]:
    """Sizes and edges of a graph: all of them for programs, the first for people."""
    graph = portrait.graph
    if graph is None:
        return {}
    nodes, edges = graph.nodes, graph.edges
    facts: dict[str, Any] = {"variables": len(nodes), "edges": len(edges)}
    if for_programs:
        return facts | {"structure": {"nodes": nodes, "edges": edges}}
    mark = " -> " if graph.directed else " -- "
    shown = "; ".join(mark.join(map(str, edge)) for edge in edges[:MOST_EDGES])
    rest = f"; ... ({len(edges) - MOST_EDGES} more)" if len(edges) > MOST_EDGES else ""
    return facts | {"structure": shown + rest}


def _size(portrait: Portrait) -> int | None:
    """The number of parameters; None where there are none yet."""
    try:
        size = portrait.n_params()
    except (NotFittedError, NotImplementedError):
        return None
    return None if size is None else int(size)
