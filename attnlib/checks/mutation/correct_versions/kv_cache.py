"""Correct versions of a key-value cache, in the styles that students write."""

import collections
from typing import Any

import numpy as np

from attnlib.checks.mutation.target import CorrectVersions

VERSIONS = CorrectVersions()


@VERSIONS.add("concatenated at each call")
class Concatenated:
    def __init__(self):
        self.length = 0
        self.keys = None
        self.values = None

    def append(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = np.concatenate([self.keys, key], axis=-2)
            self.values = np.concatenate([self.values, value], axis=-2)
        self.length += key.shape[-2]
        return self.keys, self.values


@VERSIONS.add("a list of chunks, with the length as a property")
class Listed:
    def __init__(self):
        self.chunks = []

    @property
    def length(self):
        return sum(key.shape[-2] for key, _ in self.chunks)

    def append(self, key, value):
        self.chunks.append((key.copy(), value.copy()))
        return [np.concatenate(parts, axis=-2) for parts in zip(*self.chunks, strict=True)]


@VERSIONS.add("a buffer whose capacity doubles")
class Doubling:
    def __init__(self):
        self.length, self.room = 0, 0
        self.k: Any = None
        self.v: Any = None

    def _grown(self, old, new):
        grown = np.zeros((*new.shape[:-2], self.room, new.shape[-1]))
        if old is not None:
            grown[..., : self.length, :] = old[..., : self.length, :]
        return grown

    def append(self, key, value):
        end = self.length + key.shape[-2]
        if end > self.room:
            self.room = 2 * end
            self.k, self.v = self._grown(self.k, key), self._grown(self.v, value)
        self.k[..., self.length : end, :], self.v[..., self.length : end, :] = key, value
        self.length = end
        return self.k[..., :end, :], self.v[..., :end, :]


@VERSIONS.add("empty arrays to begin with, length as a numpy integer")
class FromEmpty:
    def __init__(self):
        self.kept = {}
        self.length = np.int64(0)

    def append(self, key, value):
        for name, new in (("key", key), ("value", value)):
            old = self.kept.get(name, new[..., :0, :])
            self.kept[name] = np.append(old, new, axis=new.ndim - 2)
        self.length = np.int64(self.kept["key"].shape[-2])
        return tuple(self.kept.values())


@VERSIONS.add("token by token in a deque")
class TokenByToken:
    def __init__(self, maximum=None):
        self.tokens: collections.deque[Any] = collections.deque(maxlen=maximum)

    @property
    def length(self):
        return len(self.tokens)

    def append(self, key, value):
        for t in range(key.shape[-2]):
            self.tokens.append((key[..., t, :], value[..., t, :]))
        return np.stack([k for k, _ in self.tokens], -2), np.stack([v for _, v in self.tokens], -2)


@VERSIONS.add("attributes of the class as defaults that are replaced")
class ClassDefaults:
    keys = None
    values = None
    length = 0

    def append(self, key, value):
        self.keys = key if self.keys is None else np.concatenate((self.keys, key), -2)
        self.values = value if self.values is None else np.concatenate((self.values, value), -2)
        self.length = self.keys.shape[-2]
        return self.keys, self.values


@VERSIONS.add("positions moved to the front")
class Moved:
    def __init__(self):
        self.keys, self.values, self.length = [], [], 0

    def append(self, key, value):
        self.keys.extend(np.moveaxis(key, -2, 0))
        self.values.extend(np.moveaxis(value, -2, 0))
        self.length = len(self.keys)
        return np.moveaxis(np.array(self.keys), 0, -2), np.moveaxis(np.array(self.values), 0, -2)


@VERSIONS.add("a dictionary of tuples, in float64")
class InFloat64:
    def __init__(self):
        self.kept: dict[str, tuple[Any, ...]] = {"key": (), "value": ()}

    @property
    def length(self):
        return sum(key.shape[-2] for key in self.kept["key"])

    def append(self, key, value):
        self.kept = {"key": (*self.kept["key"], key), "value": (*self.kept["value"], value)}
        return tuple(np.concatenate(chunks, axis=-2).astype(np.float64) for chunks in self.kept.values())
