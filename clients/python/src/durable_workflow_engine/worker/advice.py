"""Advice for a worker that receives no tasks: names that nothing refers to."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .._model import encode
from ..async_client import AsyncClient
from ..errors import EngineError

#: Above this number of sequences, no advice is given.
SEQUENCES_MAX = 1_000


async def advice_for(
    client: AsyncClient, handlers: Sequence[str], queues: Sequence[str]
) -> list[str]:
    """A sentence for each finding.

    Args:
        handlers: Those without a task so far.
        queues: Those without a task so far.

    Raises:
        EngineError: a request to the server failed.
    """
    builtin = (await client.handlers()).builtin
    counts = (await client.workers.stats()).by_handler
    named = await _named_in_sequences(client)
    waiting = [
        f'"{name}" ({states["pending"]})'
        for name, states in counts.items()
        if name not in handlers and states.get("pending")
    ]
    others = f"; tasks are waiting for {', '.join(waiting)}" if waiting else ""
    sentences: list[str] = []

    def is_unknown(member: str, name: str) -> bool:
        return named is not None and f'"{member}": {json.dumps(name)}' not in named

    for name in handlers:
        if name in builtin:
            sentences.append(f'"{name}" is a built-in handler, which workers cannot serve')
        elif name not in counts and is_unknown("handler", name):
            whose = "no sequence or task"
            sentences.append(f'{whose} of the tenant uses the handler "{name}"{others}')
    for name in queues:
        if not is_unknown("queue_name", name):
            continue
        if not (await client.workers.tasks(queue_name=name, limit=1)).items:
            sentences.append(f'no sequence or task of the tenant uses the queue "{name}"')
    return sentences


async def _named_in_sequences(client: AsyncClient) -> str | None:
    """All definitions as text; None if the key may not read them."""
    try:
        page = await client.sequences.list(limit=SEQUENCES_MAX)
        more = await page.next()
    except EngineError:
        # The key of a worker usually may not.
        return None
    return None if more is not None else json.dumps(encode(page.items))
