/** What a bulk job does, and has done, in words. Pure. */

import type { BulkJob } from 'durable-workflow-engine-client';
import { formatCount, wordsOf } from '../../lib/format.ts';

/** Such as `Retry, 60 per minute` or `Count for a retry`. */
export function changeText({ operation, request }: BulkJob): string {
  const { action, state, per_minute, dry_run } = request as Readonly<Record<string, unknown>>;
  const change =
    operation === 'batch_action'
      ? wordsOf(String(action))
      : operation === 'state'
        ? `Set to ${state}`
        : 'Reschedule';
  if (dry_run === true) return `${change} (count only)`;
  return typeof per_minute === 'number'
    ? `${change}, ${formatCount(per_minute)} per minute`
    : change;
}

/** Such as `12 changed, 3 skipped`. */
export function resultText({ applied, skipped, failed, request }: BulkJob): string {
  const parts = [
    `${formatCount(applied)} ${request.dry_run === true ? 'to change' : 'changed'}`,
    skipped > 0 && `${formatCount(skipped)} skipped`,
    failed > 0 && `${formatCount(failed)} refused`,
  ];
  return parts.filter(Boolean).join(', ');
}
