"""A worker process that may be killed at any moment, with its plan as its argument.

It enters in a file when a handler begins and when it has had its effect: lines that are there
before the process goes on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import sys
from typing import Any

from durable_workflow_engine import AsyncClient, Context, Worker
from durable_workflow_engine.worker import Polled, WorkerEvent

CONCURRENCY = 6
WORK_MAX = 0.06
CHECKPOINT_CHANCE = 0.2
FAILURE_CHANCE = 0.15

plan = json.loads(sys.argv[1])
chance = random.Random(plan["seed"])
ledger = os.open(plan["ledger"], os.O_WRONLY | os.O_APPEND)
count = 0
ready: list[str] = []


def write(line: dict[str, Any]) -> None:
    os.write(ledger, f"{json.dumps(line)}\n".encode())


def is_ready(event: WorkerEvent) -> None:
    """Signals are heard from before the first poll."""
    if isinstance(event, Polled) and not ready:
        ready.append(plan["workerId"])
        write({"kind": "ready", "task": "", "epoch": 0, "mark": plan["workerId"]})


async def act(_: Any, ctx: Context) -> dict[str, Any]:
    global count
    count += 1
    mark = f"{plan['workerId']}-{count}"

    def enter(kind: str) -> None:
        write({"kind": kind, "task": ctx.task.id, "epoch": ctx.task.claim_epoch, "mark": mark})

    enter("began")
    if chance.random() < CHECKPOINT_CHANCE:
        await ctx.checkpoint({"mark": mark})
    await asyncio.sleep(chance.uniform(0, WORK_MAX))
    if chance.random() < FAILURE_CHANCE:
        enter("threw")
        raise RuntimeError("not today")
    enter("done")
    return {"mark": mark}


logging.disable()
Worker(
    AsyncClient(url=plan["url"], api_key=plan["apiKey"], tenant=plan["tenant"]),
    handlers=dict.fromkeys(plan["handlers"], act),
    worker_id=plan["workerId"],
    concurrency=CONCURRENCY,
    lease=plan["leaseMs"] / 1000,
    poll_wait=1,
    on_event=is_ready,
).run()
