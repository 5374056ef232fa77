/** Where an action leads, and how it is undone. Pure. */

import type { Action } from 'durable-workflow-engine-client';

type Pages = Readonly<Record<string, string>>;

/** Their objects have pages of their own. */
const OWN_PAGES: Pages = {
  sequence: '/sequences',
  instance: '/instances',
  release: '/releases',
  cron_schedule: '/schedules',
};

/** Their objects are listed there. */
const LISTS: Pages = {
  bulk_job: '/jobs',
  pending_start: '/pending-starts',
  credential: '/keys',
  api_key: '/keys',
  trigger: '/triggers',
  webhook: '/webhooks',
  webhook_delivery: '/webhooks/outbox',
  rate_limit: '/limits',
  tenant_limits: '/limits',
  worker_endpoint: '/workers/endpoints',
};

/** The address of the object; undefined: it has none, or is gone. */
export function placeOf({ kind, target, name, operation, instance_id }: Action) {
  if (/\.(delete|unsubscribe)$/.test(operation)) return undefined;
  if (kind === 'approval') return instance_id === null ? undefined : `/instances/${instance_id}`;
  const page = OWN_PAGES[kind];
  if (page === undefined) return LISTS[kind];
  return name === null ? undefined : `${page}/${target}`;
}

export interface Undoing {
  readonly of: 'instance' | 'schedule' | 'trigger' | 'credential';
  /** Whether the object is to be paused or disabled, else resumed or enabled. */
  readonly stops: boolean;
  /** Of the button. */
  readonly label: 'Pause' | 'Resume' | 'Disable' | 'Enable';
}

const SWITCHES: Readonly<Record<string, Undoing['of']>> = {
  'cron.update': 'schedule',
  'triggers.update': 'trigger',
  'credentials.update': 'credential',
};

/** Undefined: there is no operation that undoes it. */
export function undoingOf({ operation, details }: Action): Undoing | undefined {
  const of = SWITCHES[operation];
  if (of !== undefined) {
    const { enabled } = details;
    if (typeof enabled !== 'boolean') return undefined;
    return { of, stops: enabled, label: enabled ? 'Disable' : 'Enable' };
  }
  if (details.signal_type === 'pause' || details.state === 'paused') {
    return isOfOne(operation) ? { of: 'instance', stops: false, label: 'Resume' } : undefined;
  }
  return details.signal_type === 'resume' && isOfOne(operation)
    ? { of: 'instance', stops: true, label: 'Pause' }
    : undefined;
}

const isOfOne = (operation: string) =>
  operation === 'instances.signal' || operation === 'instances.patchState';
