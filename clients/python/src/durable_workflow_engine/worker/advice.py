"""What is probably wrong with a worker that gets no tasks: names that nobody knows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .._model import encode
from ..async_client import AsyncClient
from ..errors import EngineError

#: Sequences that are looked through, the first of the list.
SEQUENCES_MAX = 1_000


async def advice_for(
    client: AsyncClient, handlers: Sequence[str], queues: Sequence[str]
) -> list[str]:
    """A sentence for each name that is worth a look.

    Args:
        handlers: Those that had no task yet.
        queues: Those that had none.

    Raises:
        EngineError: the server cannot be asked.
    """
    builtin = (await client.handlers()).builtin
    counts = (await client.workers.stats()).by_handler
    named = await _named_in_sequences(client)
    waiting = [
        f'"{name}" ({states["pending"]})'
        for name, states in counts.items()
        if name not in handlers and states.get("pending")
    ]
    others = f"; tasks wait for {', '.join(waiting)}" if waiting else ""
    sentences: list[str] = []
    for name in handlers:
        if name in builtin:
            sentences.append(
                f'"{name}" is a handler of the server itself: no worker gets its tasks'
            )
        elif name not in counts and (
            named is None or f'"handler": {json.dumps(name)}' not in named
        ):
            whose = "no task" if named is None else "no sequence and no task"
            sentences.append(f'{whose} of the tenant names the handler "{name}"{others}')
    for name in queues:
        if not (await client.workers.tasks(queue_name=name, limit=1)).items:
            sentences.append(f'no task of the tenant was ever in the queue "{name}"')
    return sentences


async def _named_in_sequences(client: AsyncClient) -> str | None:
    """The definitions as text; None where the key may not read them, as that of most workers."""
    try:
        page = await client.sequences.list(limit=SEQUENCES_MAX)
    except EngineError:
        return None
    return json.dumps(encode(page.items))
