/**
 * What a tenant does while it is moved, with a ledger of what it was told: instances are made and their tasks done,
 * in whichever cell serves it. In the end everything that was acknowledged is there once.
 */

import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { TaskInstance } from '../../schema/instance.js';
import type { WorkerTask } from '../../schema/worker.js';
import { eventually, step } from './api.js';
import type { Reply } from './client.js';
import type { CellName, TwoCells } from './moving.js';

const HANDLER = 'moving.work';
const PAUSE_MS = 25;
/** Polls are parked when the tenant leaves. */
const POLL_MS = 500;
/** A machine that does other things. */
const PATIENCE_MS = 300_000;

export class MovingLoad {
  readonly #cells: TwoCells;
  readonly #tenant: string;
  readonly #created = new Map<string, string>();
  /** By task: how often its completion was acknowledged. */
  readonly #completed = new Map<string, number>();
  #sequence = '';
  #home: CellName;
  #isStopped = false;
  #running: Promise<unknown> = Promise.resolve();
  /** Answers that said that the tenant is elsewhere, or on its way. */
  turnedAway = 0;

  constructor(cells: TwoCells, tenant: string, home: CellName) {
    this.#cells = cells;
    this.#tenant = tenant;
    this.#home = home;
  }

  async start(): Promise<void> {
    const nap = step('nap', 'noop', { delay: { duration: 200 } });
    const blocks = [step('task', HANDLER), nap, step('end', 'noop')];
    this.#sequence = await this.#cells.tenant(this.#home, this.#tenant).sequence(blocks);
    this.#running = Promise.all([this.#create(), this.#work('w1'), this.#work('w2')]);
  }

  get created(): number {
    return this.#created.size;
  }

  /** Nothing new is made; resolves when all that was acknowledged has come to its end, once. */
  async end(): Promise<void> {
    const ids = [...this.#created.values()];
    assert.ok(ids.length > 0);
    await eventually(async () => {
      const states = await Promise.all(ids.map((id) => this.#stateOf(id)));
      const left = states.filter((state) => state !== 'completed');
      assert.equal(left.length, 0, `${left.length} of ${ids.length} are left: ${left[0]}`);
    }, PATIENCE_MS);
    this.#isStopped = true;
    await this.#running;
    const twice = [...this.#completed].filter(([, times]) => times > 1);
    assert.deepEqual(twice, [], 'no completion was acknowledged twice');
    // One after the other: a tenant has few places for lists.
    for (const id of ids) {
      const outputs = await this.#cells.tenant(this.#home, this.#tenant).outputs(id);
      assert.deepEqual(outputs.map(({ block_id }) => block_id).sort(), ['end', 'nap', 'task'], id);
    }
  }

  stopCreating(): void {
    this.#isCreating = false;
  }

  #isCreating = true;

  async #create(): Promise<void> {
    for (let n = 0; this.#isCreating; n++) {
      const key = `${this.#tenant}-${n}`;
      const body = { tenant_id: this.#tenant, namespace: 'test', sequence_id: this.#sequence };
      const reply = await this.#ask((tenant) =>
        tenant.post('/instances', { ...body, idempotency_key: key }),
      );
      assert.equal(reply.status, 201, JSON.stringify(reply.body));
      this.#created.set(key, (reply.body as { id: string }).id);
      await pause(PAUSE_MS);
    }
  }

  async #work(worker: string): Promise<void> {
    while (!this.#isStopped) {
      const poll = { handler_name: HANDLER, worker_id: worker, limit: 5, wait_ms: POLL_MS };
      const polled = await this.#ask((tenant) => tenant.post('/workers/tasks/poll', poll));
      for (const task of (polled.body as { tasks?: WorkerTask[] }).tasks ??
        (polled.body as WorkerTask[])) {
        const { id, claim_epoch } = task;
        const result = { worker_id: worker, claim_epoch, output: { worker } };
        const done = await this.#ask((tenant) =>
          tenant.post(`/workers/tasks/${id}/complete`, result),
        );
        if (done.status < 300) this.#completed.set(id, (this.#completed.get(id) ?? 0) + 1);
      }
      await pause(PAUSE_MS);
    }
  }

  async #stateOf(id: string): Promise<string> {
    const reply = await this.#ask((tenant) => tenant.get(`/instances/${id}`));
    return reply.status === 200 ? (reply.body as TaskInstance).state : `answered ${reply.status}`;
  }

  /** In the cell that serves the tenant, wherever that is by now. */
  async #ask(
    ask: (tenant: ReturnType<TwoCells['tenant']>) => Promise<Reply<unknown>>,
  ): Promise<Reply<unknown>> {
    for (;;) {
      const cell = this.#home;
      let status = 0;
      try {
        const reply = await ask(this.#cells.tenant(cell, this.#tenant));
        if (reply.status !== 421 && reply.status !== 503) return reply;
        status = reply.status;
        this.turnedAway += 1;
      } catch {
        // Its engine is being killed.
      }
      if (status === 421) this.#home = cell === 'east' ? 'west' : 'east';
      await pause(20);
    }
  }
}
