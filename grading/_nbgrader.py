"""The parts of nbgrader that this package uses, in their own module since nbgrader takes a second to import."""

from nbgrader.api import Assignment as Assignment
from nbgrader.api import Base as Base
from nbgrader.api import BaseCell as BaseCell
from nbgrader.api import Comment as Comment
from nbgrader.api import Grade as Grade
from nbgrader.api import Gradebook as Gradebook
from nbgrader.api import MissingEntry as MissingEntry
from nbgrader.api import Notebook as Notebook
from nbgrader.api import Student as Student
from nbgrader.api import SubmittedAssignment as SubmittedAssignment
from nbgrader.api import SubmittedNotebook as SubmittedNotebook
from nbgrader.converters import Autograde as Autograde
from nbgrader.converters import GenerateAssignment as GenerateAssignment
from nbgrader.converters import GenerateFeedback as GenerateFeedback
from nbgrader.converters.base import NbGraderException as NbGraderException
from nbgrader.coursedir import CourseDirectory as CourseDirectory
from nbgrader.dbutil import ALEMBIC_DIR as ALEMBIC_DIR
from nbgrader.plugins import BasePlugin as BasePlugin
from nbgrader.preprocessors import AssignLatePenalties as AssignLatePenalties
from nbgrader.preprocessors import NbGraderPreprocessor as NbGraderPreprocessor
from nbgrader.utils import compute_checksum as compute_checksum
from nbgrader.utils import determine_grade as determine_grade
from nbgrader.utils import parse_utc as parse_utc
