"""A network with a target: which column it is, how it joins the others, what is predicted and how well."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from suffice.checks import choice, is_list, is_name
from suffice.choices import Objective, choices
from suffice.domain import Variable
from suffice.errors import DataError, MissingColumnError, NotFittedError, OptionError, listing, shortened
from suffice.fitting import sklearn_face
from suffice.fitting.estimator import SummaryEstimator
from suffice.fitting.matrices import RowMatrix, matrix_of, one_column, same_values
from suffice.fitting.sklearn_face import checked_rows, named_causes, needs_target, one_target, remember, weights_of
from suffice.models.bayesian.structure import Parents, is_form
from suffice.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.models.bayesian.fitted import NetworkFitted

#: A network with a target.
Network = TypeVar("Network", bound=SummaryEstimator)
R = TypeVar("R")


def check_target(options: Mapping[str, Any], parents: Parents) -> None:
    """Refuse a target that is none, and options that have no effect without one."""
    target, objective = options["target"], options["objective"]
    choice(objective, "objective", choices(Objective))
    if target is None and objective == "conditional":
        raise OptionError("objective='conditional' is about P(target | rest); name the node with target=.")
    chosen = options["solver"]
    if not isinstance(chosen, str):
        raise OptionError(f"solver is {shortened(chosen)}; expected 'auto' or the name of a solver.")
    if chosen != "auto" and objective != "conditional":
        raise OptionError(
            f"solver={options['solver']!r} has no effect with objective='joint', which has a closed form or is learned "
            "by EM. Leave it out, or say objective='conditional'."
        )
    if options["solver"] != "auto":
        from suffice.solvers.registry import check_solver

        check_solver(options["solver"], ("auto",))
    if target is None:
        return
    if not is_name(target) or target not in parents:
        raise OptionError(f"target is {shortened(target)}, which is no node; the nodes are {listing(parents)}.")
    if options["hidden"] and target in options["hidden"]:
        raise OptionError(f"target is {target!r}, which is hidden: there is nothing to learn it from.")


def real_target(options: Mapping[str, Any], declared: Mapping[Hashable, Variable]) -> bool:
    """Whether the target is declared real; undeclared, it holds states."""
    target = options["target"]
    if target in declared:
        return declared[target].kind != "discrete"
    kind = (options["nodes"] or {}).get(target)
    if kind is None:
        return False
    from suffice.models.bayesian.nodes.kinds import required_column

    required = required_column(target, kind, None)
    return required is not None and required.kind != "discrete"


def check_labels(variable: Variable) -> None:
    """Refuse a target that holds numbers which are no labels, and is not declared real."""
    odd = [s for s in variable.states if isinstance(s, float) and not float(s).is_integer()]
    if odd:
        raise DataError(
            f"Unknown label type: continuous. The target {variable.name!r} holds {odd[0]!r}, and a target has states "
            f"unless it is declared: states={{{variable.name!r}: 'real'}} makes a regressor."
        )


# -- rows --------------------------------------------------------------------------------------------------------------


def feature_names(nodes: Sequence[Hashable], target: Hashable, matrix: RowMatrix | None, columns: Any) -> Any:
    """The names of the columns of an array: as given, or the nodes in their order without the target.

    An array that has one column more holds the target too, in its place.
    """
    if columns is not None or matrix is None or matrix.names is not None:
        return columns
    features = [name for name in nodes if name != target]
    if matrix.width == len(features):
        return features
    if matrix.width == len(nodes):
        return list(nodes)
    raise DataError(
        f"X has {matrix.width} features, but BayesianNetwork is expecting {len(features)} features as input: "
        f"{listing(features)}. Name the columns of the array with columns=."
    )


def with_target(data: Any, y: Any, target: Hashable, columns: Any) -> Any:
    """The rows with the target among their columns, as columns by name."""
    if isinstance(y, str) and y == target:
        return data
    matrix = matrix_of(data)
    if isinstance(data, Mapping):
        table = dict(data)
    elif matrix is not None:
        table = matrix.columns(columns)
    else:
        raise DataError(
            f"y is given beside a {type(data).__name__}; expected an array or a table in memory. Put the target "
            f"{target!r} among its columns, and leave y out."
        )
    labels = one_column(y)
    rows = len(next(iter(table.values()))) if table else 0
    if len(labels) != rows:
        raise DataError(f"y has {len(labels)} values for {rows} rows of X; give one a row.")
    if target in table and not same_values(table[target], labels):
        raise DataError(
            f"X has a column {target!r}, which is the target, and y has other values. Leave y out, or the column."
        )
    return {**table, target: labels}


def columns_of(data: Any, columns: Any) -> list[Hashable]:
    """The names of the columns of rows, for a structure that is made of them."""
    if isinstance(data, Mapping):
        return list(data)
    matrix = matrix_of(data)
    if matrix is not None:
        return list(matrix.columns(columns))
    from suffice.sources import open_source

    return list(open_source(data, columns=columns).columns)


def star(form: str, target: Hashable, columns: Sequence[Hashable], states: Mapping[Any, Any]) -> dict[str, Any]:
    """The options of a form for these columns: the structure, and columns that are real."""
    features = [name for name in columns if name != target]
    if not features:
        raise MissingColumnError(f"structure={form!r} needs columns beside the target {target!r}; there are none.")
    made: dict[str, Any] = {"structure": {target: (), **dict.fromkeys(features, (target,))}}
    if form == "gaussian-naive-bayes":
        made["states"] = {**dict.fromkeys(features, "real"), **states}
    return made


# -- what a network does with its target -------------------------------------------------------------------------------


def target_fit(net: Network, data: Any, y: Any, more: Mapping[str, Any], keep: float | None = None) -> Network:
    """Learn rows whose target is among their columns, or given as y; keep: how earlier rows count where these join."""
    from suffice.statistics import Summary

    data = given = checked_rows(net, data, known=keep is not None)
    y = one_target(y)
    more = {**more, "sample_weight": weights_of(more["sample_weight"])}
    options, columns = net.get_params(deep=False), more["columns"]
    target, matrix = options["target"], matrix_of(data)
    asked: Any = net
    made: Any = net
    if isinstance(data, Summary):
        return _learned(net, data, more, keep)
    if is_form(options["structure"]) and (keep is None or net._fit is None):
        names = columns_of(data, columns)
        made = type(net)(**{**options, **star(options["structure"], target, names, options["states"] or {})})
        made._variables.update({name: v for name, v in asked._variables.items() if name == target})
    columns = feature_names(made.nodes, target, matrix, columns)
    if y is not None:
        data, columns = with_target(data, y, target, columns), None
    elif matrix is not None and matrix.names is None:
        if target not in columns:
            raise DataError(
                f"{type(net).__name__} requires y to be passed, but the target y is None, and X has no column "
                f"{target!r}."
            )
        data = matrix.values
    with named_causes(given):
        _learned(made, data, {**more, "columns": columns}, keep)
    remember(made, given)
    fit = made._fit
    if made is not net and fit is not None:
        set_fields(net, _learning=made._learning, _variables=made._variables, _declared=made._declared)
        fit.options = {}  # Those of the model that was asked, whose structure is the form.
        net._adopt(fit)
    return net


def _learned(net: Network, data: Any, more: Mapping[str, Any], keep: float | None) -> Network:
    if keep is None:
        return SummaryEstimator._learn(net, data, None, **more)
    return SummaryEstimator._join(net, keep, data, None, **more)


def targeted(method: Callable[..., R], *, asks: bool = True) -> Callable[..., R]:
    """The method of a network that asks its fitted value about rows, whose target need not be named.

    asks: whether the method is about one node.
    """

    def ask(net: Any, data: Any, *args: Any, **options: Any) -> R:
        target, fitted = net.target, net.fitted_
        if asks and not args and "target" not in options:
            if target is None:
                raise OptionError(
                    f"{method.__name__} needs to know which node it is about: {method.__name__}(rows, 'node'), or a "
                    "network with target=."
                )
            args = (target,)
        if target is not None:
            data = checked_rows(net, data, known=options.get("columns") is None)
        matrix = matrix_of(data)
        if target is not None and matrix is not None and matrix.names is None:
            options["columns"] = feature_names(seen_nodes(fitted), target, matrix, options.get("columns"))
            data = matrix.values
        return method(fitted, data, *args, **options)

    return update_wrapper(ask, method)


def role_of(net: Any) -> dict[str, Any]:
    """What a network is to scikit-learn: a classifier or a regressor where it has a target."""
    complete = net.objective == "conditional"
    role: dict[str, Any] = {"allow_nan": not complete, "string": True, "categorical": True}
    if net.target is None:
        return role
    return {**role, "kind": "regressor" if real_target(net.get_params(deep=False), net._variables) else "classifier"}


def declare_classes(net: Any, classes: Any) -> None:
    """Declare the states of the target before the first rows, where `partial_fit` is told them."""
    if classes is None:
        return
    if net.target is None:
        raise OptionError("classes= are the states of a target; this network has no target=.")
    if not is_list(classes):
        raise OptionError(f"classes is {shortened(classes)}; expected a list of the states of the target.")
    declared = Variable.discrete(net.target, np.asarray(classes).tolist())
    known = net._variables.get(net.target) if net._fit is None else net.fitted_.variable(net.target)
    if known is None:
        net._variables[net.target] = declared
        return
    strange = [state for state in declared.states if known.find(state) is None]
    if known.kind == "discrete" and strange:
        raise OptionError(
            f"classes= holds {listing(strange)}; the target {net.target!r} has the states {listing(known.states)} "
            "already. Leave classes= out, or fit again with states= that has all of them."
        )


def target_partial_fit(
    net: Network,
    data: Any,
    y: Any = None,
    *,
    classes: Any = None,
    sample_weight: Any = None,
    columns: Any = None,
    keep: float = 1.0,
) -> Network:
    """Add rows to those already learned; the result equals one fit on all of them.

    `keep` below 1 weights the earlier rows down first (forgetting). `y` is as in `fit`. `classes` are all states of the
    target, where the first rows may not show them.
    """
    declare_classes(net, classes)
    return net._join(keep, data, y, sample_weight=sample_weight, columns=columns)


def without_table(net: Any) -> str:
    """Why a network has no probabilities of its target; empty where it has."""
    if net.target is None:
        return without_target(net)
    if role_of(net)["kind"] != "regressor":
        return ""
    return f"{net.target!r} is real and has no table of probabilities; predict gives its mean."


def without_target(net: Any) -> str:
    """Why scikit-learn is not offered predictions of a network that would have to name the node; else empty."""
    return needs_target(net) if net.target is None else ""


def steps_of(net: Any) -> int:
    """Number of iterations; 0 for a closed form, and 1 with a target, as scikit-learn counts."""
    return max(int(net.report_.iterations), 0 if net.target is None else 1)


def classes_of(net: Any) -> NDArray[Any]:
    """The states of the target in the order of `predict_proba`, as scikit-learn calls them."""
    from suffice.families.base import take_states

    target = net.target
    variable = None if target is None else net.fitted_.variable(target)
    if variable is None or variable.kind != "discrete":
        raise NotFittedError("Classes are the states of a discrete target=; this network has none.")
    return take_states(variable.states, np.arange(variable.card))


def seen_nodes(fitted: NetworkFitted) -> list[Hashable]:
    """The nodes that rows show."""
    return [name for name in fitted.nodes if name not in fitted.hidden]


def targeted_score(net: Any, data: Any, y: Any = None, *, sample_weight: Any = None, columns: Any = None) -> float:
    """How well the target y is predicted from the other columns, or how likely the rows are.

    With a target and y, the share of right labels or, of a real target, R^2, as in scikit-learn. Without y the mean
    log-likelihood of a row (weighted), natural logarithm.
    """
    target = net.target
    if target is None or y is None:
        matrix = matrix_of(data)
        if target is not None and matrix is not None and matrix.names is None:
            columns, data = feature_names(seen_nodes(net.fitted_), target, matrix, columns), matrix.values
        return SummaryEstimator.score(net, data, y, sample_weight=sample_weight, columns=columns)
    predicted = net.predict(data, columns=columns)
    return mean_success(net.fitted_, target, predicted, y, sample_weight)


# -- how well ----------------------------------------------------------------------------------------------------------


def mean_success(fitted: NetworkFitted, target: Hashable, predicted: Any, y: Any, weights: Any) -> float:
    """The share of right labels, or R^2 = 1 - (squared errors) / (squares about the mean), by weight."""
    weight = np.ones(len(predicted)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(weight) != len(predicted):
        raise DataError(f"sample_weight has {len(weight)} values for {len(predicted)} rows; give one weight a row.")
    total = float(weight.sum())
    if not total > 0:
        raise OptionError("The score of no rows is undefined: all weights are zero.")
    truth = np.asarray(one_column(y))
    if len(truth) != len(predicted):
        raise DataError(f"y has {len(truth)} values for {len(predicted)} rows of X; give one a row.")
    if fitted.variable(target).kind == "discrete":
        return float(weight @ (np.asarray(predicted, dtype=object) == truth.astype(object))) / total
    away = truth.astype(np.float64) - truth.astype(np.float64) @ weight / total
    left, whole = float(weight @ (truth - predicted) ** 2), float(weight @ away**2)
    if whole == 0.0:
        return 1.0 if left == 0.0 else 0.0
    return 1.0 - left / whole


def read_again(net: Network, rows: Mapping[str, Any]) -> Any:
    """What the task of a network reads of rows that are given again, by the names of the arguments of its `fit`."""
    if net._options["target"] is None:
        return sklearn_face.read_again(net, rows)
    again, more = net.clone(), dict(rows)  # Its response becomes a column of its own.
    return again.fit(more.pop("data"), more.pop("y", None), **more)._learned_data()
