"""A page exporter that keeps compiled templates, so that a child process need not compile them for its only page.

Compiling takes twice as long as everything else that an ordinary page needs. A child process inherits the templates
that its fork server has compiled.
"""

from types import CodeType

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from traitlets import Bool

from grading._nbconvert import HTMLExporter


class CompiledTemplates(BytecodeCache):
    """A cache of compiled templates, keyed by name and content, so that a changed template is compiled again."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its compiled code, if that is cached."""
        bucket.code = self._compiled.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template's compiled code."""
        if bucket.code is not None:
            self._compiled[bucket.key, bucket.checksum] = bucket.code


_templates = CompiledTemplates()


class PageExporter(HTMLExporter):
    """nbconvert's HTML exporter, with templates that are compiled once for this process and its forks.

    A notebook is validated once, after all preprocessors have run. Validating it after each of the dozen preprocessors
    would take up a quarter of the time needed to write a page.
    """

    optimistic_validation = Bool(True).tag(config=True)

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()  # type: ignore[no-untyped-call]
        environment.bytecode_cache = _templates
        return environment
