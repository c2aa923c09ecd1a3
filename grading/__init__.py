"""Release an assignment, grade a class with nbgrader, and report what it got right and what it got wrong.

Nothing here knows any single exercise: the library knows what one asks, and its mistakes.
"""

import sys

# nbformat's validator would otherwise spend seconds on building a grammar of addresses that no notebook needs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
