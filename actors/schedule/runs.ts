/** The lookup before a schedule creates an instance, by time or on request, and runs on request. */

import type { CronSchedule, ScheduleRun } from '../../schema/cron.js';
import type { InstanceCreated } from '../../schema/instance.js';
import { conflict, notFound, UNKNOWN_OUTCOME } from '../../src/base/errors.js';
import { askedRunId, routeOf } from '../../src/base/ids.js';
import { owned } from '../../src/base/tenancy.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import type { Names } from '../catalog/names.js';
import type { Plans } from '../catalog/plans.js';
import type { InstanceLoads } from '../instance/loads.js';
import type { InstanceMessage } from '../instance/messages.js';
import { type NewInstance, nameIn } from '../instance/record.js';
import type { Routing } from '../release/routing.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Service } from '../runtime/service.js';
import { aimOf, bodyOf, type Found, inputProblem, type RequestedRun, type Run } from './cron.js';
import { type ScheduleLoads, scheduleOf } from './loads.js';

export type ScheduleNeededLoads = ScheduleLoads & Pick<InstanceLoads, 'instances'>;

export interface RunsDeps extends Kernel<ScheduleNeededLoads> {
  readonly plans: Plans;
  readonly names: Names;
  readonly routing: Routing;
  /** Sends a message to an instance of this shard. */
  readonly sendToRun: (run: string, message: InstanceMessage) => void;
  /** Creates a run as a request would. */
  readonly create: (request: number, run: NewInstance) => void;
}

/**
 * If the policy cancels earlier runs, they are cancelled before this resolves. A run whose sequence collects creations
 * is collected before, whatever the policy is.
 */
export async function findRun(deps: RunsDeps, row: CronSchedule, run: Run): Promise<Found> {
  const { plans, names, loader } = deps;
  const name = nameIn(row);
  const named = name && (await names.load(name));
  const { target } = aimOf(deps, row, run.id);
  const known = target === '' ? undefined : await plans.load(target);
  if (known?.collecting !== undefined) {
    return { named, target, sequence: known, runs: [], ...(await collected(deps, row, run)) };
  }
  const [sequence, runs] = await Promise.all([
    known,
    row.overlap_policy === 'allow' ? [] : loader.activeRuns(row.id),
  ]);
  const isAccepted = sequence !== undefined && inputProblem(row, run.id, sequence) === null;
  if (row.overlap_policy === 'cancel_previous' && isAccepted) {
    await Promise.all(runs.map((earlier) => cancel(deps, earlier, row.tenant_id)));
  }
  return { named, target, sequence, runs };
}

/** The answer may be lost with a thread; the repeated creation has the same key. */
const ANSWER_MS_MAX = 30_000;

/** Rejects when the outcome is unknown. */
function collected(
  { clock, create, internalRequests, schedule }: RunsDeps,
  row: CronSchedule,
  run: Run,
): Promise<Pick<Found, 'collected' | 'refusal'>> {
  return new Promise((resolve, reject) => {
    const timeout = clock.setTimeout(() => reject(UNKNOWN_OUTCOME), ANSWER_MS_MAX);
    const request = internalRequests.open((answer) => {
      clock.clearTimeout(timeout);
      if (!('error' in answer)) resolve({ collected: JSON.parse(answer.body) as InstanceCreated });
      else if (answer.error.status < 500) resolve({ refusal: answer.error });
      else reject(answer.error);
    });
    schedule(() => create(request, { id: run.id, body: bodyOf(row, run) }));
  });
}

/** Resolves when the run has received the signal or has ended; rejects when that is unknown. */
function cancel(deps: RunsDeps, run: string, tenant: string): Promise<void> {
  const { schedule, sendToRun, internalRequests } = deps;
  const body = { signal_type: 'cancel' };
  const signal = { kind: 'signal', tenant, target: run, body, traceparent: undefined } as const;
  return new Promise((resolve, reject) => {
    const request = internalRequests.open((answer) => {
      // An ended or missing run needs no signal.
      if (!('error' in answer) || answer.error.status < 500) resolve();
      else reject(answer.error);
    });
    schedule(() => sendToRun(run, { ...signal, request }));
  });
}

export interface RequestedRunDeps extends RunsDeps {
  readonly service: Service;
  /** Sends the run to the actor of the schedule, which creates it and answers the internal request. */
  readonly send: (request: number, run: RequestedRun) => void;
}

/**
 * Creates a run on request. Requests of one schedule must be serialized, so that each sees the earlier runs.
 * @param key idempotency key; an existing instance with this key is returned
 */
export async function requestedRun(
  deps: RequestedRunDeps,
  tenant: string,
  id: string,
  key: string | null,
): Promise<ScheduleRun> {
  const { ids, loader, service } = deps;
  const run = key === null ? ids.next(routeOf(id)) : askedRunId(id, key);
  const idempotency_key = key === null ? null : `cron:${id}:run:${key}`;
  for (;;) {
    const [row, known] = await service.read(async () => [
      (await loader.schedules([id])).get(id),
      key === null ? undefined : (await loader.instances([run])).get(run),
    ]);
    const schedule = scheduleOf(owned(row, tenant, `cron schedule ${id}`));
    if (known !== undefined) return { id: run, deduplicated: true, instance_id: run };
    const found = await findRun(deps, schedule, { id: run, idempotency_key });
    if (found.refusal !== undefined) throw found.refusal;
    if (found.collected !== undefined) {
      return { ...found.collected, instance_id: found.collected.id };
    }
    const { named, target, sequence, runs } = found;
    if (sequence === undefined) {
      throw notFound(sequenceNotFound(schedule.sequence_id, nameIn(schedule), named));
    }
    const [earlier] = runs;
    const { overlap_policy: policy } = schedule;
    if (earlier !== undefined && (policy === 'skip' || policy === 'buffer_one')) {
      throw conflict(`instance ${earlier} of the schedule has not ended (${policy})`);
    }
    const created = await create(deps, { id: run, idempotency_key, target, sequence });
    if (created !== null) return created;
  }
}

/** Resolves with null when names or routes have changed since the lookup. */
function create({ internalRequests, schedule, send }: RequestedRunDeps, run: RequestedRun) {
  return new Promise<ScheduleRun | null>((resolve, reject) => {
    const request = internalRequests.open((answer) => {
      if ('error' in answer) reject(answer.error);
      else resolve(JSON.parse(answer.body) as ScheduleRun | null);
    });
    schedule(() => send(request, run));
  });
}
