"""Send the grades of an assignment to a learning management system: a column there, and a score for each student.

Source: LTI Assignment and Grade Services 2.0, https://www.imsglobal.org/spec/lti-ags/v2p0, and Names and Role
Provisioning Services 2.0, https://www.imsglobal.org/spec/lti-nrps/v2p0.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grading._untyped import tqdm
from grading.course import Course, GradingError
from grading.exam.window import require_over
from grading.lti.platform_settings import PlatformSettings, read_platform_settings
from grading.outcome import plain
from grading.report import Row, rows
from grading.text import counted, points
from grading.verdict import Verdict

SCOPE = "https://purl.imsglobal.org/spec/lti-ags/scope/"
LEARNER = "Learner"  # the end of the role's name
WHERE_NAMED = ("email", "lis_person_sourcedid", "user_id")  # what a platform may say about a member


def send_grades(course: Course, assignment: str, file: Path) -> str:
    """Send the grades of everybody who handed in something, and return what was sent, as text for a terminal.

    Args:
        course: where the grades are.
        assignment: its name, which is also that of the column.
        file: the settings of the platform.

    Raises:
        GradingError: the settings are wrong, nobody was graded, the platform refuses, or an exam is not over.
    """
    require_over(course, assignment, "no scores are sent yet")
    found = [row for row in rows(course, assignment) if not row.absent]
    settings, key = read_platform_settings(file)
    try:
        return "\n".join(_sent(found, assignment, settings, key))
    except GradingError:
        raise
    except Exception as error:  # of the library, of the network, or of the key
        said = getattr(getattr(error, "response", None), "text", "") or str(error) or type(error).__name__
        raise GradingError(
            f"{settings.issuer} did not accept the grades: {plain(said)}. Compare {file} with its page about the "
            "tool, and send the grades again: those that have arrived will be replaced"
        ) from error


def _sent(found: Sequence[Row], assignment: str, settings: PlatformSettings, key: str) -> Iterator[str]:
    from pylti1p3.assignments_grades import AssignmentsGradesService
    from pylti1p3.lineitem import LineItem

    connector = _connector(settings, key)
    service = AssignmentsGradesService(
        connector, {"scope": [f"{SCOPE}lineitem", f"{SCOPE}score"], "lineitems": settings.line_items}
    )
    members = _members(connector, settings)
    most = max((row.points for row in found), default=0.0)
    wanted = LineItem().set_tag(assignment).set_label(assignment).set_score_maximum(most)
    column = service.find_or_create_lineitem(wanted)
    if column.get_score_maximum() != most:
        there = points(column.get_score_maximum() or 0.0)
        yield f"The platform's column is worth {there}, but the assignment is worth {points(most)}: change the column."
    left_out = {row.label: why for row in found if (why := _left_out(row, members))}
    for row in tqdm([row for row in found if row.label not in left_out], unit="grade", desc="send", disable=None):
        service.put_grade(_grade(row, _member(row, members)), column)
        yield f"  {row.label} → {points(row.score)}"
    yield f"{counted(len(found) - len(left_out), 'grade')} sent to {plain(settings.issuer)}"
    yield from (f"  {label}: left out: {why}" for label, why in left_out.items())


def _connector(settings: PlatformSettings, key: str) -> Any:
    from jwcrypto.jwk import JWK
    from pylti1p3.registration import Registration
    from pylti1p3.service_connector import ServiceConnector

    public = JWK.from_pem(key.encode()).export_to_pem().decode()
    tool = Registration().set_issuer(settings.issuer).set_client_id(settings.client_id)
    tool.set_auth_token_url(settings.token_url).set_tool_private_key(key).set_tool_public_key(public)
    return ServiceConnector(tool)


def _members(connector: Any, settings: PlatformSettings) -> dict[str, str]:
    """Return the platform's ids of the students, by what it says about each; what two of them share is left out."""
    from pylti1p3.names_roles import NamesRolesProvisioningService

    service = NamesRolesProvisioningService(connector, {"context_memberships_url": settings.members})
    students = [one for one in service.get_members() if any(str(r).endswith(LEARNER) for r in one.get("roles", ()))]
    said = {(str(one[where]).casefold(), one["user_id"]) for one in students for where in WHERE_NAMED if one.get(where)}
    often = Counter(text for text, _ in said)
    return {text: member for text, member in said if often[text] == 1}


def _member(row: Row, members: Mapping[str, str]) -> str:
    """Return the platform's id of a student: by address, by our id, or by the platform's own number."""
    known = (row.entry.email, row.outcome.student, row.entry.lms_user_id)
    return next((members[text.casefold()] for text in known if text and text.casefold() in members), "")


def _left_out(row: Row, members: Mapping[str, str]) -> str:
    if row.outcome.verdict is Verdict.INFRASTRUCTURE or not row.scores:
        return "the grader failed: run it again for this student"
    return "" if _member(row, members) else "no student there has this address, id or number, or several have it"


def _grade(row: Row, member: str) -> Any:
    from pylti1p3.grade import Grade

    grade = Grade().set_score_given(round(row.score, 4)).set_score_maximum(row.points).set_user_id(member)
    grade.set_timestamp(datetime.now(UTC).isoformat()).set_activity_progress("Completed")
    return grade.set_grading_progress("PendingManual" if row.to_read else "FullyGraded")
