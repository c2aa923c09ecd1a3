"""What the programs of this folder share: the options that say which text to read, and the check of its version."""

import argparse
import sys
from pathlib import Path

from training.corpus import Corpus, read_corpus, require_version


def add_stdlib(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the folder of the text."""
    parser.add_argument("--stdlib", type=Path, help="the folder of Python's standard library; default: this Python's")


def add_any_version(parser: argparse.ArgumentParser) -> None:
    """Add the option that accepts another text than that of the published weights."""
    parser.add_argument("--any-version", action="store_true", help="accept the library of another version of Python")


def required_corpus(stdlib: Path | None, *, any_version: bool = False) -> Corpus:
    """Read the text, and end the program if it is not that of the published weights, unless any version will do."""
    corpus = read_corpus(stdlib)
    if not any_version:
        try:
            require_version(corpus)
        except ValueError as error:
            sys.exit(f"error: {error}")
    return corpus
