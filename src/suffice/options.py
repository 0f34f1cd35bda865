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

from suffice.calls import explain_methods, settable, unknown_option
from suffice.errors import OptionError, asked_by, shortened
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


def truth(value: object, name: str) -> bool:
    """True or False, and nothing that merely has a truth of its own, as the text "no" has."""
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{name} is {shortened(value)}; expected True or False.")
    return bool(value)


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


class _Constructor(NamedTuple):
    """The options of a constructor that takes some as ``**run``, else None; their defaults; its switches."""

    taken: frozenset[str] | None = None
    defaults: Mapping[str, Any] = MappingProxyType({})
    switches: tuple[str, ...] = ()

    def completed(self, options: dict[str, Any], name: str) -> dict[str, Any]:
        """With the defaults; an option that the constructor does not have is Python's own error, which is explained."""
        unknown = next((option for option in options if self.taken is not None and option not in self.taken), None)
        if unknown is not None:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument {unknown!r}")
        complete = {**self.defaults, **options}
        for switch in self.switches:
            truth(complete[switch], switch)
        return complete


def _spell_run_options(kind: type[object], constructor: Any) -> _Constructor:
    """Name what a constructor takes as ``**run`` in its signature and in the docstring of its class."""
    switches = tuple(name for name, type_ in constructor.__annotations__.items() if type_ == "bool")
    if not constructor.__code__.co_flags & inspect.CO_VARKEYWORDS:
        return _Constructor(switches=switches)
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
    switches = (*switches, *(name for name in run if name == "progress"))
    return _Constructor(frozenset([*(p.name for p in own[1:]), *run]), defaults, switches)


class Idle(NamedTuple):
    """An option that changes nothing beside others: `when` these are as it says, `because` of which, in words.

    A model declares such options in one table. One that is set all the same is an error; at its default it never is.
    """

    option: str
    when: Callable[[Mapping[str, Any]], bool]
    because: str


@lru_cache(maxsize=256)
def _defaults(constructor: Any) -> Mapping[str, Any]:
    """The options of a constructor, each with its default."""
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _merged(known: Mapping[str, Any], changes: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Options with changes; those of an option that has options itself are called as ``prior__alpha``."""
    merged = dict(known)
    nested: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        outer, _, inner = name.partition("__")
        if outer not in merged:
            raise unknown_option(title, name, list(merged))
        if inner:
            nested.setdefault(outer, {})[inner] = value
        else:
            merged[outer] = value
    for outer, inside in nested.items():
        if not hasattr(merged[outer], "get_params"):
            raise OptionError(f"{outer} is {merged[outer]!r}, which has no options of its own. Give {outer}=.")
        merged[outer] = copy.copy(merged[outer]).set_params(**inside)
    return merged


class PatientType(type):
    """The type of things with options: what scikit-learn sets is refused when it is used, what a person sets at once.

    A search of scikit-learn sets options that may be wrong, and goes on where `fit` refuses them.
    """

    if not TYPE_CHECKING:  # Checkers would read it in place of every constructor, and know no type of any instance.

        def __call__(cls, *args: Any, **options: Any) -> Any:
            """An instance; options that are refused make one that only knows them, where scikit-learn asks."""
            try:
                return super().__call__(*args, **options)
            except Exception as error:
                if not asked_by("sklearn"):
                    raise
                given = cls.__signature__.bind(*args, **options)
                given.apply_defaults()
                made = cls.__new__(cls)
                set_fields(made, _options=dict(given.arguments), _refused=error)
                return made

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of the constructor."""
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]
        return signature.replace(parameters=list(signature.parameters.values())[1:])


class Parameterized(metaclass=PatientType):
    """Options in the constructor, kept as they were given.

    Subclasses call ``super().__init__(**options)`` with every argument of their own constructor.
    """

    #: Why the options were refused, where scikit-learn has set them.
    _refused: Exception | None = None

    #: Options that say what the object is: when one of them changes, what was learned is another thing's.
    _defining: ClassVar[frozenset[str]] = frozenset({"structure"})

    #: What the constructor takes.
    _run: ClassVar[_Constructor] = _Constructor()

    #: Options that have no effect beside others.
    _idle: ClassVar[tuple[Idle, ...]] = ()

    #: The options by name; none before the constructor has run.
    _options: Mapping[str, Any] = MappingProxyType({})

    def __init_subclass__(cls, **options: Any) -> None:
        """Spell out the options of a run."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls._run = _spell_run_options(cls, vars(cls)["__init__"])
        explain_methods(cls)

    def __init__(self, **options: object) -> None:
        """Keep the options as they were given."""
        self._options = self._run.completed(options, type(self).__name__)

    def _refuse_idle(self, **beside: object) -> None:
        """Raise where an option was set that has no effect on a fit with what is given `beside` the examples."""
        changed = self._changed() if self._idle else {}
        for option, when, because in self._idle:
            if option in changed and when({**self._options, **beside}):
                raise OptionError(f"{option}={_short(changed[option])} has no effect: {because}. Leave {option}= out.")

    def __setattr__(self, name: str, value: object) -> None:
        """An option that is written to is set as by `set_params`; anything else is an attribute of its own."""
        if name in self._options:
            self.set_params(**{name: value})
        else:
            object.__setattr__(self, settable(self, name, list(self._options)), value)

    @classmethod
    def _option_names(cls) -> list[str]:
        return list(_defaults(cls.__init__))

    def _changed(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        defaults = _defaults(type(self).__init__).items()
        return {name: self._options[name] for name, default in defaults if not _same(self._options[name], default)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options; with `deep` also those of options that have options, as ``prior__alpha``."""
        options = {name: self._options[name] for name in self._option_names()}
        if truth(deep, "deep"):
            for name, value in list(options.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    options |= {f"{name}__{inner}": option for inner, option in value.get_params().items()}
        return options

    def set_params(self, **options: object) -> Self:
        """Change options; those of a prior as ``prior__alpha=2``. What was learned stays until the next `fit`."""
        fresh = type(self)(**_merged(self._options, options, type(self).__name__))
        if self._defining & options.keys():
            fields_of(self).clear()
        set_fields(self, **fields_of(fresh))
        return self

    def clone(self) -> Self:
        """An unfitted copy with the same options."""
        return type(self)(**copy.deepcopy(self.get_params(deep=False)))

    def __repr__(self) -> str:
        """The constructor call with the options that differ from the defaults."""
        shown = [f"{name}={_short(value)}" for name, value in self._changed().items()]
        return f"{type(self).__name__}({', '.join(shown)})"


def _same(value: object, default: object) -> bool:
    """Whether an option is left at its default."""
    plain = type(value) is type(default) and isinstance(value, int | float | str)
    return value is default or (plain and bool(value == default))


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
