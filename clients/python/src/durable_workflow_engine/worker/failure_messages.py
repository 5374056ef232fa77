"""Explains failed requests to the operator of the worker."""

from __future__ import annotations

from ..errors import NO_ENGINE, EngineError

#: Statuses that a retry does not change until somebody fixes the cause.
DENIED = frozenset({400, 401, 403, 404})


def is_refusal(error: EngineError) -> bool:
    """Whether the server has rejected the worker itself."""
    return error.code == NO_ENGINE or error.status in DENIED


def failure_message(error: EngineError) -> str:
    """The error, and what to do about it."""
    advice = _advice(error)
    return f"{error}: {advice}" if advice else f"no response, retrying: {error}"


def advised(error: EngineError) -> EngineError:
    """The same error, with what to do about it."""
    advice = _advice(error)
    told = EngineError(
        f"{error.message}: {advice}" if advice else error.message,
        status=error.status,
        code=error.code,
        field=error.field,
        request_id=error.request_id,
        retry_after=error.retry_after,
        body=error.body,
    )
    told.__cause__ = error
    return told


def _advice(error: EngineError) -> str:
    if error.code == NO_ENGINE:
        return "check the url"
    if error.status == 401:
        return "check that api_key is correct and not revoked"
    if error.status == 403:
        return "the key needs the capability worker for the tenant of the client"
    if error.status == 404:
        return "the server has no routes for workers: check the url"
    if error.status == 400 and "x-tenant-id" in error.message:
        return "set the tenant of the client"
    if error.status == 400:
        return "check tenant, handlers and queues"
    return ""
