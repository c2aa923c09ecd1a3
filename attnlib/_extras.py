"""Libraries that only parts of attnlib need, and the extra that installs them: ``pip install 'attnlib[torch]'``."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

LIBRARIES = {  # of each extra, as in pyproject.toml, with the names that Python imports
    "torch": ("torch", "array_api_compat"),
    "plot": ("matplotlib", "cycler"),
    "minilm": ("safetensors", "tokenizers"),
    "hf": ("safetensors", "tokenizers", "ml_dtypes"),
    "checks": ("matplotlib", "cycler", "tqdm"),
}
# The extra that an error message suggests for a library: the first of those that install it.
EXTRAS = {library: extra for extra, libraries in reversed(LIBRARIES.items()) for library in libraries}


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


def install_command(extra: str) -> str:
    """Return the command that installs an extra, or just its libraries if pip has not installed attnlib itself."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and seldom needed

    try:
        distribution("attnlib")
    except PackageNotFoundError:
        return f"pip install {' '.join(LIBRARIES[extra]).replace('_', '-')}"
    return f"pip install 'attnlib[{extra}]'"


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
        f"run {install_command(extra or EXTRAS[library])}"
    )
    return ModuleNotFoundError(text, name=library)
