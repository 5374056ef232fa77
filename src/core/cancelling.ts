/** The note in `runtime` that a cancelled or timed-out instance still runs protected work. */

import type { Cancelling } from '../../schema/instance.js';
import type { JsonObject } from '../base/json.js';
import { isoTime } from '../base/time.js';
import type { Evaluation } from './evaluation.js';
import type { PlanNode } from './plan-nodes.js';
import type { Snapshot } from './progress.js';

/** `explain` shows all blocks. */
const BLOCKS_MAX = 20;

/** Updates the note after every event, since the open blocks change. The request is audited once. */
export function noteCancelling(run: Evaluation, open: readonly PlanNode[]): void {
  const { execution, env } = run;
  const { runtime } = run.snapshot;
  const before = cancellingIn(runtime);
  const reason = execution.y?.code === 'instance_timeout' ? 'timeout' : 'cancel';
  const waiting_for = [...new Set(open.map(({ id }) => id))].slice(0, BLOCKS_MAX);
  runtime.cancelling = { since: before?.since ?? isoTime(env.now), reason, waiting_for };
  if (before?.reason === reason) return;
  run.progress.audit.push({ eventType: 'cancelling', details: { reason, waiting_for } });
}

export function forgetCancelling({ runtime }: Snapshot): void {
  if (runtime.cancelling !== undefined) delete runtime.cancelling;
}

/** The section without the note, as on the wire. */
export function shownRuntime(runtime: JsonObject): JsonObject {
  if (runtime.cancelling === undefined) return runtime;
  const { cancelling: _, ...shown } = runtime;
  return shown;
}

export function cancellingIn(runtime: JsonObject): Cancelling | undefined {
  return runtime.cancelling as Cancelling | undefined;
}
