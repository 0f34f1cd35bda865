"""Calls that do not fit: an argument that a function does not have, one too many, or one that is left out.

Python's own error names the argument and no more. Here the caller also reads which arguments there are and which one
was probably meant, also where the name is that of another library.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from suffice.errors import CallError, MissingAttributeError, NotFittedError, OptionError, SufficeError, listing, meant

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: What other libraries and languages call an argument, and what it is called here; the first that a function has.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    # pgmpy, pyAgrum, bnlearn, gRain
    "evidence": ("given",),
    "virtual_evidence": ("given",),
    "evs": ("given",),
    "observations": ("given", "data", "sequences"),
    "edges": ("structure",),
    "ebunch": ("structure",),
    "graph": ("structure",),
    "dag": ("structure",),
    "cliques": ("structure",),
    "state_names": ("states",),
    "levels": ("states",),
    "categories": ("states",),
    "latents": ("hidden",),
    "latent": ("hidden",),
    "prior_type": ("prior",),
    "pseudo_counts": ("prior",),
    "pseudocounts": ("prior",),
    "pseudocount": ("prior",),
    "smooth": ("smoothing", "prior"),
    "smoothing_prior": ("prior",),
    "iss": ("equivalent_sample_size", "prior"),
    "ess": ("equivalent_sample_size", "prior"),
    "complete_samples_only": ("missing",),
    "query_var": ("variables",),
    "elimination_order": ("engine",),
    "variable": ("variables", "target", "node"),
    "partial_samples": ("given",),
    # hmmlearn, pomegranate
    "n_components": ("states", "n"),
    "n_states": ("states",),
    "n_classes": ("states", "labels"),
    "hidden_states": ("states",),
    "covariance_type": ("covariance",),
    "startprob": ("initial",),
    "startprob_prior": ("prior",),
    "start_probability": ("initial",),
    "transmat": ("transitions",),
    "transmat_prior": ("prior",),
    "transition_matrix": ("transitions",),
    "means": ("emissions",),
    "covars": ("emissions",),
    "means_prior": ("prior",),
    "covars_prior": ("prior",),
    "emissionprob": ("emissions",),
    "emission_probability": ("emissions",),
    "distributions": ("emission", "components"),
    "init_params": ("initial", "fixed", "start"),
    "min_covar": ("variance_floor",),
    "params": ("fixed",),
    "algorithm": ("method", "solver"),
    "n_order": ("order",),
    "k": ("order", "n", "states"),
    # scikit-learn, sklearn-crfsuite, statsmodels, R
    "alpha": ("prior", "level"),
    "C": ("prior",),
    "c1": ("prior",),
    "c2": ("prior",),
    "l1": ("prior",),
    "l2": ("prior",),
    "l1_ratio": ("prior",),
    "penalty": ("prior",),
    "lambda_": ("prior",),
    "regularization": ("prior",),
    "max_iterations": ("max_iter",),
    "n_iter": ("max_iter",),
    "maxiter": ("max_iter",),
    "maxit": ("max_iter",),
    "num_iter": ("max_iter",),
    "iterations": ("max_iter",),
    "tol": ("tolerance",),
    "eps": ("tolerance",),
    "epsilon": ("tolerance",),
    "threshold": ("tolerance",),
    "seed": ("random_state",),
    "random_seed": ("random_state",),
    "rng": ("random_state",),
    "n_jobs": ("threads",),
    "num_threads": ("threads",),
    "verbose": ("progress",),
    "show_progress": ("progress",),
    "progress_bar": ("progress",),
    "weight": ("sample_weight",),
    "weights": ("sample_weight",),
    "sample_weights": ("sample_weight",),
    "freq_weights": ("sample_weight",),
    "var_weights": ("sample_weight",),
    "n_samples": ("steps", "n"),
    "n_sample": ("steps", "n"),
    "num_samples": ("steps", "n"),
    "size": ("n", "steps"),
    "time_column": ("time", "order"),
    "id": ("group",),
    "length": ("length", "steps", "lengths"),
    "n_steps": ("steps", "slices"),
    "steps": ("slices",),
    "n_time_slice": ("slices",),
    "n_time_slices": ("slices",),
    "names": ("columns", "variables"),
    "feature_names": ("columns",),
    "variables": ("columns", "structure", "nodes"),
    "df": ("data", "X"),
    "dataframe": ("data", "X"),
    "X": ("data", "sequences"),
    "x": ("X", "data"),
    "Y": ("y",),
    "labels": ("y", "states"),
    "labels_true": ("states", "y"),
    "target": ("y",),
    "min_freq": ("min_frequency", "min_count"),
    "intercept": ("fit_intercept",),
    "distribution": ("family", "emission"),
    "groups": ("group",),
    "sequence_id": ("group",),
    "type": ("kind",),
    "S": ("covariance",),
    "cov": ("covariance",),
    "cov_type": ("covariance",),
    "n_obs": ("n",),
    "mu": ("mean", "rate"),
    "loc": ("mean",),
    "sigma": ("variance", "covariance"),
    "sigma2": ("variance",),
    "scale": ("variance", "rate", "dispersion"),
    "std": ("variance",),
    "sd": ("variance",),
    "var": ("variance",),
    "p": ("probability", "probabilities"),
    "probs": ("probabilities",),
    "lam": ("rate",),
    "a": ("alpha", "shape"),
    "b": ("beta", "rate"),
    "confidence": ("level",),
    "conf_level": ("level",),
    "n_best": ("k", "n"),
}

#: What other libraries call results and methods, and what they are called here; the first that an object has.
RESULTS: Mapping[str, tuple[str, ...]] = {
    # pgmpy, pyAgrum, bnlearn
    "cpds": ("table", "nodes"),
    "get_cpds": ("table",),
    "cpt": ("table",),
    "variables": ("nodes",),
    "get_parents": ("parents",),
    "simulate": ("sample",),
    "rvs": ("sample",),
    "generate": ("sample",),
    "posterior": ("query", "posterior_", "smooth"),
    "inference": ("query", "smooth"),
    "query": ("smooth",),
    "forward_inference": ("filter",),
    "backward_inference": ("smooth",),
    "predict": ("map_query",),
    "predict_proba": ("smooth",),
    "decode": ("map_query",),
    "get_interface_nodes": ("parents",),
    "get_slice_nodes": ("nodes_",),
    "get_intra_edges": ("parents",),
    "get_inter_edges": ("parents",),
    "edges": ("parents",),
    "map": ("map_query",),
    "state_names": ("states",),
    "save": ("write",),
    "dump": ("write",),
    "to_csv": ("write",),
    "check_model": ("report_",),
    "summary": ("report_",),
    "fit_predict": ("predict",),
    "get_partition_function": ("log_partition_", "log_partition"),
    # hmmlearn, pomegranate
    "viterbi": ("predict", "decode", "map_query"),
    "emissionprob_": ("emission_probabilities_",),
    "lambdas_": ("emissions_",),
    "n_components": ("states_",),
    "monitor_": ("report_",),
    "log_prob": ("score_samples",),
    "log_probability": ("score_samples",),
    "start_probability": ("initial_",),
    # scikit-learn, sklearn-crfsuite, statsmodels
    "coef_": ("coefficients_", "state_weights_", "weights_"),
    "coefs_": ("coefficients_",),
    "params": ("parameters_", "weights_"),
    "nobs": ("report_",),
    "mu": ("predict",),
    "get_prediction": ("predict",),
    "resid_deviance": ("residuals",),
    "resid_pearson": ("residuals",),
    "resid_response": ("residuals",),
    "coef": ("coefficients_", "weights_"),
    "logLik": ("log_likelihood_",),
    "AIC": ("aic_",),
    "BIC": ("bic_",),
    "bse": ("standard_errors_",),
    "se": ("standard_errors_",),
    "llf": ("log_likelihood_",),
    "loglik": ("log_likelihood_",),
    "lower_bound_": ("log_likelihood_",),
    "startprob_": ("initial_",),
    "transmat_": ("transitions_",),
    "transition_matrix_": ("transitions_",),
    "pvalues": ("summary",),
    "conf_int": ("intervals", "confidence_intervals"),
    "intervals": ("confidence_intervals",),
    "cov_params": ("covariance_",),
    "resid": ("residuals",),
    "fittedvalues": ("predict",),
    "transition_features_": ("transition_weights_",),
    "state_features_": ("state_weights_",),
    "predict_single": ("predict",),
    "predict_marginals_single": ("predict_marginals",),
    "tagger_": ("predict",),
    "pdf": ("prob",),
    "pmf": ("prob",),
    "logpdf": ("log_prob",),
    "logpmf": ("log_prob",),
    "ppf": ("quantile",),
    "std": ("variance",),
    "std_": ("variance_",),
    "var_": ("variance_",),
    "sigma_": ("variance_", "covariance_"),
    "concentration": ("precision_",),
    "partial_corr_": ("partial_correlations_",),
}


#: What is more to say about a result that is a method elsewhere.
METHODS_ELSEWHERE = {"aic": "the rows that were learned from", "bic": "the rows that were learned from"}


def explained(function: Callable[P, R], name: str | None = None) -> Callable[P, R]:
    """The function with an error of this library where a call of it does not fit.

    name: what messages call it; by default its class, which is that of the first argument, and its name.
    """
    handed_on: list[str] | None = None if _handed_on(function) else []

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        nonlocal handed_on
        if options and handed_on != []:
            # What stands behind ``**name`` may be handed on to where nobody asks for it: it is compared at once.
            if handed_on is None:
                handed_on = taken_arguments(function)
            strange = next((option for option in options if option not in handed_on), None)
            if strange is not None:
                refusal = TypeError(f"unexpected keyword argument {strange!r}")
                raise _mistake(function, name, args, options, refusal) or refusal
        try:
            return function(*args, **options)
        except TypeError as error:
            mistake = None if isinstance(error, SufficeError) else _mistake(function, name, args, options, error)
            if mistake is None:
                raise
            raise mistake from None

    return call


def explain_methods(kind: type[T]) -> type[T]:
    """Explain calls of the constructor and of the public methods that a class itself defines; a decorator."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(kind, name, type(member)(explained(member.__func__)))
        elif inspect.isfunction(member) and not _takes_all(member):
            setattr(kind, name, explained(member))
        elif inspect.isfunction(getattr(member, "method", None)):  # What a model has under a condition only.
            member.method = explained(member.method)
    return kind


def _takes_all(function: Any) -> bool:
    """Whether a constructor is that of a base, which takes the options of whoever inherits it."""
    own = function.__code__.co_argcount + function.__code__.co_kwonlyargcount
    return bool(function.__name__ == "__init__" and own == 1 and function.__code__.co_flags & inspect.CO_VARKEYWORDS)


def _mistake(
    function: Callable[..., Any], name: str | None, args: Sequence[Any], options: Mapping[str, Any], error: TypeError
) -> CallError | None:
    """What is wrong with a call; None where it fits, so that the error is one of another kind."""
    parameters = inspect.signature(function).parameters
    who, one = (name, "argument") if name is not None else _called(function, args, parameters)
    own = 1 if next(iter(parameters), "") in ("self", "cls", "model") else 0
    named = [p for p in list(parameters.values())[own:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    taken = _taken(function, parameters)[own:]
    known = f"Its {one}s are: {listing(taken, 40).replace(chr(39), '')}."
    unknown = [option for option in options if option not in taken]
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        # What it hands on is refused further in, by Python's error that names the argument.
        refused = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        unknown = [option for option in unknown if refused is not None and option == refused[1]]
    if unknown:
        return CallError(f"{who} has no {one} {unknown[0]!r}.{meant_argument(unknown[0], taken)} {known}")
    by_place = [p.name for p in named if p.kind is not p.KEYWORD_ONLY]
    given = args[own:]
    if len(given) > len(by_place) and not any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        rest = [f"{p.name}=" for p in named if p.kind is p.KEYWORD_ONLY]
        by_name = f" Give others by name: {', '.join(rest[:12])}." if rest else " Leave the others out."
        places = f" ({', '.join(by_place)})" if by_place else ""
        return CallError(
            f"{who} takes at most {len(by_place)} value{'s' * (len(by_place) != 1)} by position{places}; found "
            f"{len(given)}.{by_name}"
        )
    twice = [p for p in by_place[: len(given)] if p in options]
    if twice:
        return CallError(f"{who} is given {twice[0]} twice, by position and by name. Give it once. {known}")
    left_out = [
        p.name
        for number, p in enumerate(named)
        if p.default is p.empty and number >= len(given) and p.name not in options
    ]
    if left_out:
        asked = " and ".join(f"{argument}=" for argument in left_out)
        return CallError(f"{who} needs {' and '.join(left_out)}, which the call leaves out. Give {asked}. {known}")
    return None


def _called(function: Callable[..., Any], args: Sequence[Any], parameters: Mapping[str, Any]) -> tuple[str, str]:
    """What a function is called in a message, and what its arguments are."""
    bound = bool(args) and next(iter(parameters), "") in ("self", "cls", "model")
    owner = args[0] if bound else None
    kind = owner.__name__ if isinstance(owner, type) else type(owner).__name__
    if function.__name__ == "__init__":
        return kind, "option"
    return (f"{kind}.{function.__name__}" if bound else function.__qualname__), "argument"


def _handed_on(function: Any) -> bool:
    """Whether it hands arguments on that its signature names: as ``Unpack[Options]``, or as those of what it wraps."""
    if not function.__code__.co_flags & inspect.CO_VARKEYWORDS or function.__name__ == "__init__":
        return False  # A constructor hands all to that of its base, which compares them.
    last = list(inspect.signature(function).parameters.values())[-1]
    return last.kind is not last.VAR_KEYWORD or str(last.annotation).startswith("Unpack[")


def taken_arguments(function: Callable[..., Any]) -> list[str]:
    """The names of all arguments, those behind ``**name: Unpack[Options]`` too."""
    return _taken(function, inspect.signature(function).parameters)


def _taken(function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The names of all arguments."""
    named = [p.name for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [*named, *_spelled(function, parameters)]


def _spelled(function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The arguments that stand behind ``**name: Unpack[Options]``."""
    last = next((p for p in parameters.values() if p.kind is p.VAR_KEYWORD), None)
    spelled = None if last is None else re.fullmatch(r"Unpack\[(\w+)\]", str(last.annotation))
    inner = inspect.unwrap(function)
    options = None if spelled is None else inner.__globals__.get(spelled[1])
    return sorted(getattr(options, "__optional_keys__", ()))


def missing_attribute(model: object, name: str, options: Iterable[str], *, is_fitted: bool) -> AttributeError:
    """The error for a name that a model does not have, or not before its fit."""
    kind = type(model)
    if name.startswith("_"):  # Python and notebooks look for many of these; nobody has misspelt them.
        return MissingAttributeError(f"{kind.__name__} has no attribute {name!r}.")
    parameters = [f"{parameter}_" for parameter in getattr(kind, "parameter_names", ())]
    # A result that this fit does not have is no help; before a fit none is there, and all are meant.
    known = [*options, *parameters, *(dir(model) if is_fitted else dir(kind))]
    near = _meant_attribute(name, known)
    if name.endswith("_") and not is_fitted:
        return NotFittedError(f"This {kind.__name__} has no {name} yet.{near} Call fit first, or check the name.")
    results = ", ".join(dict.fromkeys(public for public in known if public.endswith("_") and public[0] != "_"))
    return MissingAttributeError(f"{kind.__name__} has no attribute {name!r}.{near} Its results are: {results}.")


def settable(model: object, name: str, options: Sequence[str]) -> str:
    """A name that can be set; a result, or an option that is misspelt, is refused."""
    kind = type(model)
    if name.startswith("_") or not kind.__module__.startswith("suffice."):
        return name
    member = inspect.getattr_static(kind, name, None)
    near = meant_argument(name.removesuffix("_"), options)
    if isinstance(member, property) and member.fset is None:
        raise MissingAttributeError(
            f"{name} of a {kind.__name__} is what it has learned or was given, and cannot be set.{near} Set an option: "
            f"{', '.join(options)}."
        )
    if member is None and near:
        known = ", ".join(options)
        raise MissingAttributeError(f"{kind.__name__} has no option {name!r}.{near} Its options are: {known}.")
    return name


def unknown_option(who: str, name: str, known: Sequence[str]) -> OptionError:
    """The error for an option that an object does not have."""
    near = meant_argument(name.partition("__")[0], known)
    return OptionError(f"{who} has no option {name!r}.{near} Its options are: {', '.join(known)}.")


def _meant_attribute(name: str, known: Sequence[str]) -> str:
    """The attribute that a name stands for elsewhere, or with an underscore; else the one that comes nearest."""
    candidates = (f"{name}_", name.removesuffix("_"), *RESULTS.get(name, ()))
    here = next((other for other in candidates if other in known), None)
    if here is not None and name in METHODS_ELSEWHERE:
        return (
            f" Did you mean {here!r}? It is a number, of {METHODS_ELSEWHERE[name]}; of others there is score_samples."
        )
    # Those that route metadata are called by scikit-learn alone.
    unmeant = ("from_dict", "to_dict", "get_params", "set_params")
    public = [other for other in known if not (other.startswith("_") or other.endswith("_request"))]
    public = [other for other in public if other not in unmeant]
    return meant(name, public) if here is None else f" Did you mean {here!r}?"


def meant_argument(name: str, taken: Sequence[str]) -> str:
    """The argument that a name stands for elsewhere, else the one that comes nearest."""
    elsewhere = next((other for other in SYNONYMS.get(name, ()) if other in taken), None)
    return meant(name, taken) if elsewhere is None else f" Did you mean {elsewhere!r}?"
