/** A change of many instances, each by its own actor, and the count of its results per shard. */

import { type ChangeRefusal, REFUSALS_LISTED_MAX } from '../../schema/edits.js';
import { type InstanceState, isTerminal } from '../../schema/states.js';
import type { JsonValue } from '../../src/base/json.js';
import { TENANT_SUSPENDED } from '../runtime/commit.js';
import type { Effects, Room } from '../runtime/room.js';
import type { ChangeResult, Effect } from '../runtime/turn.js';

export interface Signal {
  readonly signalType: string;
  readonly payload: JsonValue;
  readonly traceparent?: string | undefined;
  /** The name of the sender's API key. */
  readonly by?: string | undefined;
  /** The groups for which the sender may answer approvals. Undefined: all. */
  readonly groups?: readonly string[] | undefined;
}

export type Change =
  | { readonly kind: 'state'; readonly state: InstanceState }
  /** Shifts the start of a scheduled instance. */
  | { readonly kind: 'reschedule'; readonly offsetMs: number }
  | { readonly kind: 'retry' }
  | ({ readonly kind: 'signal' } & Signal);

export interface ChangeCounts extends Readonly<Record<ChangeResult, number>> {
  readonly refusals?: readonly ChangeRefusal[];
}

export function firstRefusals(
  one: ChangeCounts,
  other: ChangeCounts,
): Pick<ChangeCounts, 'refusals'> {
  const refusals = [...(one.refusals ?? []), ...(other.refusals ?? [])].slice(
    0,
    REFUSALS_LISTED_MAX,
  );
  return refusals.length === 0 ? {} : { refusals };
}

/** The body of `instances.changeMany`, an internal request of the front thread. */
export interface ChangeMany {
  readonly ids: readonly string[];
  readonly change: Change;
  /** The bulk job, which counts each changed instance once. */
  readonly job?: string | undefined;
}

export function concerns(change: Change, state: InstanceState): boolean {
  switch (change.kind) {
    case 'reschedule':
      return state === 'scheduled';
    case 'retry':
      return state === 'failed';
    case 'state':
    case 'signal':
      return !isTerminal(state);
  }
}

/** Whether the change may retry the instance. A failed one may have been paused since. */
export function mayRetry(change: Change, state: InstanceState): boolean {
  if (state !== 'failed' && state !== 'paused') return false;
  if (change.kind === 'retry') return state === 'failed';
  if (change.kind === 'state') return change.state === 'scheduled' || change.state === 'running';
  return change.kind === 'signal' && change.signalType === 'resume' && state === 'paused';
}

interface Group {
  readonly request: number;
  readonly counts: Record<ChangeResult, number>;
  readonly refusals: ChangeRefusal[];
  open: number;
  /** The tenant is suspended, so that some instances were not checked. */
  isSuspended: boolean;
}

/** Counts the results of a group, and replies when all instances are settled. */
export class ChangeGroups implements Room {
  readonly #release: (effects: readonly Effect[]) => void;
  readonly #groups = new Map<number, Group>();
  #opened = 0;

  readonly effects = { changed: (effect) => this.count(effect) } satisfies Effects;

  constructor(release: (effects: readonly Effect[]) => void) {
    this.#release = release;
  }

  open(request: number, size: number): number {
    this.#opened += 1;
    this.#groups.set(this.#opened, {
      request,
      counts: { applied: 0, skipped: 0, failed: 0 },
      refusals: [],
      open: size,
      isSuspended: false,
    });
    return this.#opened;
  }

  count({ group: number, instance, result, error }: Extract<Effect, { kind: 'changed' }>): void {
    const group = this.#groups.get(number);
    if (group === undefined) return;
    if (result === 'suspended') group.isSuspended = true;
    else group.counts[result] += 1;
    if (result === 'failed' && error !== undefined && group.refusals.length < REFUSALS_LISTED_MAX) {
      group.refusals.push({ instance_id: instance, error });
    }
    group.open -= 1;
    if (group.open > 0) return;
    this.#groups.delete(number);
    const { request, counts, refusals, isSuspended } = group;
    const body = JSON.stringify({ ...counts, ...(refusals.length > 0 && { refusals }) });
    if (isSuspended) this.#release([{ kind: 'error', request, error: TENANT_SUSPENDED }]);
    else this.#release([{ kind: 'reply', request, status: 200, body }]);
  }
}
