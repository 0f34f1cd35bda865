"""Learn the parameters of probabilistic graphical models: sufficient statistics in, moments matched, a certificate out.

A model asks for sufficient statistics, a source answers in one pass, an engine predicts them under the current
parameters, a solver makes prediction equal answer; the report proves how close they are.

Names load when first used, so that ``import suffice`` costs no more than NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from suffice.fitting import outlets as _outlets

if TYPE_CHECKING:
    from suffice.domain import Domain as Domain
    from suffice.domain import Variable as Variable
    from suffice.errors import CallError as CallError
    from suffice.errors import ClusterError as ClusterError
    from suffice.errors import ConvergenceWarning as ConvergenceWarning
    from suffice.errors import DataError as DataError
    from suffice.errors import EstimateError as EstimateError
    from suffice.errors import ExistenceWarning as ExistenceWarning
    from suffice.errors import FileFormatError as FileFormatError
    from suffice.errors import FloorWarning as FloorWarning
    from suffice.errors import KindWarning as KindWarning
    from suffice.errors import LeftOutWarning as LeftOutWarning
    from suffice.errors import MergeError as MergeError
    from suffice.errors import MissingAttributeError as MissingAttributeError
    from suffice.errors import MissingColumnError as MissingColumnError
    from suffice.errors import MissingExtraError as MissingExtraError
    from suffice.errors import MissingValueError as MissingValueError
    from suffice.errors import NotFittedError as NotFittedError
    from suffice.errors import OptionError as OptionError
    from suffice.errors import OptionWarning as OptionWarning
    from suffice.errors import SamplingWarning as SamplingWarning
    from suffice.errors import SeparationWarning as SeparationWarning
    from suffice.errors import SizeError as SizeError
    from suffice.errors import SufficeError as SufficeError
    from suffice.errors import SufficeWarning as SufficeWarning
    from suffice.errors import UnknownStateError as UnknownStateError
    from suffice.families.bernoulli import Bernoulli as Bernoulli
    from suffice.families.beta import Beta as Beta
    from suffice.families.beta_negative_binomial import BetaNegativeBinomial as BetaNegativeBinomial
    from suffice.families.beta_prime import BetaPrime as BetaPrime
    from suffice.families.categorical import Categorical as Categorical
    from suffice.families.dirichlet import Dirichlet as Dirichlet
    from suffice.families.dirichlet_mixture import DirichletMixture as DirichletMixture
    from suffice.families.dirichlet_multinomial import DirichletMultinomial as DirichletMultinomial
    from suffice.families.exponential import Exponential as Exponential
    from suffice.families.gamma import Gamma as Gamma
    from suffice.families.geometric import Geometric as Geometric
    from suffice.families.inverse_gamma import InverseGamma as InverseGamma
    from suffice.families.laplace import Laplace as Laplace
    from suffice.families.linear_gaussian_prior import LinearGaussianPrior as LinearGaussianPrior
    from suffice.families.lomax import Lomax as Lomax
    from suffice.families.multivariate_normal import MultivariateNormal as MultivariateNormal
    from suffice.families.negative_binomial import NegativeBinomial as NegativeBinomial
    from suffice.families.normal import Normal as Normal
    from suffice.families.normal_inverse_gamma import NormalInverseGamma as NormalInverseGamma
    from suffice.families.normal_wishart import NormalWishart as NormalWishart
    from suffice.families.poisson import Poisson as Poisson
    from suffice.families.student import MultivariateStudentT as MultivariateStudentT
    from suffice.families.student import StudentT as StudentT
    from suffice.families.von_mises import VonMises as VonMises
    from suffice.families.wishart import Wishart as Wishart
    from suffice.fitting.bootstrap import Bootstrap as Bootstrap
    from suffice.fitting.comparing import compare as compare
    from suffice.fitting.hypotheses import wald_test as wald_test
    from suffice.fitting.pooling import pool as pool
    from suffice.fitting.report import Certificate as Certificate
    from suffice.fitting.report import Report as Report
    from suffice.fitting.summarizing import summarize as summarize
    from suffice.formats import read as read
    from suffice.models.bayesian.declaration import BayesianNetwork as BayesianNetwork
    from suffice.models.bayesian.nodes.constraints import ConstrainedTable as ConstrainedTable
    from suffice.models.bayesian.nodes.constraints import Monotone as Monotone
    from suffice.models.bayesian.nodes.noisy_kinds import NoisyMax as NoisyMax
    from suffice.models.bayesian.nodes.noisy_kinds import NoisyOr as NoisyOr
    from suffice.models.chain_crf.declaration import ChainCRF as ChainCRF
    from suffice.models.dynamic_network.declaration import DynamicBayesianNetwork as DynamicBayesianNetwork
    from suffice.models.gaussian_graph.declaration import GaussianGraph as GaussianGraph
    from suffice.models.glm.declaration import GLM as GLM
    from suffice.models.glm.error_kinds import Clustered as Clustered
    from suffice.models.glm.error_kinds import NeweyWest as NeweyWest
    from suffice.models.graph_crf.declaration import GraphCRF as GraphCRF
    from suffice.models.graph_crf.example import GraphExample as GraphExample
    from suffice.models.hidden_markov.declaration import HiddenMarkovModel as HiddenMarkovModel
    from suffice.models.independence import independence_test as independence_test
    from suffice.models.markov.approximate.options import GibbsSampling as GibbsSampling
    from suffice.models.markov.declaration import MarkovNetwork as MarkovNetwork
    from suffice.models.markov.feature import Feature as Feature
    from suffice.models.markov_chain.declaration import MarkovChain as MarkovChain
    from suffice.models.markov_chain.smoothing import AbsoluteDiscount as AbsoluteDiscount
    from suffice.models.markov_chain.smoothing import Interpolation as Interpolation
    from suffice.models.markov_chain.smoothing import Katz as Katz
    from suffice.models.markov_chain.smoothing import KneserNey as KneserNey
    from suffice.models.mixture import Mixture as Mixture
    from suffice.models.nested_sequence import likelihood_ratio_tests as likelihood_ratio_tests
    from suffice.models.nesting import likelihood_ratio_test as likelihood_ratio_test
    from suffice.models.score_tests import score_test as score_test
    from suffice.models.structures import DirectedGraph as DirectedGraph
    from suffice.models.structures import UndirectedGraph as UndirectedGraph
    from suffice.sources.round_files import FileRounds as FileRounds
    from suffice.sources.sites import Question as Question
    from suffice.sources.sites import Rounds as Rounds
    from suffice.sources.sites import Site as Site
    from suffice.statistics import Counts as Counts
    from suffice.statistics import Moments as Moments
    from suffice.statistics import MomentsBy as MomentsBy
    from suffice.statistics import Patterns as Patterns
    from suffice.statistics import Summary as Summary
    from suffice.statistics import Sums as Sums
    from suffice.table import Table as Table
    from suffice.views import plot as plot

__version__ = "0.2.0.dev0"

_EXPORTS: dict[str, str] = {
    # models
    "BayesianNetwork": "suffice.models.bayesian.declaration",
    "ChainCRF": "suffice.models.chain_crf.declaration",
    "DynamicBayesianNetwork": "suffice.models.dynamic_network.declaration",
    "Feature": "suffice.models.markov.feature",
    "Clustered": "suffice.models.glm.error_kinds",
    "NeweyWest": "suffice.models.glm.error_kinds",
    "GLM": "suffice.models.glm.declaration",
    "MarkovChain": "suffice.models.markov_chain.declaration",
    "GaussianGraph": "suffice.models.gaussian_graph.declaration",
    "GraphCRF": "suffice.models.graph_crf.declaration",
    "GraphExample": "suffice.models.graph_crf.example",
    "HiddenMarkovModel": "suffice.models.hidden_markov.declaration",
    "GibbsSampling": "suffice.models.markov.approximate.options",
    "MarkovNetwork": "suffice.models.markov.declaration",
    "Mixture": "suffice.models.mixture",
    "ConstrainedTable": "suffice.models.bayesian.nodes.constraints",
    "Monotone": "suffice.models.bayesian.nodes.constraints",
    "NoisyMax": "suffice.models.bayesian.nodes.noisy_kinds",
    "NoisyOr": "suffice.models.bayesian.nodes.noisy_kinds",
    # structures as graphs
    "DirectedGraph": "suffice.models.structures",
    "UndirectedGraph": "suffice.models.structures",
    # ways to smooth a Markov chain
    "AbsoluteDiscount": "suffice.models.markov_chain.smoothing",
    "Interpolation": "suffice.models.markov_chain.smoothing",
    "Katz": "suffice.models.markov_chain.smoothing",
    "KneserNey": "suffice.models.markov_chain.smoothing",
    # distributions of one column or of several, which also serve as priors
    "Bernoulli": "suffice.families.bernoulli",
    "Beta": "suffice.families.beta",
    "Categorical": "suffice.families.categorical",
    "Dirichlet": "suffice.families.dirichlet",
    "Exponential": "suffice.families.exponential",
    "Gamma": "suffice.families.gamma",
    "Geometric": "suffice.families.geometric",
    "InverseGamma": "suffice.families.inverse_gamma",
    "Laplace": "suffice.families.laplace",
    "MultivariateNormal": "suffice.families.multivariate_normal",
    "NegativeBinomial": "suffice.families.negative_binomial",
    "Normal": "suffice.families.normal",
    "Poisson": "suffice.families.poisson",
    "StudentT": "suffice.families.student",
    "VonMises": "suffice.families.von_mises",
    # joint priors
    "DirichletMixture": "suffice.families.dirichlet_mixture",
    "LinearGaussianPrior": "suffice.families.linear_gaussian_prior",
    "NormalInverseGamma": "suffice.families.normal_inverse_gamma",
    "NormalWishart": "suffice.families.normal_wishart",
    "Wishart": "suffice.families.wishart",
    # predictive distributions
    "BetaNegativeBinomial": "suffice.families.beta_negative_binomial",
    "BetaPrime": "suffice.families.beta_prime",
    "DirichletMultinomial": "suffice.families.dirichlet_multinomial",
    "Lomax": "suffice.families.lomax",
    "MultivariateStudentT": "suffice.families.student",
    # what columns hold, what may be asked of them, and the answers
    "Counts": "suffice.statistics",
    "Domain": "suffice.domain",
    "Moments": "suffice.statistics",
    "MomentsBy": "suffice.statistics",
    "Patterns": "suffice.statistics",
    "Summary": "suffice.statistics",
    "Sums": "suffice.statistics",
    "Variable": "suffice.domain",
    "summarize": "suffice.fitting.summarizing",
    # sites that share no rows
    "FileRounds": "suffice.sources.round_files",
    "Question": "suffice.sources.sites",
    "Rounds": "suffice.sources.sites",
    "Site": "suffice.sources.sites",
    # after the fit
    "Bootstrap": "suffice.fitting.bootstrap",
    "compare": "suffice.fitting.comparing",
    "independence_test": "suffice.models.independence",
    "likelihood_ratio_test": "suffice.models.nesting",
    "likelihood_ratio_tests": "suffice.models.nested_sequence",
    "pool": "suffice.fitting.pooling",
    "score_test": "suffice.models.score_tests",
    "wald_test": "suffice.fitting.hypotheses",
    # results and files
    "Certificate": "suffice.fitting.report",
    "Report": "suffice.fitting.report",
    "Table": "suffice.table",
    "plot": "suffice.views",
    "read": "suffice.formats",
    # errors
    "CallError": "suffice.errors",
    "ClusterError": "suffice.errors",
    "ConvergenceWarning": "suffice.errors",
    "DataError": "suffice.errors",
    "EstimateError": "suffice.errors",
    "FileFormatError": "suffice.errors",
    "MergeError": "suffice.errors",
    "MissingAttributeError": "suffice.errors",
    "MissingColumnError": "suffice.errors",
    "MissingExtraError": "suffice.errors",
    "MissingValueError": "suffice.errors",
    "NotFittedError": "suffice.errors",
    "OptionError": "suffice.errors",
    "SizeError": "suffice.errors",
    "SufficeError": "suffice.errors",
    "KindWarning": "suffice.errors",
    "SeparationWarning": "suffice.errors",
    "OptionWarning": "suffice.errors",
    "LeftOutWarning": "suffice.errors",
    "FloorWarning": "suffice.errors",
    "ExistenceWarning": "suffice.errors",
    "SamplingWarning": "suffice.errors",
    "SufficeWarning": "suffice.errors",
    "UnknownStateError": "suffice.errors",
}

__all__ = sorted(_EXPORTS)

#: What other libraries call these classes and functions.
_ELSEWHERE = {
    **dict.fromkeys(("DiscreteBayesianNetwork", "BayesianModel", "BayesNet", "BN"), "BayesianNetwork"),
    **dict.fromkeys(("LinearGaussianBayesianNetwork", "DAG"), "BayesianNetwork"),
    **dict.fromkeys(("MarkovModel", "MarkovRandomField", "MRF", "FactorGraph", "dmod"), "MarkovNetwork"),
    **dict.fromkeys(("GraphicalLasso", "cmod"), "GaussianGraph"),
    **dict.fromkeys(
        ("GaussianHMM", "CategoricalHMM", "MultinomialHMM", "PoissonHMM", "GMMHMM", "HMM"), "HiddenMarkovModel"
    ),
    **dict.fromkeys(("CRF", "LinearChainCRF"), "ChainCRF"),
    **dict.fromkeys(("DBN", "DynamicBN", "dDBN", "KTBN"), "DynamicBayesianNetwork"),
    **dict.fromkeys(("LogisticRegression", "LinearRegression", "PoissonRegressor", "glm", "ols", "Logit"), "GLM"),
    **dict.fromkeys(("GaussianMixture", "GMM"), "Mixture"),
    **dict.fromkeys(("Gaussian", "norm"), "Normal"),
    **dict.fromkeys(("load", "load_model", "read_bif"), "read"),
}


def __getattr__(name: str) -> Any:
    """Import the module that holds a public name when the name is first used."""
    if name not in _EXPORTS:
        from suffice.errors import MissingAttributeError, meant

        near = meant(_ELSEWHERE.get(name, name), _EXPORTS)
        raise MissingAttributeError(f"suffice has no {name!r}.{near} dir(suffice) lists its names.")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def _page(report: Report, portrait: Any, path: Any, title: str | None) -> str:
    from suffice.views import write_report

    return write_report(report, portrait, path, title)


def _card(made: str, portrait: Any, report: Report | None) -> str:
    from suffice.views import model_card

    return model_card(made, portrait, report)


def _write(model: object, path: Any) -> None:
    from suffice.formats import write

    write(model, path)


def _read(path: Any) -> Any:
    from suffice.formats import read

    return read(path)


# Pages and files stand above the models that they show and hold: here, where all parts are known, they meet.
_outlets.connect(page=_page, card=_card, write=_write, read=_read)


def __dir__() -> list[str]:
    """Public names."""
    return sorted([*__all__, "__version__"])
