"""Addresses of jobs below /api/v1."""

from django.urls import path

from registry.api.jobs import JobCancelView, JobEventsView, JobListView, JobView

urlpatterns = [
    path("jobs", JobListView.as_view(), name="job-list"),
    path("jobs/<uuid:job_id>", JobView.as_view(), name="job-detail"),
    path("jobs/<uuid:job_id>/events", JobEventsView.as_view(), name="job-events"),
    path("jobs/<uuid:job_id>/cancel", JobCancelView.as_view(), name="job-cancel"),
]
