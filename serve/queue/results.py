"""Answers to a client after a job: its own mistakes by field, other faults by request id.

The text of a fault may come from another server, or show paths of this one, so it goes to the log.
"""

from __future__ import annotations

import logging
from typing import Any

from clients.connection import RequestRefused
from judging import CustosError, Verdict
from judging.errors import FieldError
from serve.errors import RETRY_AFTER_S, ApiError
from serve.queue.worker import ModelJob

logger = logging.getLogger("custos.serve")


def verdict_of(job: ModelJob) -> Verdict:
    """Return the verdict of a job with a request, under the name that clients call its judge.

    Raises:
        ApiError: If the queue was closed. 503 if the model's server fails, so that a client asks
            again instead of keeping a verdict without a label.
    """
    assert job.request
    error = job.future.exception()
    if isinstance(error, ApiError):
        raise error
    if isinstance(error, CustosError):
        raise _server_fails(job)
    if error:
        message = f"internal error; {_log_entry(job)}"
        return Verdict(
            id=job.request.id, status="judge_error", message=message, judge_name=job.judge
        )
    result: Verdict = job.future.result()
    verdict = result.model_copy(update={"judge_name": job.judge})
    if verdict.status not in ("invalid", "judge_error") or verdict.field_error:
        return verdict
    logger.warning("request %s: %s", job.request_id, verdict.message)
    message = f"the judge could not grade this; {_log_entry(job)}"
    return verdict.model_copy(update={"message": message})


def text_of(job: ModelJob) -> Any:
    """Return what the function of a job without a request returned.

    Raises:
        ApiError: 422 if the model cannot read its messages, 503 if the model's server fails, 500
            if the fault is ours.
    """
    error = job.future.exception()
    if error is None:
        return job.future.result()
    if isinstance(error, ApiError):
        raise error
    if isinstance(error, RequestRefused):
        raise ApiError(422, f"the model cannot read this; {_log_entry(job)}", "messages")
    if isinstance(error, FieldError):
        raise ApiError(422, f"{error.field}: {error.message}", "messages")
    if isinstance(error, CustosError):
        raise _server_fails(job)
    raise ApiError(500, f"internal error; {_log_entry(job)}")


def _server_fails(job: ModelJob) -> ApiError:
    message = f"the model's server fails; {_log_entry(job)}"
    return ApiError(503, message, retry_after=RETRY_AFTER_S)


def _log_entry(job: ModelJob) -> str:
    return f"the log has it under request {job.request_id}"
