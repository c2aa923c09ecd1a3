"""The parts of nbconvert that this package uses, apart from the rest because it takes half a second to import."""

from nbconvert.exporters import HTMLExporter as HTMLExporter
from nbconvert.filters.markdown_mistune import InvalidNotebook as InvalidNotebook
from nbconvert.filters.markdown_mistune import IPythonRenderer as IPythonRenderer
from nbconvert.filters.markdown_mistune import MarkdownWithMath as MarkdownWithMath
from nbconvert.preprocessors import Preprocessor as Preprocessor
