"""What a failed request probably means, for whoever operates the worker."""

from __future__ import annotations

from ..errors import NO_ENGINE, EngineError

#: Somebody has to act before another try makes sense.
DENIED = frozenset({400, 401, 403, 404})


def is_refusal(error: EngineError) -> bool:
    """Whether the server has refused the worker itself."""
    return error.code == NO_ENGINE or error.status in DENIED


def complaint(error: EngineError) -> str:
    """The refusal, and what to do about it."""
    advice = _advice(error)
    return f"{error}: {advice}" if advice else f"no answer, trying again: {error}"


def advised(error: EngineError) -> EngineError:
    """The same refusal, with what to do about it."""
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
        return "is the url right?"
    if error.status == 401:
        return "give the client an api_key that the server knows, and that is not revoked"
    if error.status == 403:
        return "the key needs the capability worker, for the tenant of the client"
    if error.status == 404:
        return "the server has no routes for workers: is the url right?"
    if error.status == 400 and "x-tenant-id" in error.message:
        return "give the client a tenant"
    if error.status == 400:
        return "are tenant, handlers and queues right?"
    return ""
