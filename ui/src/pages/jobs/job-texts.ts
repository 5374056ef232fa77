/** What a bulk job does, and has done, in words. Pure. */

import type { BulkJob } from 'durable-workflow-engine-client';
import { countOf, formatCount, wordsOf } from '../../lib/format.ts';

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

/** Which instances, such as `the card was declined · order-fulfilment` or `1 selected instance`. */
export function scopeText({ request }: Pick<BulkJob, 'request'>): string {
  const filter = (request.filter ?? {}) as Readonly<Record<string, unknown>>;
  const { ids, states, failure_code, failure_reason, sequence_name } = filter;
  const selected = Array.isArray(ids) ? countOf(ids.length, 'selected instance') : undefined;
  const inStates = Array.isArray(states) ? states.join(' or ') : undefined;
  const what = failure_reason ?? failure_code ?? (selected ? undefined : inStates);
  return [what, sequence_name, selected].filter(Boolean).join(' · ');
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
