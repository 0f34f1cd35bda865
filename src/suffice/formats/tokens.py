"""Words, strings, marks and numbers of the text formats, each with its place.

A table may hold half a million numbers, so numbers are not tokens: a span of them is matched by one pattern and
converted at once, and only a span that fails is read again, word by word, to say which one is wrong.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, cast

import numpy as np

from suffice.array_types import Floats
from suffice.errors import FileFormatError

# A string runs to its closing quote or, when that is missing, to the end of the text. All patterns are possessive and
# take each character once, so that no input makes them slow.
_INNER = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_NUMBERS = re.compile(r"[-+0-9.eE,\s]*+")
# Patterns for what is rare, which `re` compiles when they are first used.
_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_PARTS = r"[^\s,()]+"
_ESCAPE = r'\\(["\\])'

#: What starts a comment -> the pattern of the whole comment.
COMMENTS = {
    "//": r"//[^\n]*+",
    "/*": r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)",
    "%": r"%[^\n]*+",
    "#": r"#[^\n]*+",
    "c": r"(?m:^)c(?=\s|\Z)[^\n]*+",
}

Kind = Literal["word", "string", "mark", "end"]


class Token(NamedTuple):
    """A word, a string (without its quotes), a mark, or the end of the text; `start` and `end` are offsets."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_mark(self, text: str) -> bool:
        """Whether the token is that mark, and no string that looks like it."""
        return self.kind == "mark" and self.text == text

    def __str__(self) -> str:
        """The token for a message."""
        return "the end of the file" if self.kind == "end" else repr(shortened(self.text))


def shortened(text: str, most: int = 40) -> str:
    """At most so many characters of a text."""
    return text if len(text) <= most else f"{text[:most]}..."


def quoted(text: str) -> str:
    """The text as a string of the text formats: in double quotes, with backslashes before quotes and backslashes."""
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def numbers(values: Floats) -> str:
    """Values as text, separated by blanks; each is the shortest decimal that gives the same float64."""
    return " ".join(map(repr, values.tolist()))


def place_in(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


@functools.cache
def _token_pattern(marks: str) -> re.Pattern[str]:
    """Blanks and one token; the name of its group is its kind."""
    escaped = re.escape(marks)
    mark = f"[{escaped}]" if marks else "(?!)"
    string = f'"{_INNER}(?P<close>"?)'
    word = rf'[^\s"{escaped}]++'
    return re.compile(rf"\s*+(?:(?P<word>{word})|(?P<mark>{mark})|(?P<string>{string})|(?P<end>\Z))", re.DOTALL)


class Scanner:
    """A text with a cursor.

    Args:
        text: The content of the file.
        name: The name of the file, for messages.
        marks: Characters that are tokens of their own.
        comments: Keys of `COMMENTS`; comments are blanked, so that offsets stay.
    """

    def __init__(self, text: str, name: str, *, marks: str, comments: Iterable[str]) -> None:
        self.name = name
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.position = 0
        self._token = _token_pattern(marks)
        self._ahead_of, self._ahead = -1, Token("end", "", 0, 0)
        comment_patterns = [COMMENTS[start] for start in comments if start in text]
        if comment_patterns:
            patterns = "|".join((f'"{_INNER}"?', *comment_patterns))
            self.text = re.sub(patterns, self._blanked, self.text, flags=re.DOTALL)

    def _blanked(self, match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith('"'):
            return text
        if text.startswith("/*") and (len(text) < 4 or not text.endswith("*/")):
            raise self.error("the comment that starts here does not end; expected '*/'", match.start())
        return re.sub(r"[^\n]", " ", text)

    def error(self, message: str, position: int) -> FileFormatError:
        """The error for what stands at an offset."""
        line, column = place_in(self.text, position)
        return FileFormatError(f"{self.name}, line {line}, column {column}: {message}.")

    def wrong(self, token: Token, expected: str) -> FileFormatError:
        """The error for a token that should have been another."""
        return self.error(f"found {token}; expected {expected}", token.start)

    def peek(self) -> Token:
        """The next token, without moving."""
        if self._ahead_of == self.position:
            return self._ahead
        match = self._token.match(self.text, self.position)
        assert match is not None  # Every character is a blank, a quote, a mark or part of a word.
        kind = cast(Kind, match.lastgroup)
        start, end = match.span(kind)
        text = match[kind]
        if kind == "string":
            if not match["close"]:
                raise self.error("the string that starts here does not end; expected '\"'", start)
            text = re.sub(_ESCAPE, r"\1", text[1:-1])
        self._ahead_of, self._ahead = self.position, Token(kind, text, start, end)
        return self._ahead

    def take(self) -> Token:
        """The next token; the cursor moves behind it."""
        token = self.peek()
        self.position = token.end
        return token

    def expect(self, mark: str) -> Token:
        """Take a mark; anything else is an error."""
        token = self.take()
        if not token.is_mark(mark):
            raise self.wrong(token, repr(mark))
        return token

    def accept(self, mark: str) -> bool:
        """Take a mark if it is next."""
        token = self.peek()
        if token.is_mark(mark):
            self.position = token.end
            return True
        return False

    def name_token(self, what: str) -> Token:
        """Take a word or a string."""
        token = self.take()
        if token.kind not in ("word", "string"):
            raise self.wrong(token, what)
        return token

    def until(self, stop: str, refused: str = "{}") -> list[Token]:
        """Take all tokens before a mark, and the mark; the end of the text or a refused mark is an error."""
        tokens: list[Token] = []
        while True:
            token = self.take()
            if token.kind == "end" or (token.kind == "mark" and token.text in refused and token.text != stop):
                raise self.wrong(token, repr(stop))
            if token.is_mark(stop):
                return tokens
            tokens.append(token)

    def raw(self, tokens: list[Token]) -> str:
        """The text from the first to the last of some tokens, as it stands."""
        return self.text[tokens[0].start : tokens[-1].end] if tokens else ""

    def number_span(self, stop: str) -> tuple[int, int]:
        """Move over numbers (blanks and commas between them) and the mark behind them; where they start and end."""
        match = _NUMBERS.match(self.text, self.position)
        assert match is not None  # The pattern matches nothing as well.
        start, end = match.span()
        self.position = end
        if not self.text.startswith(stop, end):
            # A word may have begun inside the span: '1e' of '1example', say.
            self.position = start + len(self.text[start:end].rstrip("-+0123456789.eE"))
            raise self.wrong(self.peek(), f"a number or {stop!r}")
        self.position = end + len(stop)
        return start, end

    def floats(self, start: int, end: int) -> Floats:
        """The numbers of a span."""
        return self.convert(self.text[start:end].replace(",", " ").split(), [(start, end)])

    def convert(self, parts: list[str], spans: Iterable[tuple[int, int]]) -> Floats:
        """Words as numbers; when one is none, the spans say where it stands."""
        values = as_floats(parts)
        if values is not None:
            return values
        pattern = re.compile(_PARTS)
        matches = itertools.chain.from_iterable(pattern.finditer(self.text, *span) for span in spans)
        match = next(itertools.islice(matches, first_wrong(parts), None))
        raise self.error(f"found {shortened(match[0])!r}; expected a number", match.start())


def as_floats(parts: list[str]) -> Floats | None:
    """Words as numbers, or None when one of them is no decimal number.

    Python also takes ``nan``, ``1_0`` and digits of other scripts; no format does.
    """
    if _NUMBERS.fullmatch(" ".join(parts)):
        with contextlib.suppress(ValueError):
            return np.fromiter(map(float, parts), np.float64, len(parts))
    return None


def first_wrong(parts: list[str]) -> int:
    """The position of the first word that is no decimal number."""
    return next(number for number, part in enumerate(parts) if not re.fullmatch(_NUMBER, part))
