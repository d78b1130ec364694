"""Addresses of the training app below /api/v1."""

from django.urls import path

from training.api import incident_urls, memory, preparations, reviews, views

urlpatterns = [
    path("training-runs", views.TrainingRunListView.as_view(), name="training-run-list"),
    path("training-runs/<uuid:run_id>", views.TrainingRunView.as_view(), name="training-run-detail"),
    path(
        "training-runs/<uuid:run_id>/metrics",
        views.TrainingRunMetricsView.as_view(),
        name="training-run-metrics",
    ),
    path(
        "training-runs/<uuid:run_id>/documents",
        views.TrainingRunDocumentsView.as_view(),
        name="training-run-documents",
    ),
    path(
        "training-runs/<uuid:run_id>/comparison",
        views.TrainingRunComparisonView.as_view(),
        name="training-run-comparison",
    ),
    path(
        "training-runs/<uuid:run_id>/variations",
        views.TrainingRunVariationListView.as_view(),
        name="training-run-variations",
    ),
    path(
        "training-runs/<uuid:run_id>/cancel",
        views.TrainingRunCancelView.as_view(),
        name="training-run-cancel",
    ),
    path("memory-estimates", memory.MemoryEstimateListView.as_view(), name="memory-estimate-list"),
    path("raw-data", preparations.RawDataListView.as_view(), name="raw-data-list"),
    path("raw-data/<str:reference>", preparations.RawDataView.as_view(), name="raw-data-detail"),
    path("preparations", preparations.PreparationListView.as_view(), name="preparation-list"),
    path(
        "preparations/<uuid:preparation_id>",
        preparations.PreparationView.as_view(),
        name="preparation-detail",
    ),
    path(
        "preparations/<uuid:preparation_id>/cancel",
        preparations.PreparationCancelView.as_view(),
        name="preparation-cancel",
    ),
    path(
        "preparations/<uuid:preparation_id>/retry",
        preparations.PreparationRetryView.as_view(),
        name="preparation-retry",
    ),
    path(
        "preparations/<uuid:preparation_id>/report",
        preparations.PreparationReportView.as_view(),
        name="preparation-report",
    ),
    path(
        "preparations/<uuid:preparation_id>/card",
        preparations.PreparationCardView.as_view(),
        name="preparation-card",
    ),
    path("reviews", reviews.ReviewListView.as_view(), name="review-list"),
    path("reviews/<uuid:task_id>", reviews.ReviewView.as_view(), name="review-detail"),
    path("reviews/<uuid:task_id>/items", reviews.ReviewItemListView.as_view(), name="review-item-list"),
    path(
        "reviews/<uuid:task_id>/items/<int:position>",
        reviews.ReviewItemView.as_view(),
        name="review-item-detail",
    ),
    path("reviews/<uuid:task_id>/close", reviews.ReviewCloseView.as_view(), name="review-close"),
    *incident_urls.urlpatterns,
]
