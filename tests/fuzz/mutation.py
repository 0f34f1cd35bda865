"""Ways to damage a file: bytes, text, or the tree of a JSON text. All chances come from the generator that is given."""

from __future__ import annotations

import json
import random
from typing import Any

SIGNS = ["", " ", "\n", "\t", '"', "\\", "{", "}", "(", ")", "[", "]", ";", ",", "|", "=", "/", "*", "%", "#", "&", "<"]
SIGNS += [">", "0", "9", "-", ".", "e", "_", "\x00", "é", "\u0661", "\u00a0", "nan", "inf", "-1", "1e999", "1e-400"]

#: Values of another kind, of the same kind and impossible, or at the end of the range.
LEAVES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    10**20,
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    1e308,
    -1e308,
    5e-324,
    1e-300,
]
LEAVES += [
    "",
    "a",
    "nan",
    "inf",
    "é",
    "real",
    "discrete",
    "count",
    [],
    {},
    [[]],
    [0],
    {"a": 1},
    {"$": "tuple", "items": []},
]
LEAVES += [{"$": "float", "value": word} for word in ("nan", "inf", "-inf")]
LEAVES += [{"$": "array", "dtype": "float64", "shape": [n], "values": [0.5] * n} for n in (0, 1, 3)]
LEAVES += [{"$": "array", "dtype": "int32", "shape": [1, 1], "values": [-1]}, {"$": "bytes", "hex": "00"}]


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, cut off, repeated or moved."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(data) + 1)
        length = chance.choice((1, 1, 2, 8, 64))
        way = chance.randrange(6)
        piece = data[at : at + length]
        if way == 0 and piece:
            data = data[:at] + bytes([piece[0] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        elif way == 1:
            data = data[:at] + bytes(chance.randrange(256) for _ in range(length)) + data[at + length :]
        elif way == 2:
            data = data[:at]
        elif way == 3:
            data = data[:at] + data[at + length :]
        elif way == 4:
            data = data[:at] + piece * chance.choice((2, 3)) + data[at + length :]
        else:
            to = chance.randrange(len(data) + 1)
            data = data[:to] + piece + data[to:]
    return data


def mutate_text(text: str, chance: random.Random) -> str:
    """Some signs, words or lines changed, lost, repeated or moved."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at, to = chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)
        way = chance.randrange(5)
        if way == 0:
            text = text[:at] + chance.choice(SIGNS) + text[at + chance.choice((0, 1, 1, 3)) :]
        elif way == 1:
            text = text[:at] + text[at + chance.choice((1, 5, 40)) :]
        elif way == 2:
            text = text[:to] + text[at : at + chance.choice((1, 5, 40))] + text[to:]
        elif way == 3:
            words = text.split(" ")
            first, second = chance.randrange(len(words)), chance.randrange(len(words))
            words[first], words[second] = words[second], words[first]
            text = " ".join(words)
        else:
            lines = text.split("\n")
            lines.insert(chance.randrange(len(lines)), chance.choice(lines))
            text = "\n".join(lines)
    return text


def mutate_tree(text: str, chance: random.Random) -> str:
    """A JSON text whose tree has some leaves, keys or branches changed, lost, repeated or moved."""
    tree = json.loads(text)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = [place for place in _places(tree) if place[0] is not tree or place[1] == "content"]
        if not places:
            break
        parent, key = chance.choice(places)
        way = chance.randrange(8)
        if way <= 2:
            parent[key] = json.loads(json.dumps(chance.choice(LEAVES)))
        elif way == 3:
            parent[key] = _nudged(parent[key], chance)
        elif way == 4:
            del parent[key]
        elif way == 5 and isinstance(parent, list):
            parent.insert(key, parent[key])
        elif way == 5:
            parent[chance.choice(("a", "$", "state", "values", "name"))] = parent[key]
        elif way == 6:
            other, place = chance.choice(places)
            parent[key] = json.loads(json.dumps(other[place])) if _holds(other, place) else None
        else:
            parent[key] = [parent[key]] if chance.random() < 0.5 else {"a": parent[key]}
    return json.dumps(tree)


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found


def _holds(container: Any, key: Any) -> bool:
    return key in container if isinstance(container, dict) else key < len(container)


def _nudged(value: Any, chance: random.Random) -> Any:
    """A value of the same kind, a little or far away."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice((-2, -1, 1, 2, 1000))
    if isinstance(value, float):
        return chance.choice((-value, 2 * value, value * 1e300, value * 1e-300, value + 1, value - 1))
    if isinstance(value, str):
        return value[:-1] if value and chance.random() < 0.5 else value + "a"
    if isinstance(value, list):
        return value[:-1] if value and chance.random() < 0.5 else value[::-1]
    if isinstance(value, dict):
        return dict(list(value.items())[::-1][:-1])
    return 0
