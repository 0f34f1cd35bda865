"""XML as a small tree, from expat alone: no entities of the file's own, nothing fetched, bounded depth and size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.array_types import Floats
from suffice.errors import FileFormatError
from suffice.formats.tokens import as_floats, first_wrong, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_DEPTH = 64
MOST_ELEMENTS = 2_000_000
#: The DTD of XMLBIF declares two attributes, one with the default "nature". Long defaults are added to every element.
MOST_ATTRIBUTES, LONGEST_DEFAULT = 100, 100


@dataclass(slots=True)
class Element:
    """An element; `text` is what stands directly inside it, `at` its number in the document."""

    tag: str
    attributes: dict[str, str]
    position: int
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text directly inside, without blanks around it."""
        return "".join(self.pieces).strip()

    def all(self, *tags: str) -> list[Element]:
        """The children with one of some tags."""
        return [child for child in self.children if child.tag in tags]

    def inside(self) -> Iterator[Element]:
        """All elements below, in order."""
        for child in self.children:
            yield child
            yield from child.inside()


class XmlDocument:
    """The tree of an XML text.

    Args:
        data: The content; bytes are decoded as their XML declaration says.
        name: The name of the file, for messages.
    """

    def __init__(self, data: str | bytes, name: str) -> None:
        self.name = name
        self._places: list[tuple[int, int]] = []
        self._stack: list[Element] = []
        self._attributes = 0
        self.root = self._parse(data)

    def error(self, message: str, position: int) -> FileFormatError:
        """The error for an element, by its number."""
        line, column = self._places[position] if position < len(self._places) else (1, 1)
        return FileFormatError(f"{self.name}, line {line}, column {column}: {message}.")

    def one(self, parent: Element, tag: str, what: str) -> Element:
        """The only child with that tag."""
        elements = parent.all(tag)
        if len(elements) != 1:
            raise self.error(f"{what} has {len(elements)} elements <{tag}>; expected one", parent.position)
        return elements[0]

    def floats(self, element: Element) -> Floats:
        """The numbers in an element, separated by blanks."""
        parts = element.text.split()
        values = as_floats(parts)
        if values is None:
            wrong = first_wrong(parts)
            shown = shortened(parts[wrong])
            raise self.error(f"value {wrong + 1} of <{element.tag}> is {shown!r}; expected a number", element.position)
        return values

    def _parse(self, data: str | bytes) -> Element:
        from xml.parsers import expat

        # Text has been decoded: what its declaration says of an encoding is no longer true.
        parser = expat.ParserCreate("utf-8" if isinstance(data, str) else None)
        parser.buffer_text = True
        top = Element("", {}, 0)
        self._stack = [top]
        self._listen(parser)
        try:
            parser.Parse(data.encode("utf-8") if isinstance(data, str) else data, True)
        except expat.ExpatError as error:
            raise FileFormatError(
                f"{self.name}, line {error.lineno}, column {error.offset + 1}: not well-formed XML: "
                f"{expat.ErrorString(error.code)}."
            ) from error
        except (LookupError, ValueError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(f"{self.name}, line 1, column 1: the text cannot be decoded: {error}.") from error
        return top.children[0]

    def _listen(self, parser: Any) -> None:
        def start(tag: str, attributes: dict[str, str]) -> None:
            element = Element(tag, attributes, len(self._places))
            self._places.append((parser.CurrentLineNumber, parser.CurrentColumnNumber + 1))
            if len(self._stack) > MOST_DEPTH or len(self._places) > MOST_ELEMENTS:
                limit = f"{MOST_DEPTH} deep and {MOST_ELEMENTS} in number"
                raise self.error(f"too many elements; they may be up to {limit}", element.position)
            self._stack[-1].children.append(element)
            self._stack.append(element)

        def refuse(reason: str) -> Any:
            def handler(*_: object) -> None:
                line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
                raise FileFormatError(f"{self.name}, line {line}, column {column}: {reason}.")

            return handler

        def attribute(_element: str, _name: str, _type: str, default: str | None, _required: bool) -> None:
            self._attributes += 1
            if self._attributes > MOST_ATTRIBUTES or len(default or "") > LONGEST_DEFAULT:
                refuse("the DTD declares more or longer attributes than a network needs")()

        parser.StartElementHandler = start
        parser.EndElementHandler = lambda _tag: self._stack.pop()
        parser.CharacterDataHandler = lambda text: self._stack[-1].pieces.append(text)
        parser.AttlistDeclHandler = attribute
        parser.EntityDeclHandler = refuse("the DTD declares an entity; entities are not read")
        parser.ExternalEntityRefHandler = refuse("the file refers to another one; nothing is fetched")
        parser.SkippedEntityHandler = refuse("there is an entity that is not declared")


def refused(text: str) -> str | None:
    """Why XML cannot give this label back."""
    if text != text.strip():
        return "with blanks around it, which XML files do not keep"
    if any(character < " " and character not in "\t\n" for character in text) or "\ufffe" in text or "\uffff" in text:
        return "with a control character, which XML does not hold"
    return None
