/** A herd: instances of one step that all fall due within one second, and how late each of them went on. */

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { createBody } from '../fixtures.js';
import { postRequest } from './requests.js';
import { type Latency, Samples } from './samples.js';

const HERD_SECOND_MS = 1_000;
const PER_BATCH = 500;
const PATIENCE_MS = 60_000;
const LOOK_MS = 500;

export interface Herd {
  readonly sequence: string;
  readonly size: number;
  /** When the first of them is due. */
  readonly dueAt: number;
}

/** Requests that create the instances of the herd, evenly due within a second; each has its number as metadata. */
export function herdBatches(herd: Herd): readonly string[] {
  const { sequence, size } = herd;
  const one = (n: number) => ({
    ...createBody(sequence),
    metadata: { n },
    next_fire_at: new Date(dueOf(herd, n)).toISOString(),
  });
  const requests: string[] = [];
  for (let from = 0; from < size; from += PER_BATCH) {
    const length = Math.min(PER_BATCH, size - from);
    const instances = Array.from({ length }, (_, at) => one(from + at));
    requests.push(postRequest('/instances/batch', JSON.stringify({ instances })));
  }
  return requests;
}

/** Moves the herd, of which nothing may be in memory, so that the first of it is due then. */
export async function moveHerd(
  db: pg.Client,
  { sequence, size, dueAt }: Herd,
  to: number,
): Promise<Herd> {
  const moved = `+ $2::float8 * interval '1 ms'`;
  await db.query(
    `with moved as (update instances set next_fire_at = next_fire_at ${moved}
       where sequence_id = $1::uuid returning id)
     update timers set fire_at = fire_at ${moved} where instance_id in (select id from moved)`,
    [sequence, to - dueAt],
  );
  return { sequence, size, dueAt: to };
}

/**
 * From the time of each to when its end was decided, both by the clock of the engine; resolves when all have ended.
 * @throws Error when some have not after a minute
 */
export async function latenessOf(db: pg.Client, herd: Herd): Promise<Latency> {
  const giveUpAt = herd.dueAt + HERD_SECOND_MS + PATIENCE_MS;
  await pause(Math.max(0, herd.dueAt + HERD_SECOND_MS - Date.now()));
  for (;;) {
    await pause(LOOK_MS);
    const { rows: open } = await db.query(
      `select from instances where sequence_id = $1::uuid and state <> 'completed' limit 1`,
      [herd.sequence],
    );
    if (open.length === 0) break;
    if (Date.now() > giveUpAt) throw new Error(`of ${herd.size} timers some have not fired`);
  }
  const { rows } = await db.query<{ n: number; at: number }>(
    `select (metadata->>'n')::int as n, (extract(epoch from updated_at) * 1000)::float8 as at
     from instances where sequence_id = $1::uuid`,
    [herd.sequence],
  );
  if (rows.length !== herd.size) throw new Error(`${rows.length} of ${herd.size} timers are there`);
  const samples = new Samples();
  for (const { n, at } of rows) samples.add(Math.max(0, at - dueOf(herd, n)));
  return samples.summary();
}

function dueOf({ size, dueAt }: Herd, n: number): number {
  return dueAt + Math.floor((n * HERD_SECOND_MS) / size);
}
