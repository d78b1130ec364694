"""Exit codes of `assay` (DESIGN section 7): a CI job acts on the verdict by them alone."""

from client.models import Submission

PASSED = 0
REJECTED = 1
INCONCLUSIVE = 2
ERROR = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells report it

_BY_STATE = {"passed": PASSED, "rejected": REJECTED, "inconclusive": INCONCLUSIVE}


def exit_code_for(submission: Submission) -> int:
    """Return the code of a submission's state: invalid, failed and cancelled ones are errors, and so is no
    end yet.
    """
    return _BY_STATE.get(submission.state, ERROR)
