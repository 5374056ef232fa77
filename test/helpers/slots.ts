/**
 * Instances under one concurrency key, and who of them held a slot when: as long as
 * it was running or waiting. That is read off the audits, so that nothing between two looks is missed.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { AuditEntry } from '../../schema/instance.js';
import { eventually, type Json, newHandler, type SharedApi, step, type Tenant } from './api.js';
import { expectStatus } from './client.js';

/** From when to when an instance was running or waiting, in Unix ms; one that still is has no end. */
export type Span = { readonly instance: string; readonly from: number; readonly to: number };

/** The audit shows no more; an instance with as many has spans that nobody sees. */
const AUDIT_ENTRIES_MAX = 200;

const HOLDING: ReadonlySet<string | undefined> = new Set(['running', 'waiting']);

/** What a creation says to get under a key: a new one unless it is named. */
export function underKey(max: number, key = `key-${randomUUID()}`): Json {
  return { concurrency_key: key, max_concurrency: max };
}

/** In the order in which they began. */
export async function spansOf(tenant: Tenant, ids: readonly string[]): Promise<Span[]> {
  const spans: Span[] = [];
  // One after the other: long reads of one tenant side by side are refused while others ask.
  for (const id of ids) {
    const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
    assert.ok(audit.length < AUDIT_ENTRIES_MAX, `the audit of ${id} may be cut`);
    spans.push(...spansOfOne(id, audit.reverse()));
  }
  return spans.sort((a, b) => a.from - b.from);
}

/** @param audit oldest first */
function spansOfOne(instance: string, audit: readonly AuditEntry[]): Span[] {
  const spans: Span[] = [];
  let from: number | undefined;
  for (const { event_type, to_state, created_at } of audit) {
    if (event_type !== 'state_transition') continue;
    const at = Date.parse(created_at);
    if (HOLDING.has(to_state)) from ??= at;
    else if (from !== undefined) {
      spans.push({ instance, from, to: at });
      from = undefined;
    }
  }
  if (from !== undefined) spans.push({ instance, from, to: Number.POSITIVE_INFINITY });
  return spans;
}

/** The most at any time. Who begins in the millisecond in which another one ends comes after it. */
export function peakOf(spans: readonly Span[]): number {
  const changes = spans
    .filter(({ from, to }) => from < to)
    .flatMap(({ from, to }) => [
      { at: from, by: 1 },
      { at: to, by: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.by - b.by);
  let now = 0;
  let peak = 0;
  for (const { by } of changes) {
    now += by;
    peak = Math.max(peak, now);
  }
  return peak;
}

/** Checks that there were never more than `max` at the same time. */
export async function assertNeverMore(
  max: number,
  tenant: Tenant,
  ids: readonly string[],
): Promise<void> {
  const peak = peakOf(await spansOf(tenant, ids));
  assert.ok(peak <= max, `${peak} at the same time, and ${max} allowed`);
}

// ---------------------------------------------------------------- instances under one key

/** Instances of one sequence under one key, of a tenant of their own. */
export interface Line {
  readonly tenant: Tenant;
  /** Names the external steps of the sequence. */
  readonly handler: string;
  readonly sequence: string;
  readonly key: Json;
  /** Those that were added. */
  readonly ids: readonly string[];
  add(more?: Json): Promise<string>;
  /** Completes the next task of a worker; resolves with the instance. */
  serve(): Promise<string>;
}

export type Blocks = (handler: string) => Json[];

export const oneTask: Blocks = (handler) => [step('a', handler)];

export async function lineOf(api: SharedApi, max: number, blocks = oneTask): Promise<Line> {
  const tenant = api.tenant();
  const handler = newHandler();
  const sequence = await tenant.sequence(blocks(handler));
  const key = underKey(max);
  const ids: string[] = [];
  return {
    tenant,
    handler,
    sequence,
    key,
    ids,
    add: async (more = {}) => {
      const metadata = { mark: randomUUID() };
      const id = await tenant.create(sequence, { ...key, metadata, ...more });
      ids.push(id);
      return id;
    },
    serve: async () => {
      const task = await tenant.task(handler);
      await tenant.complete(task);
      return task.instance_id;
    },
  };
}

export interface Pair extends Line {
  /** Has the only slot. */
  readonly holder: string;
  /** Waits for it. */
  readonly next: string;
}

/** @param state in which the blocks leave the one that has the slot */
export async function pairOf(
  api: SharedApi,
  state: 'waiting' | 'running',
  blocks = oneTask,
): Promise<Pair> {
  const line = await lineOf(api, 1, blocks);
  const holder = await line.add();
  await line.tenant.until(holder, state);
  const next = await line.add();
  assert.equal((await line.tenant.instance(next)).state, 'scheduled');
  return { ...line, holder, next };
}

const HANDOVERS = 5;

/** Slots of another key change hands: whatever was to follow from before has had its time. */
export async function aWhile(api: SharedApi): Promise<void> {
  const { add, serve } = await lineOf(api, 1);
  for (let index = 0; index < HANDOVERS; index++) await add();
  for (let index = 0; index < HANDOVERS; index++) await serve();
}

/** A bulk change that matches this one instance. */
export async function moveInBulk({ tenant }: Line, id: string, state: string): Promise<void> {
  const mark = (await tenant.instance(id)).metadata;
  assert.ok('mark' in mark);
  const body = { filter: { metadata: mark }, state };
  const reply = await tenant.patch<{ count: number }>('/instances/bulk/state', body);
  assert.equal(expectStatus(reply, 200).count, 1);
}

export async function untilAll(
  tenant: Tenant,
  ids: readonly string[],
  state: string,
): Promise<void> {
  for (const id of ids) {
    await eventually(async () => assert.equal((await tenant.instance(id)).state, state));
  }
}
