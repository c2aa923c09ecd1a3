"""The parts of nbconvert that this package uses, in their own module since nbconvert takes half a second to import."""

from nbconvert.exporters import HTMLExporter as HTMLExporter
from nbconvert.exporters import TemplateExporter as TemplateExporter
from nbconvert.filters import Highlight2HTML as Highlight2HTML
from nbconvert.filters.markdown_mistune import InvalidNotebook as InvalidNotebook
from nbconvert.filters.markdown_mistune import IPythonRenderer as IPythonRenderer
from nbconvert.filters.markdown_mistune import MarkdownWithMath as MarkdownWithMath
from nbconvert.preprocessors import Preprocessor as Preprocessor
