"""Addresses of the evaluation app below /api/v1."""

from django.urls import path

from evaluation.api import decisions, submissions, suites, triages

urlpatterns = [
    path("suites", suites.SuiteListView.as_view(), name="suite-list"),
    path("suites/<str:name>", suites.SuiteView.as_view(), name="suite-detail"),
    path("policies", suites.PolicyListView.as_view(), name="policy-list"),
    path("policies/<str:name>", suites.PolicyView.as_view(), name="policy-detail"),
    path("baselines", suites.BaselineListView.as_view(), name="baseline-list"),
    path("baselines/<uuid:run_id>", suites.BaselineView.as_view(), name="baseline-detail"),
    path("submissions", submissions.SubmissionListView.as_view(), name="submission-list"),
    path("submissions/<uuid:run_id>", submissions.SubmissionDetailView.as_view(), name="submission-detail"),
    path(
        "submissions/<uuid:run_id>/examples",
        submissions.SubmissionExamplesView.as_view(),
        name="submission-examples",
    ),
    path(
        "submissions/<uuid:run_id>/cancel",
        submissions.SubmissionCancelView.as_view(),
        name="submission-cancel",
    ),
    path(
        "submissions/<uuid:run_id>/retry", submissions.SubmissionRetryView.as_view(), name="submission-retry"
    ),
    path("decisions/<uuid:decision_id>", decisions.DecisionView.as_view(), name="decision-detail"),
    path(
        "decisions/<uuid:decision_id>/recompute",
        decisions.DecisionRecomputeView.as_view(),
        name="decision-recompute",
    ),
    path("overrides", decisions.OverrideListView.as_view(), name="override-list"),
    path("overrides/<int:override_id>", decisions.OverrideView.as_view(), name="override-detail"),
    path(
        "overrides/<int:override_id>/confirm",
        decisions.OverrideConfirmView.as_view(),
        name="override-confirm",
    ),
    path("triages", triages.TriageListView.as_view(), name="triage-list"),
    path("triages/<uuid:triage_id>", triages.TriageDetailView.as_view(), name="triage-detail"),
    path("triages/<uuid:triage_id>/items", triages.TriageItemListView.as_view(), name="triage-items"),
    path(
        "triages/<uuid:triage_id>/items/<int:position>",
        triages.TriageItemView.as_view(),
        name="triage-item",
    ),
    path("triages/<uuid:triage_id>/cancel", triages.TriageCancelView.as_view(), name="triage-cancel"),
    path("triages/<uuid:triage_id>/close", triages.TriageCloseView.as_view(), name="triage-close"),
    path("channels/<str:name>/promote", decisions.ChannelPromoteView.as_view(), name="channel-promote"),
]
