"""Addresses of the training app below /api/v1."""

from django.urls import path

from training.api import views

urlpatterns = [
    path("training-runs", views.TrainingRunListView.as_view(), name="training-run-list"),
    path("training-runs/<uuid:run_id>", views.TrainingRunView.as_view(), name="training-run-detail"),
    path(
        "training-runs/<uuid:run_id>/metrics",
        views.TrainingRunMetricsView.as_view(),
        name="training-run-metrics",
    ),
    path(
        "training-runs/<uuid:run_id>/cancel",
        views.TrainingRunCancelView.as_view(),
        name="training-run-cancel",
    ),
]
