"""The parts that a third party may add, and what they are made of.

What is documented as a point of extension is here; nothing else inside the package is promised. Each kind of part has
one function that registers it. A package that is installed beside this one needs not even a call: entry points of the
groups ``suffice.sources`` (an opener, by the module whose data it reads), ``suffice.formats`` (a format, by the ending
of its files), ``suffice.families`` (the class of a distribution, by its name), ``suffice.engines`` (a planner of exact
inference, by its name), ``suffice.solvers`` (a `Solver`), ``suffice.node_kinds`` (a `NodeKind`), ``suffice.emissions``
(an `EmissionKind`), ``suffice.glm_families`` (a `GLMFamily`) and ``suffice.models`` (a class that files may hold, by
its name) are found by themselves.
"""

from __future__ import annotations

from suffice.engines.contract import InferencePlan
from suffice.engines.registry import register as register_engine
from suffice.families.base import Distribution
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.member import FamilyMember
from suffice.families.registry import register_family
from suffice.fitting.contract import Data, Fitted, Found, Inputs, Judgement, Problem, Purpose, Task
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.fitting.driver import Fit, run, solve
from suffice.fitting.estimator import Estimator, SummaryEstimator
from suffice.fitting.portrait import Portrait
from suffice.fitting.report import Certificate, MatchedStatistics
from suffice.fitting.summaries import SummaryData, SummaryTask
from suffice.formats.native import register as register_format
from suffice.models.bayesian.nodes.contract import NodeKind
from suffice.models.bayesian.nodes.kinds import register as register_node_kind
from suffice.models.glm.family import Family as GLMFamily
from suffice.models.glm.registry import register as register_glm_family
from suffice.models.glm.registry import register_distribution as register_glm_distribution
from suffice.models.hidden_markov.emissions.registry import EmissionKind, register_emission
from suffice.solvers.registry import Objective, Solver
from suffice.solvers.registry import register as register_solver
from suffice.sources.base import Source
from suffice.sources.opening import register_source

__all__ = [
    "Certificate",
    "Control",
    "Data",
    "Distribution",
    "EmissionKind",
    "Estimator",
    "ExponentialFamily",
    "FamilyMember",
    "Fit",
    "Fitted",
    "Found",
    "GLMFamily",
    "InferencePlan",
    "Inputs",
    "Judgement",
    "MatchedStatistics",
    "NodeKind",
    "Objective",
    "Outcome",
    "Portrait",
    "Problem",
    "Purpose",
    "Solver",
    "Source",
    "State",
    "SummaryData",
    "SummaryEstimator",
    "SummaryTask",
    "Task",
    "iterate",
    "register_emission",
    "register_engine",
    "register_family",
    "register_format",
    "register_glm_distribution",
    "register_glm_family",
    "register_node_kind",
    "register_solver",
    "register_source",
    "run",
    "solve",
]
