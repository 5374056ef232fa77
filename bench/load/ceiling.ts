/**
 * The ceiling that a server is compared with: the writer's own statements, fence included, sent
 * by a bare script on the same Postgres, with the rows of the server's creations in batches of the
 * size that the server had. While one batch is being committed the next one is made ready, so that
 * each connection always has a transaction in flight.
 */

import { performance } from 'node:perf_hooks';
import { bodyCommands, readUnit } from '../../src/db/batch.js';
import { migrate } from '../../src/db/migrate.js';
import { createClient } from '../../src/db/pool.js';
import { FENCE } from '../../src/db/statements.js';
import { type Command, WriterSession } from '../../src/db/writer-session.js';
import { benchIds } from '../fixtures.js';
import { connect } from './postgres.js';
import { type Latency, Samples } from './samples.js';
import type { UnitTemplate } from './unit-template.js';

const EPOCH = 1;

export interface CeilingRun {
  readonly units: number;
  readonly ms: number;
  readonly flushes: number;
  /** Of one transaction, in milliseconds. */
  readonly flush: Latency;
}

interface CeilingLane {
  readonly index: number;
  readonly session: WriterSession;
  /** The number of the last flush. */
  batch: number;
}

export class Ceiling {
  readonly #lanes: readonly CeilingLane[];
  readonly #ids = benchIds();

  private constructor(lanes: readonly CeilingLane[]) {
    this.#lanes = lanes;
  }

  /** Migrates the database. @param lanes connections, as many as the server's writer has */
  static async open(connectionString: string, lanes: number): Promise<Ceiling> {
    await migrate(connectionString);
    const db = await connect(connectionString);
    await db.query(
      `insert into lanes (lane, epoch) select generate_series(0, $1::int - 1), $2::bigint
       on conflict (lane) do update set epoch = excluded.epoch`,
      [lanes, EPOCH],
    );
    await db.end();
    const open = async (_: unknown, index: number): Promise<CeilingLane> => {
      const client = createClient({ connectionString, applicationName: 'bench ceiling' });
      const session = await WriterSession.open(client, () => undefined);
      return { index, session, batch: (await session.readLane(index))?.batch ?? 0 };
    };
    return new Ceiling(await Promise.all(Array.from({ length: lanes }, open)));
  }

  /**
   * @param unitsPerFlush need not be whole: sizes alternate so that their mean is this
   * @throws Error when a flush fails
   */
  async run(
    template: UnitTemplate,
    unitsPerFlush: number,
    limit: { readonly ms: number } | { readonly flushes: number },
  ): Promise<CeilingRun> {
    const samples = new Samples();
    const startedAt = performance.now();
    const endsAt = 'ms' in limit ? startedAt + limit.ms : Number.POSITIVE_INFINITY;
    let left = 'flushes' in limit ? limit.flushes : Number.POSITIVE_INFINITY;
    let units = 0;
    let owed = 0;
    const nextSize = () => {
      owed += unitsPerFlush;
      const size = Math.max(1, Math.round(owed));
      owed -= size;
      return size;
    };
    const work = async (lane: CeilingLane) => {
      let size = nextSize();
      let rows = this.#rows(template, size);
      while (performance.now() < endsAt && left > 0) {
        left -= 1;
        const sentAt = performance.now();
        const flushed = this.#flush(lane, rows);
        const sentSize = size;
        if (left > 0) {
          size = nextSize();
          rows = this.#rows(template, size);
        }
        const doneAt = await flushed;
        samples.add(doneAt - sentAt);
        units += sentSize;
      }
    };
    await Promise.all(this.#lanes.map(work));
    const flush = samples.summary();
    return { units, ms: performance.now() - startedAt, flushes: flush.count, flush };
  }

  close(): void {
    for (const { session } of this.#lanes) session.destroy();
  }

  #rows(template: UnitTemplate, size: number): readonly Command[] {
    const mutations = template.render(size, this.#ids, new Date(Date.now()).toISOString());
    const unit = {
      seq: 0,
      actor: '',
      incarnation: 0,
      gate: 'none',
      mutations,
      counts: [],
    } as const;
    return bodyCommands([readUnit(unit)]);
  }

  /** Resolves with the time at which the commit was answered. */
  async #flush(lane: CeilingLane, rows: readonly Command[]): Promise<number> {
    lane.batch += 1;
    const answer = await lane.session.exchange([
      { statement: FENCE, values: [String(lane.index), String(EPOCH), String(lane.batch)] },
      ...rows,
    ]);
    if (answer.kind !== 'done') throw new Error(`the ceiling's flush failed: ${answer.message}`);
    return performance.now();
  }
}
