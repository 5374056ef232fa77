/** Part `paths`: processor time of the whole machine, log and flushes for an operation of each path. */

import { setTimeout as wait } from 'node:timers/promises';
import { startMeter } from '../base/cost.js';
import type { Figures } from '../base/report.js';
import { perSecond } from '../client/clock.js';
import { once } from '../client/loads.js';
import type { Bench, Job } from '../job.js';
import { BATCH_INSTANCES, batchesOf, PATHS, type Path } from './path-table.js';
import { openSides, type Side } from './sides.js';

/** Hints about new tasks may still be under way when the creations are answered. */
const SETTLE_MS = 200;

export const pathJobs: readonly Job[] = PATHS.map((path) => ({
  part: 'paths',
  name: path.name,
  asks: path.operation,
  prepare: async (bench) => {
    const postgres = await bench.postgres();
    // An automatic vacuum in one of the turns would be its largest cost.
    await postgres.setAutovacuum(false);
    const { sides, close } = await openSides(bench, `paths_${path.name}`, path.sequence);
    const paths = sides.map((side) => new PathSide(bench, path, side));
    return {
      contenders: paths.map((one) => ({ name: one.side.name, turn: (ms) => one.turn(ms) })),
      check: async () => {
        for (const one of paths) if (path.completes) await one.expectCompleted();
      },
      close: async () => {
        await close();
        await postgres.setAutovacuum(true);
      },
    };
  },
}));

/** One server under one path. */
class PathSide {
  readonly side: Side;
  readonly #bench: Bench;
  readonly #path: Path;
  /** Instances of the backlog that have been created. */
  #created = 0;
  /** Operations that were answered. */
  #done = 0;

  constructor(bench: Bench, path: Path, side: Side) {
    this.#bench = bench;
    this.#path = path;
    this.side = side;
  }

  async turn(ms: number): Promise<Figures> {
    const { server, roles, sequenceId, create } = this.side;
    const { backlog } = this.#bench.options;
    const { load, needsBacklog, operationsPerReply: each = 1 } = this.#path;
    if (needsBacklog) await this.#fill(backlog);
    await server.db.query('vacuum (analyze)');
    const stopMeter = await startMeter(await this.#bench.postgres(), server);
    const setting = { port: server.port, sequenceId, create, ms, backlog, first: this.#done };
    const result = await this.#bench.generator.run(load(setting));
    const operations = result.answered * each;
    const cost = await stopMeter(roles, operations);
    this.#done += operations;
    const { p50, p99 } = result.latency.request!;
    return { 'ops/s': perSecond(result) * each, 'p50 ms': p50, 'p99 ms': p99, ...cost };
  }

  /** @throws Error when fewer instances are completed than answers said so */
  async expectCompleted(): Promise<void> {
    const { rows } = await this.side.server.db.query<{ completed: number }>(
      `select count(*) as completed from instances where state = 'completed'`,
    );
    const { completed } = rows[0]!;
    if (completed >= this.#done) return;
    throw new Error(`${completed} instances are completed, not ${this.#done}`);
  }

  /** Creates what is missing of the backlog. */
  async #fill(backlog: number): Promise<void> {
    const missing = backlog - (this.#created - this.#done);
    if (missing <= 0) return;
    const { server, sequenceId } = this.side;
    const requests = batchesOf(sequenceId, missing, BATCH_INSTANCES, this.#created);
    await this.#bench.generator.run(once(server.port, requests));
    this.#created += missing;
    await wait(SETTLE_MS);
  }
}
