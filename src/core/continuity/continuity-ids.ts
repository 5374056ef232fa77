/**
 * Ids that follow from what they name, so that they need not be stored to be found again. Like every
 * id of an instance's rows they end in its routing bits, which lead to the thread that owns it.
 */

import { canonicalSha256 } from './canonical-json.js';
import type { EffectPlace } from './effects.js';

/** The execution that an instance has before anybody creates one (05 §1). */
export function implicitContinuityId(tenantId: string, instanceId: string): string {
  return derivedId(['continuity', tenantId, instanceId], instanceId);
}

/**
 * The receipt of a step that the engine runs itself (05 §3).
 *
 * @param iteration where in the loops around it the step is run; empty outside of loops
 */
export function inProcessEffectId(place: EffectPlace, iteration: string): string {
  const { continuity_id, epoch, instance_id, block_id, attempt } = place;
  const named = ['effect', continuity_id, epoch, instance_id, block_id, attempt, iteration];
  return derivedId(named, instance_id);
}

/** UUIDv8: digits of a hash but for version, variant and the routing bits. */
function derivedId(named: readonly (string | number)[], instanceId: string): string {
  const hex = canonicalSha256(named);
  const variant = '89ab'.charAt(Number.parseInt(hex.charAt(16), 16) & 3);
  return (
    `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}` +
    `-${variant}${hex.slice(17, 20)}-${hex.slice(20, 28)}${instanceId.slice(-4)}`
  );
}
