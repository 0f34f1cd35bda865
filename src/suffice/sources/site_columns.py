"""The columns that sites have together: one kind for each, and no text at one site where another has numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suffice.domain import Domain, Variable
from suffice.errors import DataError, listing
from suffice.sources.releasing import parts_of


@dataclass(frozen=True)
class SiteColumns:
    """What the columns of a site are: kinds by type, those that are numbers by type, and whether rows have an order."""

    variables: Mapping[Hashable, Variable]
    numbers: frozenset[Hashable]
    unordered: str = ""


@dataclass(frozen=True)
class MergedColumns:
    """The columns that all sites have."""

    variables: Mapping[Hashable, Variable]
    numbers: frozenset[Hashable]
    unordered: str = ""
    promoted: Mapping[Hashable, str] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Mapping[str, SiteColumns]) -> MergedColumns:
        """Of what each site says of its own."""
        for site, answer in answers.items():
            if not isinstance(answer, SiteColumns):
                raise DataError(
                    f"Site {site!r} was asked what its columns are and answered with {type(answer).__name__}. A "
                    "function in the place of a site returns what Site.answer(question) returned there."
                )
        names = list(next(iter(answers.values())).variables)
        for site, answer in answers.items():
            if set(answer.variables) != set(names):
                odd = sorted(set(answer.variables) ^ set(names), key=str)
                raise DataError(
                    f"The sites have different columns: site {site!r} and site {next(iter(answers))!r} do not both "
                    f"have {listing(odd)}. Name the columns that all of them have by sf.Site(data, columns=...)."
                )
        variables: dict[Hashable, Variable] = {}
        promoted: dict[Hashable, str] = {}
        for name in names:
            kinds = {answer.variables[name].kind for answer in answers.values()}
            domains = [Domain([answer.variables[name]]) for answer in answers.values()]
            whole = [site for site, answer in answers.items() if answer.variables[name].kind != "real"]
            if len(kinds) > 1:
                floats = next(site for site in answers if site not in whole)
                promoted[name] = f"integers at site {whole[0]!r} and floats at site {floats!r}"
            # Missing values widen integers to floats at one site and not at another: `decide_kinds` looks.
            variables[name] = Variable(name, "real") if len(kinds) > 1 else _merged(domains)[name]
        numbers = frozenset.intersection(*(answer.numbers for answer in answers.values()))
        return cls(variables, numbers, next((a.unordered for a in answers.values() if a.unordered), ""), promoted)


def _merged(domains: Sequence[Domain]) -> Domain:
    whole, *others = domains
    for other in others:
        whole = whole.merge(other)
    return whole


def check_alike(answers: Mapping[str, Any]) -> None:
    """Raise where a column has text for states at one site, and numbers at another: 1 and '1' would be two states."""
    natures: dict[Hashable, dict[str, str]] = {}
    for site, answer in answers.items():
        for name, nature in _natures(answer):
            natures.setdefault(name, {}).setdefault(nature, site)
    for name, by_nature in natures.items():
        if len(by_nature) > 1:
            one, other = [f"{nature} at site {site!r}" for nature, site in by_nature.items()]
            raise DataError(
                f"Column {name!r} holds {one} and {other}, whose values would be different states. Give it one type at "
                "all sites, or leave it out by sf.Site(data, columns=...)."
            )


def _natures(answer: Any) -> Iterator[tuple[Hashable, str]]:
    """The columns whose states are all text, or all numbers, in the domains that an answer brings."""
    for part in parts_of(answer):
        domain = getattr(part, "domain", None)
        for variable in domain.variables if isinstance(domain, Domain) else ():
            if variable.kind == "discrete" and variable.states:
                kinds = {"text" if isinstance(s, str) else _number(s) for s in variable.states}
                if len(kinds) == 1 and "" not in kinds:
                    yield variable.name, kinds.pop()


def _number(state: Hashable) -> str:
    return "numbers" if isinstance(state, bool | int | float) else ""
