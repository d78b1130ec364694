"""Only what passed is promoted, or what two people set the rules aside for."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from evaluation.errors import EvaluationConflict, PersonNeeded
from evaluation.models import EvaluationRun
from evaluation.selectors.decisions import get_decision
from evaluation.services.overrides import confirm_override, request_override
from evaluation.services.promotion import promote
from registry.errors import ConflictError, NotFoundError, PreconditionFailed, ScopeError, ValidationFailed
from registry.models import Channel
from registry.services.actors import SYSTEM, Actor
from registry.services.channels import create_channel
from tests.fixtures.evaluation import make_decided_run, make_suite
from tests.fixtures.registry import make_caller, make_version

pytestmark = pytest.mark.django_db

REASON = "The customer accepts the lower score."


@pytest.fixture(autouse=True)
def channels() -> None:
    create_channel(name="staging", form="merged", actor=SYSTEM)
    create_channel(name="edge", form="adapter", actor=SYSTEM)


def good_run() -> EvaluationRun:
    return make_decided_run(make_version(), make_suite())


def bad_run() -> EvaluationRun:
    return make_decided_run(make_version(), make_suite(), num_wrong=60)


def promoter(**options: Any) -> Actor:
    return make_caller("promote", **options).actor


def promote_it(**changes: Any) -> Channel:
    values: dict[str, Any] = {
        "channel_name": "staging",
        "adapter_name": "tickets",
        "version_number": 1,
        "expected_revision": 0,
        "reason": "It passed.",
        "override": False,
        "actor": promoter(),
    } | changes
    return promote(**values)


def test_a_passed_version_is_promoted_with_its_merged_bytes() -> None:
    run = good_run()
    channel = promote_it()
    assert channel.current is not None
    assert run.version is not None
    assert channel.current.version == run.version
    assert channel.current.artifact == run.version.merged_artifact
    assert channel.current.decision_id == run.decision.pk
    assert (channel.current.verdict, channel.current.override_reason) == ("passed", "")


def test_an_override_that_is_not_needed_leaves_no_mark() -> None:
    good_run()
    channel = promote_it(override=True)
    assert channel.current is not None
    assert channel.current.override_reason == ""


def test_a_rejected_version_is_refused_with_its_rules() -> None:
    bad_run()
    with pytest.raises(ConflictError) as caught:
        promote_it()
    assert (caught.value.code, caught.value.status) == ("version-not-passed", 409)
    assert "min_score" in [fault.where for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"reason": "  "}, ValidationFailed),
        ({"version_number": 2}, NotFoundError),
        ({"adapter_name": "tckets"}, NotFoundError),
        ({"channel_name": "stagin"}, NotFoundError),
        ({"expected_revision": 1}, PreconditionFailed),
    ],
)
def test_what_else_is_refused(changes: dict[str, Any], error: type[Exception]) -> None:
    good_run()
    with pytest.raises(error):
        promote_it(**changes)


def test_rights() -> None:
    good_run()
    make_version("contracts")
    for actor in (make_caller("submit", "review").actor, promoter(adapters=["contracts"])):
        with pytest.raises(ScopeError):
            promote_it(actor=actor)


def test_the_form_that_ships_must_be_the_one_that_was_judged() -> None:
    good_run()
    with pytest.raises(EvaluationConflict) as caught:
        promote_it(channel_name="edge")
    assert caught.value.code == "version-undecided"


def test_an_undecided_version() -> None:
    make_version()
    with pytest.raises(EvaluationConflict) as caught:
        promote_it()
    assert caught.value.code == "version-undecided"


def test_an_override_needs_a_second_person() -> None:
    decision = get_decision(bad_run().decision.pk)
    anna, ben = promoter(), promoter()
    with pytest.raises(EvaluationConflict) as caught:
        promote_it(override=True, actor=anna)
    assert caught.value.code == "override-missing"

    override = request_override(decision=decision, reason=REASON, actor=anna)
    assert request_override(decision=decision, reason="Another reason.", actor=ben) == override
    with pytest.raises(EvaluationConflict) as caught:
        promote_it(override=True, actor=ben)
    assert caught.value.code == "override-unconfirmed"
    with pytest.raises(EvaluationConflict) as caught:
        confirm_override(override=override, actor=anna)
    assert caught.value.code == "second-person-needed"

    confirmed = confirm_override(override=override, actor=ben)
    assert confirmed.confirmed_by == ben.user
    with pytest.raises(EvaluationConflict) as caught:
        confirm_override(override=override, actor=promoter())
    assert caught.value.code == "override-confirmed"
    with pytest.raises(ConflictError) as refused:
        promote_it(actor=anna)
    assert refused.value.code == "version-not-passed"

    channel = promote_it(override=True, actor=anna)
    assert channel.current is not None
    assert channel.current.verdict == "rejected"
    assert channel.current.override_reason.startswith(REASON)
    assert str(ben.user) in channel.current.override_reason


def test_two_tokens_of_one_person_are_one_person() -> None:
    decision = get_decision(bad_run().decision.pk)
    user = User.objects.create_user("anna")
    override = request_override(
        decision=decision, reason=REASON, actor=make_caller("promote", user=user).actor
    )
    with pytest.raises(EvaluationConflict):
        confirm_override(override=override, actor=make_caller("admin", user=user).actor)


def test_an_override_needs_right_reason_person_and_cause() -> None:
    bad = get_decision(bad_run().decision.pk)
    with pytest.raises(ScopeError):
        request_override(decision=bad, reason=REASON, actor=make_caller("review").actor)
    with pytest.raises(ValidationFailed):
        request_override(decision=bad, reason="ok", actor=promoter())
    with pytest.raises(PersonNeeded):
        request_override(decision=bad, reason=REASON, actor=SYSTEM)
    override = request_override(decision=bad, reason=REASON, actor=promoter())
    with pytest.raises(ScopeError):
        confirm_override(override=override, actor=make_caller("review").actor)
    with pytest.raises(PersonNeeded):
        confirm_override(override=override, actor=SYSTEM)


def test_a_passed_decision_needs_no_override() -> None:
    decision = get_decision(good_run().decision.pk)
    with pytest.raises(EvaluationConflict) as caught:
        request_override(decision=decision, reason=REASON, actor=promoter())
    assert caught.value.code == "override-not-needed"


def test_the_newest_run_counts() -> None:
    version, suite = make_version(), make_suite()
    make_decided_run(version, suite)
    version.refresh_from_db()
    make_decided_run(version, make_suite("harder"), num_wrong=60)
    with pytest.raises(ConflictError) as caught:
        promote_it()
    assert caught.value.code == "version-not-passed"
