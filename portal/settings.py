"""Django's settings, all of them: one file for every process, fed by portal.env."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import dj_database_url
import dj_email_url
from csp.constants import NONE, SELF

from portal import env as environment
from portal.core import logs

env = environment.load()
BASE_DIR = Path(__file__).resolve().parent.parent

# Identity of the site -------------------------------------------------------------------------
PUBLIC_URL = env.public_url.rstrip("/")
_public = urlsplit(PUBLIC_URL)
IS_HTTPS = _public.scheme == "https"
SECRET_KEY = env.secret_key or "unset"  # the supervisor makes the real one before any process
ENCRYPTION_KEYS = list(env.encryption_keys)
DEBUG = env.debug
ALLOWED_HOSTS = [_public.hostname or "localhost", env.host, "localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
BOOTSTRAP_ADMIN_EMAIL = env.bootstrap_admin_email
BOOTSTRAP_ADMIN_PASSWORD = env.bootstrap_admin_password
BOOTSTRAP_TOKEN = env.bootstrap_token
ALLOWED_NETWORKS = env.allowed_networks
OWN_LISTENERS = (
    (env.host, env.port),
    (_public.hostname or env.host, _public.port or (443 if IS_HTTPS else 80)),
)
WEBHOOK_ALLOW_PRIVATE = False  # the tests' own receiver listens on loopback
LOCAL_JOBS_FOLDER = env.local_jobs_folder
HAS_WALL = env.has_wall
SWEEP_SECONDS = env.sweep_seconds
HOME = env.home
DISK_FLOOR_BYTES = env.disk_floor_bytes
LOG_MAX_BYTES = env.log_max_bytes
LOG_DAYS = env.log_days
SAMPLE_DAYS = env.sample_days
LOOPBACK_URL = env.loopback_url

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "django_structlog",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "allauth.usersessions",
    "portal.core",
    "portal.teams",
    "portal.notices",
    "billing",
    "clusters",
    "jobs",
]

MIDDLEWARE = [
    "portal.core.metrics.MetricsMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "portal.core.middleware.ErrorMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.teams.middleware.SessionActivityMiddleware",
    "portal.teams.middleware.ActorMiddleware",
]
APPEND_SLASH = False

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.teams.context.shell",
                "portal.notices.context.bell",
            ],
        },
    },
]

# Stores ---------------------------------------------------------------------------------------
DATABASES = {
    "default": {
        **dj_database_url.parse(env.database_url),
        "ENGINE": "django.db.backends.postgresql",
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "pool": {"min_size": 1, "max_size": 24, "timeout": 4, "max_idle": 120},
            "options": (
                "-c lock_timeout=5s -c statement_timeout=60s"
                " -c idle_in_transaction_session_timeout=60s"
            ),
            "application_name": "slipway",
            # A server that vanished from the network is noticed in seconds, not in a quarter hour.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
            "connect_timeout": 4,
        },
    }
}
REDIS_URL = env.redis_url
CACHES = {
    "default": {
        "BACKEND": "portal.core.cache.SoftRedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "slipway",
        "OPTIONS": {"socket_timeout": 0.25, "socket_connect_timeout": 0.25},
    }
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # Channels of Redis are shared by its databases; two portals on one server must not mix.
        "CONFIG": {"hosts": [REDIS_URL], "prefix": f"slipway-{crc32(REDIS_URL.encode()):08x}"},
    }
}
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(env.home / "files")},
    },
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "build" / "static", BASE_DIR / "static"]  # bundles come first
STATIC_ROOT = BASE_DIR / "build" / "collected"
WHITENOISE_USE_FINDERS = DEBUG
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20

# Celery: a message is a knock on the door, see portal/celery.py ---------------------------------
CELERY_BROKER_URL = env.celery_broker_url
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "max_retries": 0,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "global_keyprefix": "slipway:",
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_DEFAULT_QUEUE = "reconcile"
CELERY_TASK_SOFT_TIME_LIMIT = 120
CELERY_TASK_TIME_LIMIT = 150
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_ROUTES = {
    "notices.*": {"queue": "notify"},
    "jobs.stream.*": {"queue": "stream"},
    "clusters.stream.*": {"queue": "stream"},
}

# People -----------------------------------------------------------------------------------------
AUTH_USER_MODEL = "teams.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "dashboard"
ACCOUNT_ADAPTER = "portal.teams.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "portal.teams.account_forms.LoginForm",
    "change_password": "portal.teams.account_forms.ChangePasswordForm",
}
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = None  # "Stay signed in for 14 days" is asked at login
ACCOUNT_RATE_LIMITS = {"login_failed": "30/15m/ip,5/15m/key", "login": "60/m/ip"}
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # strangers get no mail because somebody typed their address
ACCOUNT_MAX_EMAIL_ADDRESSES = 1  # the one that a person was invited by; another cannot be claimed
ACCOUNT_DEFAULT_HTTP_PROTOCOL = _public.scheme
SOCIALACCOUNT_ADAPTER = "portal.teams.adapters.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
OIDC_NAME = env.oidc_name
if env.oidc_issuer_url:
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "APPS": [
            {
                "provider_id": "oidc",
                "name": env.oidc_name,
                "client_id": env.oidc_client_id,
                "secret": env.oidc_client_secret,
                "settings": {"server_url": env.oidc_issuer_url, "oauth_pkce_enabled": True},
            }
        ]
    }
MFA_FACTORS = env.mfa
MFA_SUPPORTED_TYPES = [
    *(["totp", "recovery_codes"] if "totp" in env.mfa else []),
    *(["webauthn"] if "passkeys" in env.mfa else []),
]
MFA_PASSKEY_LOGIN_ENABLED = "passkeys" in env.mfa
MFA_TOTP_ISSUER = "Slipway"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not IS_HTTPS  # localhost is a secure context without TLS
MFA_ADAPTER = "portal.teams.adapters.MfaAdapter"

# Safety of the browser ----------------------------------------------------------------------------
SESSION_ENGINE = "portal.core.sessions"
SESSION_COOKIE_NAME = "slipway_session"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "slipway_csrf"
CSRF_COOKIE_HTTPONLY = True  # scripts read the token from <meta name="csrf-token">
CSRF_FAILURE_VIEW = "portal.core.middleware.csrf_failure"
SECURE_HSTS_SECONDS = 31536000 if IS_HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
_oidc_origin = (
    [f"{urlsplit(env.oidc_issuer_url).scheme}://{urlsplit(env.oidc_issuer_url).netloc}"]
    if env.oidc_issuer_url
    else []
)
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF, *_oidc_origin],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    }
}

# REST ---------------------------------------------------------------------------------------------
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.teams.authentication.TokenAuthentication",
        "portal.teams.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "portal.teams.permissions.ScopeAllows",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.core.parsers.StrictJSONParser"],
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS is no method of ours; the schema tells all
    "DEFAULT_SCHEMA_CLASS": "portal.core.schema.NamedSchema",
    "DEFAULT_THROTTLE_CLASSES": [
        "portal.core.throttles.ReadThrottle",
        "portal.core.throttles.WriteThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {"read": "12000/min", "write": "6000/min"},
    "EXCEPTION_HANDLER": "portal.core.rest.problem_response",
    "COERCE_DECIMAL_TO_STRING": True,
    "NUM_PROXIES": 0,  # the server has judged X-Forwarded-For already
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Slipway",
    "DESCRIPTION": "The REST API of Slipway, the control-plane portal for GPU clusters.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {"LevelEnum": "portal.notices.serializers.LEVELS"},
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "portal.core.schema.declare_errors",
    ],
}

# Mail, language, logs -----------------------------------------------------------------------------
vars().update(dj_email_url.parse(env.email_url or "dummy:"))
EMAIL_TIMEOUT = 10
HAS_MAIL = env.email_url is not None
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.email_from
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False
LOGGING_CONFIG = None
LOGGING = logs.configure(log_format=env.log_format, level="DEBUG" if DEBUG else "INFO")
DJANGO_STRUCTLOG_CELERY_ENABLED = True
DJANGO_STRUCTLOG_USER_ID_FIELD = "id"
