"""Settings shared by every deployment. No secret and no DEBUG default lives here."""

import os
from pathlib import Path
from typing import Any

from django.templatetags.static import static

from config import env

PROJECT_ROOT = Path(__file__).resolve().parent.parent.parent
ASSAY_HOME = env.get_path("ASSAY_HOME", Path.cwd() / "var")

DEBUG = False
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
STATIC_ROOT = ASSAY_HOME / "static"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "registry",
    "evaluation",
    "training",
    "workers",
]

MIDDLEWARE = [
    "config.version_header.VersionHeaderMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "registry.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "registry.api.pagination.CreatedCursorPagination",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "registry.api.problems.handle_exception",
    "PAGE_SIZE": 50,
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Assay",
    "DESCRIPTION": "Model registry and evaluation gate for fine-tuned LLM adapters.",
    "VERSION": "v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "ArtifactKindEnum": "registry.choices.ArtifactKind",
        "JobKindEnum": "registry.choices.JobKind",
        "PromotionKindEnum": "registry.choices.PromotionKind",
        "ServingFormEnum": "registry.choices.ServingForm",
        "UploadStateEnum": "registry.choices.UploadState",
        # Training runs and data preparations have the same states as jobs.
        "JobStateEnum": "registry.choices.JobState",
        "VersionStateEnum": "registry.choices.VersionState",
        "RunStateEnum": "evaluation.choices.RunState",
        "VerdictEnum": "evaluation.choices.Verdict",
        "TriageStateEnum": "evaluation.choices.TriageState",
        "ReviewStateEnum": "training.choices.ReviewState",
        "ReviewVerdictEnum": "training.choices.ReviewVerdict",
        "TrainingPurposeEnum": "training.choices.TrainingPurpose",
        "TrainingFindingSeverityEnum": "training.choices.FindingSeverity",
        "IncidentStateEnum": "training.choices.IncidentState",
        "IncidentOpenerEnum": "training.choices.IncidentOpener",
        "IncidentEntryKindEnum": "training.choices.IncidentEntryKind",
        "HandbookLanguageEnum": "training.choices.HandbookLanguage",
        "SymptomOriginEnum": "training.choices.SymptomOrigin",
        "CheckAnswerEnum": "training.choices.CheckAnswer",
    },
}

# One chunk of an upload is held in memory at most; larger request bodies are refused by the upload view.
UPLOAD_CHUNK_BYTES = 8 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * UPLOAD_CHUNK_BYTES
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * UPLOAD_CHUNK_BYTES
UPLOAD_TTL_SECONDS = env.get_int("ASSAY_UPLOAD_TTL_SECONDS", 24 * 3600, minimum=60)
MAX_UPLOAD_FILES = env.get_int("ASSAY_MAX_UPLOAD_FILES", 2000, minimum=1)
MAX_UPLOAD_BYTES = env.get_int("ASSAY_MAX_UPLOAD_BYTES", 2 * 1024**4, minimum=1)
MAX_DATASET_BYTES = env.get_int("ASSAY_MAX_DATASET_BYTES", 64 * 1024**2, minimum=1)

ARTIFACT_STORE = env.get_str("ARTIFACT_STORE", f"file://{ASSAY_HOME / 'artifacts'}")
ARTIFACT_CACHE = env.get_path("ASSAY_ARTIFACT_CACHE", ASSAY_HOME / "cache")
WORK_ROOT = env.get_path("ASSAY_WORK_ROOT", ASSAY_HOME / "work")
# How long the work folder of a finished job stays for replay by hand.
WORK_FOLDER_TTL_SECONDS = env.get_int("ASSAY_WORK_FOLDER_TTL_SECONDS", 7 * 24 * 3600, minimum=0)

JOB_HEARTBEAT_SECONDS = env.get_float("ASSAY_JOB_HEARTBEAT_SECONDS", 2.0, minimum=0.1)
JOB_LAPSED_SECONDS = env.get_float("ASSAY_JOB_LAPSED_SECONDS", 30.0, minimum=1.0)
JOB_TIME_LIMIT_SECONDS = env.get_int("ASSAY_JOB_TIME_LIMIT_SECONDS", 4 * 3600, minimum=1)
JOB_MAX_ATTEMPTS = env.get_int("ASSAY_JOB_MAX_ATTEMPTS", 3, minimum=1)
# Threads of a job's arithmetic; the web and worker processes do none.
JOB_NUM_THREADS = env.get_int("ASSAY_JOB_THREADS", os.cpu_count() or 1, minimum=1)
# Processes that train one model together; 0 is one for each accelerator of the machine.
TRAIN_NUM_PROCESSES = env.get_int("ASSAY_TRAIN_PROCESSES", 0, minimum=0)
SCHEDULER_INTERVAL_SECONDS = env.get_float("ASSAY_SCHEDULER_INTERVAL_SECONDS", 3.0, minimum=0.1)

# Given to evaluation jobs as it stands; the child process reads neither settings nor environment.
ENGINE_BACKEND: dict[str, Any] = {
    "name": env.get_choice("ASSAY_ENGINE_BACKEND", "vllm", ("vllm", "transformers")),
    "dtype": env.get_choice("ASSAY_ENGINE_DTYPE", "bfloat16", ("bfloat16", "float16", "float32", "auto")),
    "max_model_len": env.get_int("ASSAY_ENGINE_MAX_MODEL_LEN", 2048, minimum=64),
    "max_num_seqs": env.get_int("ASSAY_ENGINE_MAX_NUM_SEQS", 128, minimum=1),
    "gpu_memory_utilization": env.get_float("ASSAY_ENGINE_GPU_MEMORY", 0.85, minimum=0.05, maximum=0.98),
    "tensor_parallel_size": env.get_int("ASSAY_ENGINE_TENSOR_PARALLEL", 1, minimum=1),
    "cpu_kv_cache_gib": env.get_int("ASSAY_ENGINE_CPU_KV_CACHE_GIB", 1, minimum=1),
    "enforce_eager": env.get_bool("ASSAY_ENGINE_ENFORCE_EAGER", True),
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Assay",
    "SITE_HEADER": "Assay",
    "SITE_SUBHEADER": "Registry and evaluation gate",
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "STYLES": [lambda request: static("registry/no_script.css")],
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}

CELERY_BROKER_URL = ""
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "cpu"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Redis hands a message out again after this time; the claim in the database makes that harmless.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 6 * 3600,
    # A request must not wait long for a broker that is down: the scheduler sends its message later.
    "socket_connect_timeout": 2,
    # A worker may be busy for hours without using its connection.
    "socket_keepalive": True,
    "connect_retries_timeout": 2,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.2,
}
# A worker's own signs of life are in config.presence; Celery's chatter between workers is not needed.
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
