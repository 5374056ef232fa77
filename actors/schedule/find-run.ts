/**
 * The lookup before a schedule creates an instance, by time or on request: its target, whether the input is valid
 * there, and the earlier runs that the policy concerns.
 */

import type { CronSchedule } from '../../schema/cron.js';
import type { Names } from '../catalog/names.js';
import type { Plans } from '../catalog/plans.js';
import type { InstanceLoads } from '../instance/loads.js';
import type { InstanceMessage } from '../instance/messages.js';
import { nameIn } from '../instance/record.js';
import type { Routing } from '../release/routing.js';
import type { HostDeps } from '../runtime/host.js';
import type { InternalRequests } from '../runtime/internal-requests.js';
import type { Kernel } from '../runtime/kernel.js';
import { aimOf, type Found } from './cron.js';
import type { ScheduleLoads } from './loads.js';

export type ScheduleNeededLoads = ScheduleLoads & Pick<InstanceLoads, 'instances'>;

export interface FindRunDeps
  extends Pick<HostDeps, 'schedule'>,
    Pick<Kernel<ScheduleNeededLoads>, 'loader'> {
  readonly plans: Plans;
  readonly names: Names;
  readonly routing: Routing;
  readonly internalRequests: InternalRequests;
  /** Sends a message to an instance of this shard. */
  readonly tellRun: (run: string, message: InstanceMessage) => void;
}

/**
 * Under a policy that cancels earlier runs, these are cancelled when this resolves.
 *
 * @param run the instance to be created
 */
export async function findRun(deps: FindRunDeps, row: CronSchedule, run: string): Promise<Found> {
  const needsRuns = row.overlap_policy !== 'allow';
  const { plans, names, loader } = deps;
  const name = nameIn(row);
  const named = name && (await names.load(name));
  const { target } = aimOf(deps, row, run);
  const [sequence, runs] = await Promise.all([
    target === '' ? undefined : plans.load(target),
    needsRuns ? loader.activeRuns(row.id) : [],
  ]);
  const isAccepted =
    sequence !== undefined && sequence.checkInput?.(row.context.data) === undefined;
  if (row.overlap_policy === 'cancel_previous' && isAccepted) {
    await Promise.all(runs.map((earlier) => cancel(deps, earlier, row.tenant_id)));
  }
  return { named, target, sequence, runs };
}

/** Resolves when the run has the signal or has ended; rejects when that is unknown. */
function cancel(deps: FindRunDeps, run: string, tenant: string): Promise<void> {
  const { schedule, tellRun, internalRequests } = deps;
  const body = { signal_type: 'cancel' };
  const signal = { kind: 'signal', tenant, target: run, body, traceparent: undefined } as const;
  return new Promise((resolve, reject) => {
    const request = internalRequests.open((answer) => {
      // An ended or missing run needs no signal.
      if (!('error' in answer) || answer.error.status < 500) resolve();
      else reject(answer.error);
    });
    schedule(() => tellRun(run, { ...signal, request }));
  });
}
