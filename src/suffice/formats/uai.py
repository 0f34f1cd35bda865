"""UAI, the format of the inference competitions: Bayesian networks, Markov networks and evidence.

The format has no names: variables are 0, 1, 2, ... and so are the states of each, here and after reading. The values
of a table have the last variable of its scope fastest. In a ``BAYES`` file the last variable of a scope is the node and
the others are its parents: the axes (parents ..., node). A ``MARKOV`` file holds factors, which need not be normalised.
pyAgrum writes the first parent fastest, against the format, and the file does not tell who wrote it: a network in which
that matters is read with a warning (`warn_of_order`), unless `parent_order` says how. A file in which every scope has a
name as a comment is taken for pyAgrum's.
What follows ``#``, and lines that start with the word ``c``, are comments.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Hashable

import numpy as np

from suffice.array_types import Floats
from suffice.choices import ParentOrder
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError, listing, warn
from suffice.formats import streams
from suffice.formats.labels import check_network, checked_rows
from suffice.formats.networks import MOST_AXES, Draft, FactorNetwork, TableNetwork
from suffice.formats.tokens import Scanner, as_floats, first_wrong, numbers, shortened

_Table = tuple[tuple[Hashable, ...], Floats]
_WORD = re.compile(r"\S+")
#: A scope whose line ends in a comment.
_NAMED_SCOPE = re.compile(r"(?m)^ *[0-9]+(?: +[0-9]+)+ *# *\S")
#: A number of states takes a few digits and is not borne out by anything else in a file of factors.
MOST_STATES = 2**20


def load(source: streams.Source, parent_order: ParentOrder | None = None) -> TableNetwork | FactorNetwork:
    """Read a network from a path (also gzipped) or a stream: a `TableNetwork` (BAYES) or a `FactorNetwork` (MARKOV).

    parent_order: "forward" where the last parent is the fastest, as the format says, "reversed" where the first one is.
    """
    return streams.load_text(source, lambda text, name: parse(text, name, parent_order))


def save(path: streams.FilePath, network: TableNetwork | FactorNetwork) -> None:
    """Write a network; names and states become their positions. A name that ends in .gz is packed."""
    streams.write(path, render(network))


def load_evidence(
    source: streams.Source, network: TableNetwork | FactorNetwork | None = None
) -> dict[Hashable, Hashable]:
    """Read an evidence file (.evid): variable -> state, by position or, with a network, by its names and states."""
    content = streams.read(source)
    return parse_evidence(streams.decoded(content)[0], content.name, network)


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------


class _Words:
    """The words of a file, taken in order; the place of a word is its number."""

    def __init__(self, text: str, name: str) -> None:
        self._scanner = Scanner(text, name, marks="", comments=("#", "c"))
        self.words = self._scanner.text.split()
        self.next = 0

    def error(self, message: str, position: int) -> FileFormatError:
        """The error for a word, by its number."""
        word = next(itertools.islice(_WORD.finditer(self._scanner.text), position, None), None)
        return self._scanner.error(message, word.start() if word else len(self._scanner.text))

    @property
    def left(self) -> int:
        """How many words are left."""
        return len(self.words) - self.next

    def take(self, what: str) -> str:
        """The next word."""
        if not self.left:
            raise self.error(f"found the end of the file; expected {what}", self.next)
        self.next += 1
        return self.words[self.next - 1]

    def whole(self, what: str, *, most: int | None = None) -> int:
        """The next word as a whole number, up to `most`."""
        word = self.take(what)
        if not re.fullmatch(r"[0-9]{1,15}", word):
            raise self.error(f"found {shortened(word)!r}; expected {what}, a whole number", self.next - 1)
        if most is not None and int(word) > most:
            raise self.error(f"found {word}; expected {what}, at most {most}", self.next - 1)
        return int(word)

    def floats(self, count: int, what: str) -> Floats:
        """The next words as numbers."""
        if count > self.left:
            raise self.error(f"{what} has {count} values and the file ends after {self.left}", len(self.words))
        start, self.next = self.next, self.next + count
        words = self.words[start : self.next]
        values = as_floats(words)
        if values is None:
            wrong = first_wrong(words)
            raise self.error(f"found {shortened(words[wrong])!r}; expected a number", start + wrong)
        return values

    def finish(self) -> None:
        """Check that nothing is left."""
        if self.left:
            raise self.error(f"found {self.left} words after the last one expected", self.next)


def parse(text: str, name: str = "<text>", parent_order: ParentOrder | None = None) -> TableNetwork | FactorNetwork:
    """Read a network from text; `name` stands for the file in messages, and `parent_order` is as in `load`."""
    words = _Words(text, name)
    kind = words.take("'BAYES' or 'MARKOV'").upper()
    if kind not in ("BAYES", "MARKOV"):
        raise words.error(f"found {shortened(kind)!r}; expected 'BAYES' or 'MARKOV'", 0)
    count = words.whole("the number of variables", most=words.left - 1)
    first = words.next
    cards = [words.whole(f"the number of states of variable {variable}") for variable in range(count)]
    if not cards:
        raise words.error("no variable is declared", 1)
    if sum(cards) > MOST_STATES:
        raise words.error(f"the variables have {sum(cards)} states; at most {MOST_STATES} are read", first)
    scopes = _read_scopes(words, count)
    if kind == "MARKOV":
        if parent_order is not None:
            raise words.error("parent_order= is for networks; the factors of a 'MARKOV' file have no parents", 0)
        return _markov(words, cards, first, scopes)
    if parent_order is None:
        parent_order = "reversed" if len(_NAMED_SCOPE.findall(text)) >= len(scopes) else "forward"
    return _bayes(words, cards, first, scopes, backwards=parent_order == "reversed")


def warn_of_order(path: streams.FilePath, network: TableNetwork) -> None:
    """Warn of a file of networks in which the order of parents matters, as nothing in it tells that order."""
    several = [node for node, parents in network.parents.items() if len(parents) > 1]
    if several:
        warn(
            f"{os.fspath(path)!r} does not say in which order the parents of {listing(several)} stand in their tables: "
            "UAI has the last parent fastest, and pyAgrum writes the first one fastest (a file with a name as a "
            f"comment after each scope is taken for its own). The parents of {several[0]!r} are read as "
            f"{listing(network.parents[several[0]])}, the last one fastest. read(path, parent_order='forward') or "
            "'reversed' says which it is, and ends this warning."
        )


def _read_scopes(words: _Words, count: int) -> list[tuple[int, list[int]]]:
    """For each table the place of its scope, and the scope."""
    scopes = []
    for table in range(words.whole("the number of tables", most=words.left - 1)):
        position = words.next
        size = words.whole(f"the number of variables of table {table}", most=MOST_AXES)
        scope = [words.whole(f"a variable of table {table}", most=count - 1) for _ in range(size)]
        if len(set(scope)) != size:
            raise words.error(f"table {table} has a variable twice: {scope}", position)
        scopes.append((position, scope))
    return scopes


def _read_table(words: _Words, what: str, size: int) -> Floats:
    position = words.next
    given = words.whole(f"the number of values of {what}")
    if given != size:
        raise words.error(f"{what} has {given} values; its variables have {size} states together", position)
    return words.floats(size, what)


def _bayes(
    words: _Words, cards: list[int], first: int, scopes: list[tuple[int, list[int]]], *, backwards: bool
) -> TableNetwork:
    draft = Draft(words)
    for variable, card in enumerate(cards):
        draft.declare(variable, range(card), first + variable)
    for table, (position, scope) in enumerate(scopes):
        if not scope:
            raise words.error(f"table {table} has no variable; the last one is the node", position)
        *parents, node = scope
        parents = parents[::-1] if backwards else parents
        shape = draft.family(node, parents, position)
        values = _read_table(words, f"the table of node {node}", math.prod(shape))
        draft.define(node, parents, values.reshape(shape), position)
    words.finish()
    return draft.finish()


def _markov(words: _Words, cards: list[int], first: int, scopes: list[tuple[int, list[int]]]) -> FactorNetwork:
    if 0 in cards:
        variable = cards.index(0)
        raise words.error(f"variable {variable} has no states; at least one is needed", first + variable)
    factors = []
    for table, (position, scope) in enumerate(scopes):
        shape = tuple(cards[variable] for variable in scope)
        values = _read_table(words, f"table {table}", math.prod(shape))
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))
        if len(bad):
            value = float(values[bad[0]])
            raise words.error(f"table {table} of {scope} holds {value!r}; expected 0 or more, finite", position)
        factors.append((tuple(scope), values.reshape(shape)))
    words.finish()
    domain = Domain(Variable.discrete(variable, range(card)) for variable, card in enumerate(cards))
    return FactorNetwork(domain, tuple(factors))


def parse_evidence(
    text: str, name: str = "<text>", network: TableNetwork | FactorNetwork | None = None
) -> dict[Hashable, Hashable]:
    """Read evidence from text: a count, then so many pairs of a variable and a state; a leading 1 is a sample count."""
    words = _Words(text, name)
    if not words.words:
        return {}
    # Older files start with the number of samples. One line of n pairs has 1 + 2n words, with that number one more.
    if len(words.words) % 2 == 0:
        samples = words.whole("the number of samples")
        if samples > 1:
            raise words.error(f"the file holds {samples} samples of evidence; expected one", 0)
        if samples == 0:
            words.finish()
    evidence: dict[Hashable, Hashable] = {}
    for _ in range(words.whole("the number of observed variables", most=(words.left - 1) // 2)):
        position = words.next
        variable, state = words.whole("a variable"), words.whole("a state")
        known = (variable, state) if network is None else _named(words, network.domain, variable, state)
        if known[0] in evidence:
            raise words.error(f"variable {variable} is observed twice", position)
        evidence[known[0]] = known[1]
    words.finish()
    return evidence


def _named(words: _Words, domain: Domain, variable: int, state: int) -> tuple[Hashable, Hashable]:
    position = words.next - 2
    if variable >= len(domain):
        raise words.error(f"found variable {variable}; the network has {len(domain)}", position)
    named = domain.variables[variable]
    if state >= named.card:
        raise words.error(f"found state {state} of variable {variable}, which has {named.card}", position + 1)
    return named.name, named.states[state]


# --------------------------------------------------------------------------------------------------------------------
# Writing
# --------------------------------------------------------------------------------------------------------------------


def render(network: TableNetwork | FactorNetwork) -> str:
    """The network as text; every float is its shortest exact decimal, so that reading gives the same bits."""
    tables = _factors(network) if isinstance(network, FactorNetwork) else _families(network)
    codes = {name: code for code, name in enumerate(network.domain)}
    cards = network.domain.shape(network.domain.names)
    kind = "MARKOV" if isinstance(network, FactorNetwork) else "BAYES"
    lines = [kind, str(len(cards)), " ".join(map(str, cards)), str(len(tables))]
    lines += [" ".join(map(str, (len(scope), *(codes[name] for name in scope)))) for scope, _ in tables]
    for _, table in tables:
        rows = table.reshape(-1, table.shape[-1]) if table.ndim else table.reshape(1, 1)
        lines += ["", str(table.size), *map(numbers, rows)]
    return "\n".join(lines) + "\n"


def _families(network: TableNetwork) -> list[_Table]:
    check_network(network, "UAI")
    return [((*network.parents[node], node), checked_rows(network, node)) for node in network.domain]


def _factors(network: FactorNetwork) -> list[_Table]:
    for scope, table in network.factors:
        shape = network.domain.shape(scope)
        if table.shape != shape or not (np.isfinite(table) & (table >= 0.0)).all():
            raise OptionError(
                f"The factor of {listing(scope)} has shape {table.shape}; expected {shape}, finite and not negative."
            )
    return list(network.factors)
