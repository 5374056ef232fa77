/** What the caller may do. The dashboard offers no action that the server would refuse (docs/authorization.md). */

import type { WhoAmI } from 'durable-workflow-engine-client';

export interface Allowed {
  /** Change instances, schedules, webhooks, limits and credentials of the tenant. */
  readonly operate: boolean;
  /** Start instances and send signals. */
  readonly start: boolean;
  /** Publish sequences and manage releases. */
  readonly publish: boolean;
  readonly approve: boolean;
  /** Read all data of the tenant. */
  readonly readAll: boolean;
  readonly readSequences: boolean;
  /** Let tasks be delivered with secrets. */
  readonly useSecrets: boolean;
  /** Manage keys, tenants and their limits: only the root key may. */
  readonly administer: boolean;
}

export function allowedOf(who: Pick<WhoAmI, 'is_root' | 'capabilities'>): Allowed {
  const has = (...wanted: string[]) =>
    who.is_root || wanted.some((word) => (who.capabilities as readonly string[]).includes(word));
  return {
    operate: has('operator'),
    start: has('operator', 'starter'),
    publish: has('operator', 'publisher'),
    approve: has('operator', 'approver'),
    readAll: has('operator', 'auditor'),
    readSequences: has('operator', 'auditor', 'publisher', 'starter'),
    useSecrets: has('secrets'),
    administer: who.is_root,
  };
}

/** @param approvers the groups whose members may answer the approval; none: every approver */
export function mayAnswer(
  who: Pick<WhoAmI, 'is_root' | 'capabilities' | 'key'>,
  approvers: readonly string[],
): boolean {
  const { approve, operate } = allowedOf(who);
  const groups = who.key?.groups ?? [];
  const isApprover = approvers.length === 0 || approvers.some((group) => groups.includes(group));
  return operate || (approve && isApprover);
}
