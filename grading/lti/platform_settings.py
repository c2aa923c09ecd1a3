"""What a learning management system, the *platform*, tells whoever registers a tool there: a file in TOML."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from grading.course import GradingError

MAX_BYTES = 100_000


@dataclass(frozen=True)
class PlatformSettings:
    """The settings, all of them strings.

    Attributes:
        issuer: the name of the platform, such as https://moodle.example.org.
        client_id: the id that it gave to the tool.
        token_url: where it issues access tokens.
        line_items: where the columns of the course's gradebook are.
        members: where the list of the course's members is.
        key: the file with the tool's private key, in PEM; its path is relative to the file with the settings.
    """

    issuer: str
    client_id: str
    token_url: str
    line_items: str
    members: str
    key: str


def read_platform_settings(file: Path) -> tuple[PlatformSettings, str]:
    """Return the settings in a file, and the private key.

    Raises:
        GradingError: a file cannot be read, or a setting is missing or unknown.
    """
    names = [field.name for field in fields(PlatformSettings)]
    try:
        found = tomllib.loads(_text(file))
    except ValueError as error:
        raise GradingError(f"{file} cannot be read: {error}. Correct that line: see https://toml.io") from None
    if sorted(found) != sorted(names) or not all(isinstance(value, str) for value in found.values()):
        raise GradingError(
            f"{file} has {', '.join(found) or 'nothing'}; expected a string for each of {', '.join(names)}"
        )
    settings = PlatformSettings(**found)
    return settings, _text(file.parent / settings.key)


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as stream:
            return stream.read(MAX_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise GradingError(f"{file} cannot be read: {error}") from None
