"""Objects whose options live in the constructor: read, changed, copied and shown as scikit-learn does it."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError, listing
from suffice.records import fields_of, set_fields

if TYPE_CHECKING:
    from pathlib import Path


def doubles(values: object) -> NDArray[np.float64]:
    """Given numbers as float64; a TypeError or ValueError where they are none.

    NumPy by itself takes the real part of complex numbers, the count of seconds of dates and what a text spells.
    """
    array = np.asarray(values)
    if array.dtype.kind in "cmMSUV":
        raise TypeError(f"{array.dtype} is no type of real numbers")
    return np.asarray(array, dtype=np.float64)


class RunOptions(TypedDict, total=False):
    """Options that steer an iterative fit and are no part of a model; see `suffice.fitting.control.Control`.

    A constructor takes them as ``**run: Unpack[RunOptions]`` behind its own options, and hands all to that of its base.
    Its signature then spells them out, and the line ``run:`` of its class's docstring becomes their description. What a
    constructor names itself keeps the default and the words that it gives.
    """

    max_seconds: float | None
    progress: bool
    callback: Callable[..., Any] | None
    checkpoint: str | Path | None


class NewtonOptions(RunOptions, total=False):
    """The same with the limits of Newton's method, for families that are fitted by it."""

    max_iter: int
    tolerance: float


#: The default of each, and what it does.
_RUN: Mapping[str, tuple[Any, str]] = {
    "max_iter": (200, "most steps of Newton."),
    "tolerance": (1e-11, "the Newton decrement at which the fit has converged."),
    "max_seconds": (None, "most seconds, of all runs together where there are several."),
    "progress": (False, "show a bar."),
    "callback": (None, "called with the state after each iteration; True stops the fit."),
    "checkpoint": (None, "file from which an interrupted fit goes on."),
}


def own_options(names: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor, from the names that it sees before it has made any of its own: its locals()."""
    own = {name: value for name, value in names.items() if name not in ("self", "__class__", "run")}
    return {**own, **names.get("run", {})}


class _SpelledOptions(NamedTuple):
    """All options of a constructor that takes some as ``**run``, and the defaults of these."""

    taken: frozenset[str]
    defaults: dict[str, Any]

    def completed(self, options: dict[str, Any], name: str) -> dict[str, Any]:
        """With the defaults; an option that the constructor does not have is Python's own error."""
        unknown = next((option for option in options if option not in self.taken), None)
        if unknown is not None:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument {unknown!r}")
        return {**self.defaults, **options}


def _spell_run_options(kind: type[object], constructor: Any) -> _SpelledOptions | None:
    """Name what a constructor takes as ``**run`` in its signature and in the docstring of its class; None for none."""
    if not constructor.__code__.co_flags & inspect.CO_VARKEYWORDS:
        return None
    signature = inspect.signature(constructor)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    run = {name: about for name, about in _RUN.items() if name not in signature.parameters}
    types = NewtonOptions.__annotations__
    spelled = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
        for name, (default, _) in run.items()
    ]
    constructor.__signature__ = signature.replace(parameters=[*own, *spelled])
    if kind.__doc__ is not None:
        own_words = set(re.findall("^ {8}([a-z_]+):", kind.__doc__, flags=re.MULTILINE))
        words = "\n".join(f"        {name}: {about}" for name, (_, about) in run.items() if name not in own_words)
        kind.__doc__ = re.sub("^ *run:.*$", words, kind.__doc__, count=1, flags=re.MULTILINE)
    defaults = {name: default for name, (default, _) in run.items()}
    return _SpelledOptions(frozenset([*(p.name for p in own[1:]), *run]), defaults)


class Idle(NamedTuple):
    """An option that changes nothing beside others: `when` these are as it says, `because` of which, in words.

    A model declares such options in one table. One that is set all the same is an error; at its default it never is.
    """

    option: str
    when: Callable[[Mapping[str, Any]], bool]
    because: str


@lru_cache(maxsize=256)
def _defaults(constructor: Any) -> Mapping[str, Any]:
    return {name: parameter.default for name, parameter in inspect.signature(constructor).parameters.items()}


class Parameterized:
    """Options in the constructor, kept as they were given.

    Subclasses call ``super().__init__(**options)`` with every argument of their own constructor.
    """

    #: Options that say what the object is: when one of them changes, what was learned is another thing's.
    _defining: ClassVar[frozenset[str]] = frozenset({"structure"})

    #: The options that the constructor takes as ``**run``; None where it names all options itself.
    _run: ClassVar[_SpelledOptions | None] = None

    #: Options that have no effect beside others.
    _idle: ClassVar[tuple[Idle, ...]] = ()

    #: The options by name; none before the constructor has run.
    _options: Mapping[str, Any] = MappingProxyType({})

    def __init_subclass__(cls, **options: Any) -> None:
        """Spell out the options of a run."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls._run = _spell_run_options(cls, vars(cls)["__init__"])

    def __init__(self, **options: object) -> None:
        """Keep the options as they were given."""
        self._options = options if self._run is None else self._run.completed(options, type(self).__name__)

    def _refuse_idle(self, **beside: object) -> None:
        """Raise where an option was set that has no effect on a fit with what is given `beside` the examples."""
        defaults = _defaults(type(self).__init__) if self._idle else {}
        for option, when, because in self._idle:
            value = self._options[option]
            if not _same(value, defaults[option]) and when({**self._options, **beside}):
                raise OptionError(f"{option}={_short(value)} has no effect: {because}. Leave {option}= out.")

    def __setattr__(self, name: str, value: object) -> None:
        """An option that is written to is set as by `set_params`; anything else is an attribute of its own."""
        if name in self._options:
            self.set_params(**{name: value})
        else:
            object.__setattr__(self, name, value)

    @classmethod
    def _option_names(cls) -> list[str]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options; with `deep` also those of options that have options, as ``prior__alpha``."""
        options = {name: self._options[name] for name in self._option_names()}
        if deep:
            for name, value in list(options.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    options |= {f"{name}__{inner}": option for inner, option in value.get_params().items()}
        return options

    def set_params(self, **options: object) -> Self:
        """Change options; those of a prior as ``prior__alpha=2``. What was learned stays until the next `fit`."""
        merged = dict(self._options)
        nested: dict[str, dict[str, Any]] = {}
        for name, value in options.items():
            outer, _, inner = name.partition("__")
            if outer not in merged:
                raise OptionError(f"{type(self).__name__} has no option {name!r}; it has {listing(merged)}.")
            if inner:
                nested.setdefault(outer, {})[inner] = value
            else:
                merged[outer] = value
        for outer, inside in nested.items():
            if not hasattr(merged[outer], "get_params"):
                raise OptionError(f"The option {outer!r} is {merged[outer]!r} and has no options of its own.")
            merged[outer] = copy.copy(merged[outer]).set_params(**inside)
        fresh = type(self)(**merged)
        if self._defining & options.keys():
            fields_of(self).clear()
        set_fields(self, **fields_of(fresh))
        return self

    def clone(self) -> Self:
        """An unfitted copy with the same options."""
        return type(self)(**copy.deepcopy(self.get_params(deep=False)))

    def __repr__(self) -> str:
        """The constructor call with the options that differ from the defaults."""
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={_short(self._options[name])}"
            for name in self._option_names()
            if not _same(self._options[name], defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _same(value: object, default: object) -> bool:
    """Whether an option is left at its default."""
    plain = type(value) is type(default) and isinstance(value, int | float | str)
    return value is default or (plain and bool(value == default))


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
