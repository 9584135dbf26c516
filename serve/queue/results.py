"""What a client is told of a finished job: its own mistakes by field, other faults by request id.

A fault's text may come from another server, or show paths of this one: it goes to the log.
"""

from __future__ import annotations

import logging

from clients.chat import RequestRefused
from judging import CustosError, Verdict
from judging.errors import FieldError
from serve.chat.completion import Completion
from serve.errors import RETRY_AFTER_S, ApiError
from serve.queue.worker import Job

logger = logging.getLogger("custos.serve")


def verdict_of(job: Job) -> Verdict:
    """The verdict of a graded job.

    Raises:
        ApiError: If the queue was closed; 503 if the model's server fails, so that a client asks
            again instead of keeping a verdict that says nothing.
    """
    assert job.request
    error = job.future.exception()
    if isinstance(error, ApiError):
        raise error
    if isinstance(error, CustosError):
        raise _server_fails(job)
    if error:
        message = f"internal error; {_logged(job)}"
        return Verdict(id=job.request.id, status="judge_error", message=message)
    verdict: Verdict = job.future.result()
    if verdict.status != "judge_error" or verdict.field_error:
        return verdict
    logger.warning("request %s: %s", job.request_id, verdict.message)
    message = f"the judge could not grade this; {_logged(job)}"
    return verdict.model_copy(update={"message": message})


def completion_of(job: Job) -> Completion:
    """The free text of a job.

    Raises:
        ApiError: 422 for what the model cannot read, 503 if the model's server fails, 500 for a
            fault of ours.
    """
    error = job.future.exception()
    if error is None:
        written: Completion = job.future.result()
        return written
    if isinstance(error, ApiError):
        raise error
    if isinstance(error, RequestRefused):
        raise ApiError(422, f"the model cannot read this; {_logged(job)}", "messages")
    if isinstance(error, FieldError):
        raise ApiError(422, f"{error.field}: {error.message}", "messages")
    if isinstance(error, CustosError):
        raise _server_fails(job)
    raise ApiError(500, f"internal error; {_logged(job)}")


def _server_fails(job: Job) -> ApiError:
    message = f"the model's server fails; {_logged(job)}"
    return ApiError(503, message, retry_after=RETRY_AFTER_S)


def _logged(job: Job) -> str:
    return f"the log has it under request {job.request_id}"
