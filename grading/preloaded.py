"""What every bounded child needs, imported once by the server that they are forked from."""

import gc

import grading.class_report.similarity
import grading.read_submission
import grading.rendering  # noqa: F401

gc.freeze()  # a child that looked for garbage among all this would copy it
