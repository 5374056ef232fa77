/**
 * Watches concurrency keys and rate limits: at every committed state no more instances of a key run
 * or wait than its limit allows, and within no window more tries begin than the rate limit allows.
 */

import { limitFor } from '../../src/core/rate-patterns.js';
import { entryOf } from '../helpers/entry.js';
import { RATE_KEY } from './clients.js';
import type { Change, Row } from './memory-tables.js';
import { RATE_TEMPLATE } from './shapes.js';
import { Violation } from './violation.js';
import { Watcher } from './watcher.js';

/** A rate limit since a commit; `max` is undefined when there is none. */
interface Rule {
  readonly since: number;
  readonly max: number | undefined;
  readonly windowMs: number;
}

interface Throttle {
  readonly key?: string;
  readonly limit: number;
  readonly per_ms: number;
}

function startOf(row: Row | undefined): number | undefined {
  const { t } = (row?.execution ?? {}) as { t?: number | null };
  return t ?? undefined;
}

/** So long after a change, tries may begin that were let through before it. */
const CHANGE_MS = 3_000;

export class LimitsObserver extends Watcher {
  /** Tenant and key → instances that run or wait. */
  readonly #active = new Map<string, Set<string>>();
  readonly #permits = new Map<string, Set<string>>();
  /** Sequence and key of its throttle → times at which instances began. */
  readonly #starts = new Map<string, number[]>();
  readonly #toCheck = new Set<string>();
  readonly #permitted = new Set<string>();
  /** Tenant → times at which limited tries began, in order. */
  readonly #begun = new Map<string, number[]>();
  readonly #rules = new Map<string, Rule>();
  /** Sequence → its steps that are under the rate limit. */
  readonly #limited = new Map<string, ReadonlySet<string>>();

  instance({ key, before, after }: Change): void {
    const row = (after ?? before)!;
    this.#started(key, before, after);
    if (row.concurrency_key === null || row.max_concurrency === null) return;
    const name = `${row.tenant_id}: ${row.concurrency_key}`;
    const isActive = after?.state === 'running' || after?.state === 'waiting';
    const active = entryOf(this.#active, name, newSet);
    if (isActive) active.add(key);
    else active.delete(key);
    this.#toCheck.add(name);
  }

  /** An instance of a throttled sequence has begun. @throws Violation */
  #started(id: string, before: Row | undefined, after: Row | undefined): void {
    const at = startOf(after);
    if (after === undefined || at === undefined || startOf(before) !== undefined) return;
    const sequence = this.tables.row('sequences', String(after.sequence_id));
    const { throttle } = (sequence?.definition ?? {}) as { throttle?: Throttle };
    if (throttle === undefined) return;
    const lane = throttle.key === undefined ? '' : (after.data as { lane?: string }).lane;
    const times = entryOf(this.#starts, `${after.sequence_id} ${lane}`, (): number[] => []);
    times.push(at);
    for (const end of times) {
      const within = times.filter((time) => time > end - throttle.per_ms && time <= end);
      if (within.length > throttle.limit) {
        const what = `${within.length} instances began within ${throttle.per_ms} ms`;
        throw new Violation(`${what}, not ${throttle.limit}`, id);
      }
    }
  }

  permit({ key, before, after }: Change): void {
    this.#holder(key, (after ?? before)!, after !== undefined);
  }

  /** A request may be the slot. */
  request({ key, before, after }: Change): void {
    if (after?.has_slot !== true && before?.has_slot !== true) return;
    this.#holder(key, (after ?? before)!, after?.has_slot === true);
  }

  #holder(instance: string, { key_id }: Row, holds: boolean): void {
    const holders = entryOf(this.#permits, String(key_id), newSet);
    if (holds) holders.add(instance);
    else holders.delete(instance);
    if (holds) this.#permitted.add(String(key_id));
  }

  /** When all changes of a commit are known. @throws Violation */
  check(): void {
    for (const key of this.#permitted) this.#checkPermits(key);
    this.#permitted.clear();
    for (const name of this.#toCheck) {
      const active = entryOf(this.#active, name, newSet);
      for (const id of active) {
        const max = Number(this.tables.row('instances', id)?.max_concurrency);
        const { size } = active;
        if (size > max) throw new Violation(`${size} instances of key ${name} run, not ${max}`, id);
      }
    }
    this.#toCheck.clear();
  }

  /** A slot whose instance no longer requests it is free, even if its row is still there. */
  #checkPermits(key: string): void {
    const held = [...entryOf(this.#permits, key, newSet)].filter((id) => {
      const request = this.tables.row('permit_requests', id);
      return (
        request?.has_slot === true || request?.number === this.tables.row('permits', id)?.number
      );
    });
    for (const id of held) {
      const max = Number(this.tables.row('instances', id)?.max_concurrency);
      if (held.length > max) {
        throw new Violation(`${held.length} instances have a slot of a key for ${max}`, id);
      }
    }
  }

  // ---------------------------------------------------------------- rates

  /** The limit of the key, its own or that of a pattern. */
  rateLimit({ before, after }: Change): void {
    const tenant = String((after ?? before)!.tenant_id);
    const ofTenant = [...this.tables.rows('rate_limits').values()].flatMap((row) =>
      row.tenant_id === tenant ? [{ ...row, limit_key: String(row.limit_key) }] : [],
    );
    const limit: Row | undefined = limitFor(ofTenant, RATE_KEY);
    const max = limit === undefined ? undefined : Number(limit.max_count);
    const windowMs = Number(limit?.window_seconds ?? 0) * 1_000;
    const known = this.#rules.get(tenant);
    if (known?.max === max && known?.windowMs === windowMs) return;
    this.#rules.set(tenant, { since: this.now(), max, windowMs });
  }

  /** A task was inserted: a try began. @throws Violation */
  begun(task: Row): void {
    const instance = this.tables.row('instances', String(task.instance_id));
    if (instance === undefined || !this.#isLimited(String(instance.sequence_id), task)) return;
    const tenant = String(task.tenant_id);
    const times = entryOf(this.#begun, tenant, (): number[] => []);
    times.push(Date.parse(String(task.created_at)));
    times.sort((a, b) => a - b);
    const rule = this.#rules.get(tenant);
    if (rule?.max === undefined) return;
    const { since, max, windowMs } = rule;
    for (const end of times) {
      if (end - windowMs - CHANGE_MS < since) continue;
      const within = times.filter((time) => time > end - windowMs && time <= end);
      if (within.length > max) {
        const what = `${within.length} tries began within ${windowMs} ms, not ${max}`;
        throw new Violation(what, String(task.instance_id));
      }
    }
  }

  #isLimited(sequence: string, { block_id }: Row): boolean {
    const stepsOf = () => limitedSteps(this.tables.row('sequences', sequence)?.definition);
    return entryOf(this.#limited, sequence, stepsOf).has(String(block_id));
  }
}

function limitedSteps(definition: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (typeof definition !== 'object' || definition === null) return found;
  const { id, rate_limit_key } = definition as { id?: string; rate_limit_key?: string };
  const isLimited = rate_limit_key === RATE_KEY || rate_limit_key === RATE_TEMPLATE;
  if (id !== undefined && isLimited) found.add(id);
  for (const value of Object.values(definition)) limitedSteps(value, found);
  return found;
}

const newSet = () => new Set<string>();
