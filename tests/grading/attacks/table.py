"""All attacks."""

from attacks import broken, channel, exhausting, forging, reading, shortcuts

FAMILIES = {
    "forging": forging.CASES,
    "channel": channel.CASES,
    "reading": reading.CASES,
    "shortcuts": shortcuts.CASES,
    "exhausting": exhausting.CASES,
    "broken": broken.CASES,
}
CASES = {case.name: case for cases in FAMILIES.values() for case in cases}
