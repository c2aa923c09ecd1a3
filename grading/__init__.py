"""Release an assignment, grade a class with nbgrader, and report what it got right and what it got wrong.

Nothing here knows any single exercise: what one asks, and which mistakes it knows, is the library's affair.
"""

import sys

# What nbformat validates with would build a grammar of addresses, for seconds, that no notebook is checked by.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
