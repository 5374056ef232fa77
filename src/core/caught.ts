/** The error that a try_catch or a saga has caught: their lists see it, and context.data shows it to people. */

import type { CatchingRecord } from '../../schema/execution.js';
import { isJsonObject, type JsonObject, ownValue } from '../base/json.js';
import type { Evaluation } from './evaluation.js';
import type { NodePlace } from './plan-nodes.js';
import type { Snapshot } from './progress.js';

export const ERROR_KEY = '_error';

export function catchError(run: Evaluation, record: CatchingRecord, error: JsonObject): void {
  record.m = error;
  run.snapshot.data = { ...run.snapshot.data, [ERROR_KEY]: error };
  run.forgetScopes();
}

/** The block ended without a failure, so errors caught inside of it are handled, even those of a race's losers. */
export function clearError({ snapshot, plan }: Evaluation, { first, index, end }: NodePlace): void {
  const block = caughtBy(snapshot.data);
  const place = block === undefined ? -1 : (plan.indexOf.get(block) ?? -1) - first;
  if (place >= 0 && place < end - index) dropError(snapshot);
}

/** The whole instance was completed by request, so no error is left to handle. */
export function clearErrors({ snapshot }: Evaluation): void {
  if (caughtBy(snapshot.data) !== undefined) dropError(snapshot);
}

function dropError(snapshot: Snapshot): void {
  const { [ERROR_KEY]: _over, ...rest } = snapshot.data;
  snapshot.data = rest;
}

/** The block whose error the data shows; undefined when it shows no caught error. */
export function caughtBy(data: JsonObject): string | undefined {
  const error = ownValue(data, ERROR_KEY);
  if (error === undefined || !isJsonObject(error)) return undefined;
  const { source, block_id: block } = error;
  const isCaught = source === 'try_catch' || source === 'saga';
  return isCaught && typeof block === 'string' ? block : undefined;
}
