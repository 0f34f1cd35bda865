"""The kinds of node a network can have: which columns each takes, how it is learned, and how it is given.

A kind is a small object with the options of its nodes. Another kind of node enters by one call of `register`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError, listing
from suffice.models.bayesian.label_indexed import by_label
from suffice.models.bayesian.nodes.constraints import ConstrainedTable
from suffice.models.bayesian.nodes.contract import Node, NodeKind, NodeLearner, NodeOptions
from suffice.models.bayesian.nodes.families import check_discrete, refuse_other_layout, same_layout, unfit
from suffice.models.bayesian.nodes.glm_kind import GLMKind, is_glm
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.linear_gaussian_batch import BatchLearner
from suffice.models.bayesian.nodes.linear_gaussian_learner import JointPrior
from suffice.models.bayesian.nodes.noisy_kinds import NoisyMax, NoisyOr
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_learner import TableLearner
from suffice.models.bayesian.priors import linear_prior, table_prior
from suffice.registry import Registry


@dataclass(frozen=True)
class TableKind(NodeKind):
    """P(node | parents) as a table: one row for each joint state of discrete parents."""

    kind: ClassVar[str] = TableNode.kind
    node_class: ClassVar[type[Node]] = TableNode
    column: ClassVar[Literal["discrete", "real"]] = "discrete"

    def check(self, family: Domain) -> None:
        """Node and parents have states."""
        check_discrete(self.kind, family)

    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """Row by row."""
        prior = table_prior(options.prior, family, options.sample_size)
        return TableLearner(prior, options.estimate or "mean", options.unseen)

    def given(self, family: Domain, values: Any, options: NodeOptions) -> TableNode:
        """An array with axes (parents, node), values by label in any order, or a fitted node."""
        if isinstance(values, TableNode):
            if same_layout(values.domain, family):
                return values
            values = values.table_
        return TableNode.given(family, by_label(values, family, "given table"))


@dataclass(frozen=True)
class LinearGaussianKind(NodeKind):
    """A linear regression on the real parents, one for each joint state of the discrete parents."""

    kind: ClassVar[str] = LinearGaussianNode.kind
    node_class: ClassVar[type[Node]] = LinearGaussianNode
    column: ClassVar[Literal["discrete", "real"]] = "real"

    def check(self, family: Domain) -> None:
        """The node holds numbers; parents may hold anything."""
        if family.variables[-1].kind == "discrete":
            raise unfit(self.kind, family, "a column of numbers", "Declare states={...: 'real'} or choose 'table'.")

    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """From moments, those of the pool where there are no discrete parents."""
        name = family.names[-1]
        prior = linear_prior(options.prior, family, options.pool)
        if options.tied and isinstance(prior, JointPrior):
            raise OptionError(
                f"{name!r} is tied, and a NormalWishart prior gives every node a prior of its own. Use a "
                "LinearGaussianPrior."
            )
        # Tied nodes read the moments of their own family, which add up by position.
        return BatchLearner(prior, options.estimate or "mean", options.unseen, () if options.tied else options.pool)

    def given(self, family: Domain, values: Any, options: NodeOptions) -> LinearGaussianNode:
        """A pair (weights, variance) in the shapes of `weights_` and `variance_`, or a fitted node."""
        if isinstance(values, LinearGaussianNode):
            refuse_other_layout(values, family)
            # The pool says where the node reads its moments in this network; it is no parameter.
            return replace(values, pool=options.pool)
        if not isinstance(values, tuple | list) or len(values) != 2:
            raise OptionError(
                f"fixed[{family.names[-1]!r}] is {values!r}; a linear-Gaussian node is given as (weights, variance), "
                "intercept first, or as a fitted node."
            )
        return replace(LinearGaussianNode.given(family, *values), pool=options.pool)


# --------------------------------------------------------------------------------------------------------------------
# The register
# --------------------------------------------------------------------------------------------------------------------

#: The kinds with the options they have by default, by name.
KINDS: Registry[NodeKind] = Registry("suffice.node_kinds", "a kind of node")


def register(kind: NodeKind) -> None:
    """Let networks have another kind of node."""
    KINDS.register(kind.kind, lambda: kind)


register(TableKind())
register(LinearGaussianKind())
register(NoisyOr())
register(NoisyMax())
register(GLMKind())
register(ConstrainedTable())


def read_node(plain: Mapping[str, Any]) -> Any:
    """A fitted node from the plain data of a file, which name its kind."""
    kind = KINDS.find(plain["kind"])
    if kind is None:
        raise FileFormatError(f"The file holds a node of the kind {plain['kind']!r}; known: {listing(KINDS.names())}.")
    return kind.node_class.from_dict(plain)


def read_kind(node: Hashable, given: object) -> NodeKind:
    """The kind that a user names: by its name, or as an object with options."""
    kind = KINDS.find(given) if isinstance(given, str) else None
    if kind is not None:
        return kind
    if is_glm(given):
        return GLMKind(given)
    if isinstance(given, NodeKind) and KINDS.find(given.kind) is not None:
        return given
    raise OptionError(
        f"nodes[{node!r}] is {given!r}; expected one of {listing(KINDS.names())}, or a kind with options such as "
        "NoisyOr(...), ConstrainedTable(...) or GLM(family=...)."
    )


def kind_of(family: Domain, given: object = None) -> NodeKind:
    """The kind of a node: the one named, else a regression for a column of numbers and a table for one of states."""
    name = family.names[-1]
    default = LinearGaussianNode.kind if family.variables[-1].kind != "discrete" else TableNode.kind
    chosen = read_kind(name, default if given is None else given)
    chosen.check(family)
    return chosen


def required_column(node: Hashable, given: object, declared: Variable | None) -> Variable | None:
    """The variable to read a node's column as, where its kind is named; a declaration that contradicts is an error."""
    kind = read_kind(node, given)
    states = kind.states
    if kind.column is None:
        return declared
    if declared is None:
        if states is not None:
            return Variable.discrete(node, states)
        return Variable(node, "real") if kind.column == "real" else Variable(node, "discrete")
    if states is not None and declared.kind == "discrete" and not kind.agrees(declared):
        raise OptionError(
            f"nodes[{node!r}] declares the states {listing(states)}, and states= {listing(declared.states)}. Declare "
            "them once."
        )
    if (declared.kind == "discrete") != (kind.column == "discrete"):
        raise OptionError(
            f"nodes[{node!r}] is {kind.kind!r}, whose column is {kind.column}; states= declares it {declared.kind}. "
            "Change one of the two."
        )
    return declared
