"""Log lines: facts as fields, ids of request, user and task bound, secrets masked on the way out.

Written through the standard library's `logging`; structlog renders. Goes to standard error, so
that a command's own output stays clean.
"""

import logging.config
from typing import Any, Literal

import structlog
from structlog.types import EventDict, Processor, WrappedLogger

from portal.core.redaction import redact

QUIET = (
    "django_structlog.celery.receivers",
    "django.template",
    "httpx",
    "httpcore",
    "urllib3",
    "botocore",
    "asyncio",
    "hpack",
)


PROBES = ("/healthz", "/readyz", "/metrics")


class OneLine(logging.Filter):
    """Keeps one line a request, the one that says how it ended; none of probes and static files."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to keep the line."""
        event = record.msg if isinstance(record.msg, dict) else {}
        request = str(event.get("request", ""))
        is_noise = request.endswith(PROBES) or " /static/" in request
        return event.get("event") != "request_started" and not (is_noise and record.levelno < 30)


def configure(*, log_format: Literal["json", "console"], level: str = "INFO") -> dict[str, Any]:
    """Set logging up for this process and return the `dictConfig` that was applied."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    config: dict[str, Any] = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "slipway": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*shared, structlog.stdlib.ExtraAdder()],
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.StackInfoRenderer(),
                    structlog.processors.format_exc_info,
                    masked,
                    *_renderer(log_format),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "slipway"}},
        "root": {"handlers": ["stderr"], "level": level},
        "filters": {"one_line": {"()": OneLine}},
        "loggers": {
            **{name: {"level": "WARNING"} for name in QUIET},
            "django_structlog.middlewares.request": {"filters": ["one_line"]},
        },
    }
    logging.config.dictConfig(config)
    return config


def request_id() -> str:
    """Return the id of the request that is being answered, or an empty text outside of one."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def masked(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Mask every secret in the line; the last step before it becomes text."""
    return {str(key): redact(value, name=str(key)) for key, value in event.items()}


def _renderer(log_format: Literal["json", "console"]) -> list[Processor]:
    if log_format == "json":
        return [
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)]
