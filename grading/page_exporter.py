"""An exporter of pages that keeps compiled templates, so that a child need not compile them for the one page it makes.

Compiling takes twice as long as the rest of an honest page. A child inherits what the server it was forked from has
compiled.
"""

from types import CodeType

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket

from grading._nbconvert import HTMLExporter


class CompiledTemplates(BytecodeCache):
    """Compiled templates by place and content, so that a template that has changed is compiled again."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its code, if it is known."""
        bucket.code = self._compiled.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        if bucket.code is not None:
            self._compiled[bucket.key, bucket.checksum] = bucket.code


_templates = CompiledTemplates()


class PageExporter(HTMLExporter):
    """nbconvert's exporter of pages, whose templates are compiled once in this process and its forks."""

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()  # type: ignore[no-untyped-call]
        environment.bytecode_cache = _templates
        return environment
