/**
 * Watches concurrency keys and rate limits: at every committed state no more instances of a key run
 * or wait than its limit allows, and within no window more tries begin than the rate limit allows.
 */

import { entryOf } from '../helpers/entry.js';
import { RATE_KEY } from './clients.js';
import type { Change, Row } from './memory-tables.js';
import { Violation } from './violation.js';
import { Watcher } from './watcher.js';

/** A rate limit since a commit; `max` is undefined when there is none. */
interface Rule {
  readonly since: number;
  readonly max: number | undefined;
  readonly windowMs: number;
}

/** So long after a change, tries may begin that were let through before it. */
const CHANGE_MS = 3_000;

export class LimitsObserver extends Watcher {
  /** Tenant and key → instances that run or wait. */
  readonly #active = new Map<string, Set<string>>();
  readonly #permits = new Map<string, Set<string>>();
  readonly #toCheck = new Set<string>();
  /** Tenant → times at which limited tries began, in order. */
  readonly #begun = new Map<string, number[]>();
  readonly #rules = new Map<string, Rule>();
  /** Sequence → its steps that are under the rate limit. */
  readonly #limited = new Map<string, ReadonlySet<string>>();

  instance({ key, before, after }: Change): void {
    const row = (after ?? before)!;
    if (row.concurrency_key === null || row.max_concurrency === null) return;
    const name = `${row.tenant_id}: ${row.concurrency_key}`;
    const isActive = after?.state === 'running' || after?.state === 'waiting';
    const active = entryOf(this.#active, name, newSet);
    if (isActive) active.add(key);
    else active.delete(key);
    this.#toCheck.add(name);
  }

  permit({ key, before, after }: Change): void {
    const { key_id } = (after ?? before)!;
    const holders = entryOf(this.#permits, String(key_id), newSet);
    if (after === undefined) holders.delete(key);
    else holders.add(key);
    const max = this.tables.row('instances', key)?.max_concurrency;
    if (after !== undefined && holders.size > Number(max)) {
      throw new Violation(`${holders.size} instances have a slot of a key for ${max}`, key);
    }
  }

  /** When all changes of a commit are known. @throws Violation */
  check(): void {
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

  // ---------------------------------------------------------------- rates

  rateLimit({ before, after }: Change): void {
    const { tenant_id, limit_key } = (after ?? before)!;
    if (limit_key !== RATE_KEY) return;
    this.#rules.set(String(tenant_id), {
      since: this.now(),
      max: after === undefined ? undefined : Number(after.max_count),
      windowMs: Number(after?.window_seconds ?? 0) * 1_000,
    });
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
  if (id !== undefined && rate_limit_key === RATE_KEY) found.add(id);
  for (const value of Object.values(definition)) limitedSteps(value, found);
  return found;
}

const newSet = () => new Set<string>();
