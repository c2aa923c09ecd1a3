"""Import what every bounded child needs, once, in the server that the children are forked from."""

from importlib import import_module

from grading.course import importing

with importing():  # garbage collection in a child would otherwise copy all these modules
    for module in ("grading.class_report.similarity", "grading.read_submission"):
        import_module(module)
    import_module("grading.rendering").warm_up()
