"""Word vectors: a lookup table of words, the files it is kept in, and a way to make one from a text by counting."""

from attnlib.embeddings.counting import ppmi_vectors, small_town
from attnlib.embeddings.keyed_vectors import KeyedVectors

__all__ = ["KeyedVectors", "ppmi_vectors", "small_town"]
