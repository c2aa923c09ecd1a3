"""Import what every bounded child needs, once, in the server that the children are forked from."""

import gc

import grading.class_report.similarity
import grading.read_submission  # noqa: F401
from grading.rendering import warm_up

warm_up()
gc.freeze()  # garbage collection in a child would otherwise copy all these modules
