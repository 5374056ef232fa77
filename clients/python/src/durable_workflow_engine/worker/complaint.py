"""What is said to whoever starts a worker that cannot work."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import NO_ENGINE, EngineError


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
        return "give the client an api_key that the server knows, and that is not expired"
    if error.status == 403:
        return "the key needs the capability worker, for the tenant of the client"
    if error.status == 400 and "x-tenant-id" in error.message:
        return "give the client a tenant"
    return ""


def refuse_builtins(names: Iterable[str], builtin: Iterable[str]) -> None:
    """
    Raises:
        ValueError: a name is one that the server serves by itself.
    """
    taken = sorted(set(names) & set(builtin))
    if taken:
        raise ValueError(
            f"the server serves {', '.join(taken)} by itself, and gives no worker such a task: "
            "choose another name"
        )
