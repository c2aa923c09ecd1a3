"""What every bounded child needs, imported once by the server that they are forked from."""

import gc

import grading.class_report.similarity
import grading.read_submission  # noqa: F401
from grading.rendering import warm_up

warm_up()
gc.freeze()  # a child that looked for garbage among all this would copy it
