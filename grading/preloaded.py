"""What every bounded child needs, imported once by the server that they are forked from."""

import grading.admission
import grading.insight.likeness  # noqa: F401
