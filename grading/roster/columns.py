"""Which columns of a roster say what, for the files that Canvas, Moodle, Blackboard and nbgrader export, or as told."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from grading.course import GradingError
from grading.outcome import plain


@dataclass(frozen=True)
class Columns:
    """The titles of the columns, or "" for what the file does not have.

    Attributes:
        id: nbgrader's id of the student, which is also the name of the folder with the student's submissions.
        moodle_identifier: in Moodle's grading worksheet, the column with the number of the participant. With the full
            name it makes the id: Moodle names the folders of a download in this way.
        name: the full name.
        first_name: the first name.
        last_name: the last name.
        email: the e-mail address.
        lms_user_id: the number that the learning management system itself uses.
        login: the name with which the student logs in. A notebook may state it in place of the id.
        sis_id: the number or name that the university's information system uses. A notebook may state it, too.
    """

    id: str = ""
    moodle_identifier: str = ""
    name: str = ""
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""
    login: str = ""
    sis_id: str = ""

    @property
    def used(self) -> dict[str, str]:
        """The columns that there are, by what they say."""
        return {field: title for field, title in asdict(self).items() if title}


@dataclass(frozen=True)
class System:
    """What exports a file: its name, the titles that tell it from others, and its columns, some of which may lack."""

    name: str
    titles: tuple[str, ...]
    columns: Columns


NAMES = Columns(first_name="First name", last_name="Last name", email="Email address", sis_id="ID number")
CANVAS_NAMES = Columns(lms_user_id="ID", login="SIS Login ID", sis_id="SIS User ID")
CANVAS = replace(CANVAS_NAMES, id="ID", name="Student", first_name="FirstName", last_name="LastName")
WORKSHEET = Columns(moodle_identifier="Identifier", name="Full name", email="Email address", sis_id="ID number")
NBGRADER = Columns(id="id", first_name="first_name", last_name="last_name", email="email", lms_user_id="lms_user_id")
BLACKBOARD = replace(NAMES, id="Username", email="Email", sis_id="Student ID")
SYSTEMS = (
    System("Canvas", ("ID", "Section", "Student"), CANVAS),
    System("Canvas", ("ID", "Section", "FirstName", "LastName"), CANVAS),
    System("Moodle (grading worksheet)", ("Identifier", "Full name"), WORKSHEET),
    System("Moodle", ("Username", "First name", "Last name", "Email address"), replace(NAMES, id="Username")),
    System("Moodle", ("First name", "Last name", "Email address"), replace(NAMES, id="Email address")),
    System("Blackboard", ("Username", "First Name", "Last Name"), BLACKBOARD),
    System("nbgrader", ("id", "first_name", "last_name"), NBGRADER),
)


def columns_of(header: Sequence[str], told: Mapping[str, str], kept: Mapping[str, str]) -> tuple[Columns, str]:
    """Return the columns of a file, and who said so.

    Args:
        header: the titles of the columns.
        told: the titles that the command names, which count before all others.
        kept: the titles that an earlier import used. They count if the file has all of them.

    Raises:
        GradingError: a title is missing, occurs twice, or nobody said which columns hold the id and a name.
    """
    there = [_key(title) for title in header]
    if told:
        return _complete(header, Columns(**told)), "the command"
    if kept and all(_key(title) in there for title in kept.values()):
        return _complete(header, Columns(**kept)), "course.toml"
    for system in SYSTEMS:
        if all(_key(title) in there for title in system.titles):
            used = {field: title for field, title in system.columns.used.items() if _key(title) in there}
            return _complete(header, Columns(**used)), system.name
    raise GradingError(
        f"nothing is known about a file with the columns {_listed(header)}. Expected those of Canvas, Moodle, "
        "Blackboard or nbgrader. Say which column holds what, for example: --id COLUMN --first-name COLUMN "
        "--last-name COLUMN --email COLUMN. This is kept in course.toml for the next import"
    )


def _complete(header: Sequence[str], columns: Columns) -> Columns:
    """Return the columns with their titles as they are in the file."""
    found = {}
    for field, title in columns.used.items():
        same = [known for known in header if _key(known) == _key(title)]
        if len(same) != 1:
            often = "twice or more" if same else "not"
            raise GradingError(f"the column {title!r} occurs {often} in the file. Its columns are: {_listed(header)}")
        found[field] = same[0]
    if not (columns.id or (columns.moodle_identifier and columns.name)):
        raise GradingError(
            "no column with the student's id was named. Pass --id COLUMN, or for Moodle's grading worksheet "
            f"--moodle-identifier COLUMN and --name COLUMN. The columns are: {_listed(header)}"
        )
    if not (columns.name or columns.last_name or columns.first_name):
        raise GradingError(
            f"no column with a name was named. Pass --name COLUMN, or --first-name COLUMN and --last-name COLUMN. The "
            f"columns are: {_listed(header)}"
        )
    return Columns(**found)


def _key(title: str) -> str:
    return title.strip().casefold()


def _listed(header: Sequence[str]) -> str:
    return ", ".join(repr(plain(title)) for title in header) or "none at all"
