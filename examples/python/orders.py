"""The order pipeline of docs/tutorial.md: the workflow, its worker and three orders in one program.

    pip install durable-workflow-engine
    ENGINE_API_KEY=$(cat data/root-key) python examples/python/orders.py

An order has the same idempotency key each time: started twice, the program orders nothing twice.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from durable_workflow_engine import (
    AsyncClient,
    Context,
    EngineError,
    FatalError,
    RetryableError,
    Worker,
)
from durable_workflow_engine.models import (
    Block,
    ParallelBlock,
    Route,
    RouterBlock,
    StepBlock,
    TryCatchBlock,
)

# ---------------------------------------------------------------- the workflow


def step(id: str, handler: str, params: dict[str, Any], **more: Any) -> StepBlock:
    return StepBlock(id=id, handler=handler, params=params, **more)


ORDER: list[Block] = [
    step(
        "validate",
        "assert",
        {"condition": "data.amount > 0", "message": "the amount is missing"},
    ),
    step(
        "charge",
        "charge-card",
        {"order": "{{data.order}}", "amount": "{{data.amount}}"},
        retry={"max_attempts": 3, "initial_backoff": 500},
        # A cancel waits for the bank: else nobody would know whether the card is charged.
        cancellable=False,
    ),
    TryCatchBlock(
        id="fulfil",
        try_block=[
            ParallelBlock(
                id="prepare",
                branches=[
                    [step("mail", "send-mail", {"to": "{{data.customer}}"})],
                    [step("pick", "pick-goods", {"item": "{{data.item}}"})],
                ],
            ),
            RouterBlock(
                id="parcel",
                routes=[
                    Route(
                        condition="data.amount >= 100",
                        blocks=[step("courier", "transform", {"by": "courier"})],
                    )
                ],
                default=[step("post", "transform", {"by": "post"})],
            ),
        ],
        catch_block=[
            step(
                "refund",
                "refund-card",
                {"charge": "{{outputs.charge.charge}}", "why": "{{data._error.message}}"},
            )
        ],
    ),
    step("thank", "log", {"message": "Thank you, {{data.customer}}"}, delay={"duration": 1000}),
]

# ---------------------------------------------------------------- the worker


class Charge(BaseModel):
    order: str
    amount: int


class Charged(BaseModel):
    charge: str


#: What the bank did, by the key that it was told: asked again, it charges nothing more.
CHARGES: dict[str, Charged] = {}


async def charge_card(params: Charge, ctx: Context) -> Charged:
    """The bank is down at the first try of each order."""
    if ctx.attempt == 0:
        raise RetryableError("the bank is down")
    key = ctx.task.idempotency_key
    if key not in CHARGES:
        ctx.log(f"{params.order} pays {params.amount}")
        CHARGES[key] = Charged(charge=f"ch-{params.order}")
    return CHARGES[key]


async def refund_card(params: dict[str, Any]) -> dict[str, Any]:
    return {"refunded": params["charge"], "because": params["why"]}


async def send_mail(params: dict[str, Any]) -> dict[str, Any]:
    return {"mailed": params["to"]}


def pick_goods(params: dict[str, Any]) -> dict[str, Any]:
    """A plain function: it runs in a thread."""
    if params["item"] == "unicorn":
        raise FatalError("unicorns are sold out")
    return {"picked": params["item"]}


HANDLERS: dict[str, Callable[..., Any]] = {
    "charge-card": charge_card,
    "refund-card": refund_card,
    "send-mail": send_mail,
    "pick-goods": pick_goods,
}

# ---------------------------------------------------------------- three orders

ORDERS = [("A-1", "lamp", 120), ("A-2", "unicorn", 20), ("A-3", "chair", 80)]


async def order(client: AsyncClient, number: str, item: str, amount: int) -> None:
    data = {"order": number, "customer": "ada", "item": item, "amount": amount}
    result = await client.instances.run("order-in-python", data, idempotency_key=number, timeout=60)
    outputs = result.outputs
    if "refund" in outputs:
        print(f"{number}: paid back, because {outputs['refund']['because']}")
    else:
        parcel = outputs.get("courier") or outputs["post"]
        print(f"{number}: {outputs['charge']['charge']}, {item} is sent by {parcel['by']}")


async def main() -> None:
    tenant = os.environ.get("ENGINE_TENANT", "demo")
    async with AsyncClient(tenant=tenant, namespace="shop") as client:
        try:
            await client.sequences.create(name="order-in-python", version=1, blocks=ORDER)
        except EngineError as error:
            if error.code != "ENG_CONFLICT":  # It is there already.
                raise
        worker = Worker(client, handlers=HANDLERS)
        serving = asyncio.create_task(worker.serve())
        try:
            await asyncio.gather(*(order(client, *one) for one in ORDERS))
        finally:
            worker.stop()
            await serving


if __name__ == "__main__":
    asyncio.run(main())
