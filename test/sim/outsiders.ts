/**
 * Those outside, once nothing goes wrong any more: they answer whatever question is open, send what is
 * waited for, and let children go on that somebody stopped, so that everything can end.
 */

import type { InstanceState } from '../../schema/states.js';
import { isEnded } from '../../schema/states.js';
import type { Row } from './memory-tables.js';
import type { Parts } from './parts.js';
import { openSteps } from './watcher.js';

type OutsidersDeps = Pick<Parts, 'world' | 'tables' | 'insist'>;

/** How soon they do the same once more, when nothing came of it. */
const AGAIN_MS = 10_000;

export class Outsiders {
  readonly #deps: OutsidersDeps;
  readonly #asked = new Map<string, number>();
  #number = 0;

  constructor(deps: OutsidersDeps) {
    this.#deps = deps;
  }

  async attend(): Promise<void> {
    const { tables } = this.#deps;
    for (const [id, row] of [...tables.rows('approvals')]) {
      if (row.outcome === null && this.#isTime(id)) await this.#answer(id, row);
    }
    for (const [id, row] of [...tables.rows('instances')]) {
      if (isEnded(row.state as InstanceState)) continue;
      await this.#send(row);
      const isChild = row.parent_instance_id !== null;
      if (isChild && isStopped(row) && this.#isTime(id)) await this.#goOn(id, row);
    }
  }

  #isTime(name: string): boolean {
    const { now } = this.#deps.world;
    if ((this.#asked.get(name) ?? 0) > now) return false;
    this.#asked.set(name, now + AGAIN_MS);
    return true;
  }

  async #answer(id: string, { tenant_id, instance_id }: Row): Promise<void> {
    const given = { value: 'yes', comment: null, answerId: `last ${id}`, by: 'somebody' };
    const call = ['instances.answer', String(tenant_id), String(instance_id)] as const;
    await this.#deps.insist([200, 404, 409], ...call, { approval: id, given });
  }

  /** One that is kept reaches the wait by itself, or the run does not come to rest. */
  async #send({ id, tenant_id }: Row): Promise<void> {
    const { tables, insist } = this.#deps;
    for (const { p, v } of openSteps(tables.row('instances', String(id)) ?? {})) {
      const wait = v?.i;
      if (p !== 'event' || v === undefined || wait === undefined || !this.#isTime(wait)) continue;
      const { key_id } = tables.row('event_waits', `${id}/${wait}`) ?? {};
      const kept = [...tables.rows('events').values()].some(
        (event) => event.key_id === key_id && event.status === 'pending',
      );
      if (kept) continue;
      this.#number += 1;
      const token = `last_${this.#number}`;
      const key = v.k === undefined ? {} : { correlation_key: v.k };
      const event = { event_name: v.n, producer_event_id: token, payload: { token }, ...key };
      await insist([200, 201], 'events.send', String(tenant_id), '', event);
    }
  }

  async #goOn(id: string, { tenant_id, parent_instance_id }: Row): Promise<void> {
    const { tables, insist } = this.#deps;
    const parent = tables.row('instances', String(parent_instance_id));
    if (parent?.state === 'paused') return;
    const body = { state: 'scheduled' };
    await insist([200, 400, 404], 'instances.patchState', String(tenant_id), id, body);
  }
}

/** By request: it is paused, or waits for a signal or for somebody to schedule it. */
export function isStopped(row: Row): boolean {
  return row.state === 'paused' || isParked(row);
}

/** It waits for a signal, or for somebody to schedule it. */
export function isParked({ state, execution }: Row): boolean {
  return state === 'waiting' && (execution as { p?: number } | null)?.p === 1;
}
