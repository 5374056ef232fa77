/**
 * What a shard's log tells of instances: that one has failed, and that a step logged something. What
 * it logged, and why an instance failed, may be anybody's data: both are kept with the instance and
 * are not repeated here.
 */

import { LineLimit, type Logger } from '../../src/base/log.js';
import type { AuditEvent } from '../../src/core/progress.js';
import type { Effect } from '../runtime/turn.js';
import type { InstanceRecord } from './record.js';

export type LineEffect = Extract<Effect, { kind: 'log' | 'failed' }>;

/** A sequence that always fails must not fill the disk. */
const FAILURES_PER_SECOND = 10;

/** Where an instance failed that is failed now; a request that failed it names no block. */
export function failedEffect(record: InstanceRecord, audit: readonly AuditEvent[]): LineEffect {
  const last = audit.findLast(
    ({ eventType }) => eventType === 'step_failed' || eventType === 'block_failed',
  );
  return {
    kind: 'failed',
    instance: record.id,
    tenant: record.tenant_id,
    sequence: record.sequence_id,
    blockId: last?.blockId,
    cause: last?.eventType ?? 'stopped',
  };
}

/** @param monotonic milliseconds from an arbitrary origin */
export function instanceLines(log: Logger, monotonic: () => number): (effect: LineEffect) => void {
  const failures = new LineLimit(FAILURES_PER_SECOND);
  return (effect) => {
    const { instance: instanceId, blockId } = effect;
    if (effect.kind === 'log') {
      log.debug({ instanceId, blockId, stepLevel: effect.level }, 'step log');
      return;
    }
    const more = failures.admit(monotonic());
    if (more === undefined) return;
    const { tenant: tenantId, sequence: sequenceId, cause } = effect;
    log.warn({ instanceId, tenantId, sequenceId, blockId, cause, ...more }, 'instance failed');
  };
}
