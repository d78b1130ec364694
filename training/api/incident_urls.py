"""Addresses of the handbook and the incident register below /api/v1."""

from django.urls import path

from training.api import incidents

urlpatterns = [
    path("handbook", incidents.HandbookListView.as_view(), name="handbook-list"),
    path("handbook/<str:code>", incidents.HandbookRowView.as_view(), name="handbook-detail"),
    path("incidents", incidents.IncidentListView.as_view(), name="incident-list"),
    path("incidents/quarterly", incidents.QuarterReviewView.as_view(), name="incident-quarterly"),
    path(
        "incidents/quarterly/report",
        incidents.QuarterReportView.as_view(),
        name="incident-quarterly-report",
    ),
    path("incidents/<int:number>", incidents.IncidentView.as_view(), name="incident-detail"),
    path(
        "incidents/<int:number>/entries",
        incidents.IncidentEntryListView.as_view(),
        name="incident-entry-list",
    ),
    path(
        "incidents/<int:number>/investigate",
        incidents.IncidentInvestigateView.as_view(),
        name="incident-investigate",
    ),
    path("incidents/<int:number>/resolve", incidents.IncidentResolveView.as_view(), name="incident-resolve"),
    path("incidents/<int:number>/dismiss", incidents.IncidentDismissView.as_view(), name="incident-dismiss"),
    path("incidents/<int:number>/check", incidents.IncidentCheckView.as_view(), name="incident-check"),
]
