/** Runs of a schedule on request. Those of one schedule are serialized, so that each sees the ones before. */

import type { ScheduleRun } from '../../schema/cron.js';
import { conflict, notFound } from '../../src/base/errors.js';
import { askedRunId, routeOf } from '../../src/base/ids.js';
import { owned } from '../../src/base/tenancy.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import { nameIn } from '../instance/record.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Service } from '../runtime/service.js';
import type { Turn } from '../runtime/turn.js';
import type { AskedRun, Cron } from './cron.js';
import { type FindRunDeps, findRun } from './find-run.js';
import { scheduleOf } from './loads.js';

export interface AskedRunsDeps extends FindRunDeps, Pick<Kernel, 'ids'> {
  readonly service: Service;
}

/** Sends a schedule work for its turn. */
type Tell = (id: string, request: number, take: (cron: Cron, turn: Turn) => void) => void;

export class AskedRuns {
  readonly #deps: AskedRunsDeps;
  readonly #tell: Tell;

  constructor(deps: AskedRunsDeps, tell: Tell) {
    this.#deps = deps;
    this.#tell = tell;
  }

  /** @param key idempotency key; an existing instance with this key is the answer */
  create(request: number, tenant: string, id: string, key: string | null): void {
    this.#deps.service.answer(request, 201, id, () => this.#create(tenant, id, key));
  }

  async #create(tenant: string, id: string, key: string | null): Promise<ScheduleRun> {
    const { ids, loader, service } = this.#deps;
    const run = key === null ? ids.next(routeOf(id)) : askedRunId(id, key);
    const idempotency_key = key === null ? null : `cron:${id}:run:${key}`;
    for (;;) {
      const [row, known] = await service.read(async () => [
        (await loader.schedules([id])).get(id),
        key === null ? undefined : (await loader.instances([run])).get(run),
      ]);
      const schedule = scheduleOf(owned(row, tenant, `cron schedule ${id}`));
      if (known !== undefined) return { id: run, deduplicated: true, instance_id: run };
      const { named, target, sequence, runs } = await findRun(this.#deps, schedule, run);
      if (sequence === undefined) {
        throw notFound(sequenceNotFound(schedule.sequence_id, nameIn(schedule), named));
      }
      const [earlier] = runs;
      const { overlap_policy: policy } = schedule;
      if (earlier !== undefined && (policy === 'skip' || policy === 'buffer_one')) {
        throw conflict(`instance ${earlier} of the schedule has not ended (${policy})`);
      }
      const asked = { id: run, idempotency_key, target, sequence };
      const created = await this.#tellRun(tenant, id, asked);
      if (created !== null) return created;
    }
  }

  /** Resolves with null when names or routes have changed since the lookup. */
  #tellRun(tenant: string, id: string, run: AskedRun): Promise<ScheduleRun | null> {
    const { internalRequests, schedule } = this.#deps;
    return new Promise((resolve, reject) => {
      const request = internalRequests.open((answer) => {
        if ('error' in answer) reject(answer.error);
        else resolve(JSON.parse(answer.body) as ScheduleRun | null);
      });
      schedule(() => this.#tell(id, request, (cron, turn) => cron.run(turn, request, tenant, run)));
    });
  }
}
