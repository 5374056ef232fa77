"""What is probably wrong with a worker that gets no tasks: names that nobody knows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .._model import encode
from ..async_client import AsyncClient
from ..errors import EngineError

#: Sequences that are looked through: of more than these nothing is said.
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

    def is_unknown(member: str, name: str) -> bool:
        return named is not None and f'"{member}": {json.dumps(name)}' not in named

    for name in handlers:
        if name in builtin:
            sentences.append(
                f'"{name}" is a handler of the server itself: no worker gets its tasks'
            )
        elif name not in counts and is_unknown("handler", name):
            whose = "no sequence and no task"
            sentences.append(f'{whose} of the tenant names the handler "{name}"{others}')
    for name in queues:
        if not is_unknown("queue_name", name):
            continue
        if not (await client.workers.tasks(queue_name=name, limit=1)).items:
            sentences.append(f'no sequence and no task of the tenant names the queue "{name}"')
    return sentences


async def _named_in_sequences(client: AsyncClient) -> str | None:
    """The definitions as text; None where the key may not read all of them."""
    try:
        page = await client.sequences.list(limit=SEQUENCES_MAX)
        more = await page.next()
    except EngineError:
        # That of a worker usually may not.
        return None
    return None if more is not None else json.dumps(encode(page.items))
