"""Worker processes that are killed at random.

The server has to give a silent worker's tasks to others soon: ENGINE_WORKER_REAPER_STALE_SECS is a
few seconds there.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from durable_workflow_engine import Client, models

INSTANCES = 120
WORKERS = 3
KILLS = 12

WORKER = """
import asyncio, os, random
from durable_workflow_engine import Client, Context, Worker

out = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def act(params, ctx: Context):
    os.write(out, f"{ctx.task.id} {ctx.task.claim_epoch}\\n".encode())
    await asyncio.sleep(random.uniform(0, 0.1))
    return {"epoch": ctx.task.claim_epoch}

Worker(Client(), handlers={"act": act}, concurrency=5, heartbeat=0.5, lease=2).run()
"""


@pytest.mark.skipif("KILL_TEST" not in os.environ, reason="asks for a server of its own")
def test_workers_that_are_killed_lose_nothing_and_report_each_claim_once(
    client: Client, tmp_path: Path
) -> None:
    seed = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    steps = [models.StepBlock(id=f"act-{n}", handler="act") for n in range(2)]
    client.sequences.create(name="test", version=1, blocks=steps)
    client.instances.create_batch(instances=[{"sequence": "test"}] * INSTANCES)
    script, effects = tmp_path / "worker.py", tmp_path / "effects"
    script.write_text(WORKER)
    env = {**os.environ, "ENGINE_TENANT": client.settings.tenant or "", "EFFECTS": str(effects)}

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, script], env=env)

    workers = [start() for _ in range(WORKERS)]
    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(0, 0.6))
            victim = chance.randrange(WORKERS)
            workers[victim].kill()
            workers[victim].wait()
            workers[victim] = start()
        while any(client.instances.list(state=["scheduled", "running", "waiting"], limit=1)):
            time.sleep(0.2)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()

    states = Counter(instance.state for instance in client.instances.list(limit=1000))
    assert states == {"completed": INSTANCES}
    claims = Counter(effects.read_text().splitlines())
    assert set(claims.values()) == {1}, "an effect happened twice under one claim"
    tasks = list(client.workers.tasks(limit=1000))
    assert len(tasks) == INSTANCES * len(steps)
    for task in tasks:
        entries = [(it.event, it.claim_epoch) for it in client.workers.attempts(task.id)]
        assert [event for event, _ in entries].count("completed") == 1
        assert ("completed", task.claim_epoch) in entries
        assert f"{task.id} {task.claim_epoch}" in claims
