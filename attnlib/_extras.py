"""Libraries that only parts of attnlib need, and the extra that installs each: ``pip install 'attnlib[torch]'``."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

EXTRAS = {  # as in pyproject.toml, with the names that Python imports
    "torch": "torch",
    "array_api_compat": "torch",
    "matplotlib": "plot",
    "cycler": "plot",
    "safetensors": "minilm",
    "tokenizers": "minilm",
    "ml_dtypes": "hf",
    "tqdm": "checks",
}


@contextmanager
def explain_missing(user: str) -> Iterator[None]:
    """Make an import that fails because an extra is not installed say what needs it and how to install it.

    Errors from inside an installed library are left as they are: installing it again would not help.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if extra_for(error) is None:
            raise
        raise _missing(user, _library(error)) from None


def extra_for(error: ImportError) -> str | None:
    """Return the extra that would install the library that an import did not find, or None if none would."""
    library = _library(error)
    return EXTRAS[library] if library in EXTRAS and find_spec(library) is None else None


def _library(error: ImportError) -> str:
    return (error.name or "").partition(".")[0]


def require(user: str, *libraries: str, extra: str | None = None) -> None:
    """Raise ModuleNotFoundError unless all these libraries are installed, without importing any of them.

    ``extra`` is the one that installs them all, if it is not the one in EXTRAS.
    """
    for library in libraries:
        if find_spec(library) is None:
            raise _missing(user, library, extra)


def _missing(user: str, library: str, extra: str | None = None) -> ModuleNotFoundError:
    text = (
        f"{user} needs {library.replace('_', '-')}, which is not installed: "
        f"run pip install 'attnlib[{extra or EXTRAS[library]}]'"
    )
    return ModuleNotFoundError(text, name=library)
