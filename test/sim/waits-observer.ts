/**
 * Watches what instances wait for outside of themselves, commit by commit: the rows of gates and of
 * events are equal to the steps that wait, a question has one end, a wait takes one event that was meant
 * for it, and what was taken is the output of one step.
 */

import type { Change, Row } from './memory-tables.js';
import { Violation } from './violation.js';
import { openSteps, owner, Watcher } from './watcher.js';

export class WaitsObserver extends Watcher {
  /** Instance → its questions that have no answer; instance → its waits for events. */
  readonly #questions = new Map<string, Set<string>>();
  readonly #waits = new Map<string, Set<string>>();
  /** Wait → the event that it has taken. */
  readonly #taken = new Map<string, string>();
  /** By the token of an event or of a signal: how often it was taken, and how often it was an output. */
  readonly #takes = new Map<string, number>();
  readonly #outputs = new Map<string, number>();
  readonly #touchedTokens = new Set<string>();

  /** Somebody outside will move it on. */
  isWaiting(instance: string): boolean {
    return this.#questions.has(instance) || this.#waits.has(instance);
  }

  /** @throws Violation */
  look(change: Change): void {
    const { before, after } = change;
    switch (change.table) {
      case 'approvals':
        this.#question(change);
        return;
      case 'event_waits':
        note(this.#waits, (after ?? before)!, after !== undefined);
        return;
      case 'event_takes':
        if (after !== undefined) this.#take(after);
        return;
      case 'signals':
        if (after !== undefined) this.#signal(before, after);
        return;
      case 'block_outputs':
        if (before === undefined && after !== undefined) this.#output(after);
        return;
      default:
    }
  }

  /** To be called when all changes of a commit were looked at. @throws Violation */
  checkTokens(): void {
    for (const token of this.#touchedTokens) {
      const [takes, outputs] = [this.#takes.get(token) ?? 0, this.#outputs.get(token) ?? 0];
      if (takes !== outputs) {
        throw new Violation(`${token} was taken ${takes} times, and is the output of ${outputs}`);
      }
    }
    this.#touchedTokens.clear();
  }

  /** @throws Violation when the rows of the instance are not those of its open steps */
  checkInstance(id: string): void {
    const row = this.tables.row('instances', id);
    const gates = new Set<unknown>();
    const waits = new Set<unknown>();
    for (const { p, k, v } of row === undefined ? [] : openSteps(row)) {
      if (p === 'gate') gates.add(k);
      if (p === 'event') waits.add(v?.i);
    }
    if (!isSame(this.#questions.get(id), gates)) {
      throw new Violation(`asks ${[...gates]}, rows: ${[...(this.#questions.get(id) ?? [])]}`, id);
    }
    if (!isSame(this.#waits.get(id), waits)) {
      throw new Violation(`waits ${[...waits]}, rows: ${[...(this.#waits.get(id) ?? [])]}`, id);
    }
  }

  /** A question has one end, which is never another one. */
  #question({ key, before, after }: Change): void {
    const row = (after ?? before)!;
    note(this.#questions, row, after !== undefined && after.outcome === null);
    if (after?.outcome != null && before?.outcome == null) {
      this.counts.add(`question ${after.outcome}`);
    }
    if (before?.outcome == null || after === undefined) return;
    if (JSON.stringify(before) !== JSON.stringify(after)) {
      throw new Violation(
        `question ${key} was ${before.outcome}, then ${after.outcome}`,
        owner(row),
      );
    }
  }

  #take({ event_id, wait_id, instance_id, outcome }: Row): void {
    const event = this.tables.row('events', String(event_id));
    const targets = event?.targets as unknown as [string, string][] | null | undefined;
    const isMeant = targets?.some(([wait, of]) => wait === wait_id && of === instance_id);
    if (event === undefined || isMeant !== true) {
      throw new Violation(`${wait_id} took ${event_id}, which was for others`, String(instance_id));
    }
    this.counts.add(`event ${outcome}`);
    if (outcome !== 'taken') return;
    const known = this.#taken.get(String(wait_id));
    if (known !== undefined) {
      throw new Violation(`${wait_id} took ${known} and ${event_id}`, String(instance_id));
    }
    this.#taken.set(String(wait_id), String(event_id));
    this.#count(this.#takes, event.payload);
  }

  #signal(before: Row | undefined, after: Row): void {
    const was = before?.status;
    if (was !== undefined && was !== 'kept' && was !== after.status) {
      throw new Violation(`signal ${after.id} was ${was}, then ${after.status}`, owner(after));
    }
    const isTaken = after.status === 'taken' && was !== 'taken';
    const isGate = String(after.signal_type).startsWith('custom:human_input:');
    if (isTaken) this.counts.add(`signal ${isGate ? 'to a question' : 'for an event'}`);
    if (isTaken && !isGate) this.#count(this.#takes, after.payload);
  }

  #output({ block_id, output, output_ref }: Row): void {
    if (output_ref === null && /^event\d/.test(String(block_id)))
      this.#count(this.#outputs, output);
  }

  #count(counts: Map<string, number>, payload: unknown): void {
    const token = (payload as { token?: string } | null)?.token;
    if (token === undefined) return;
    counts.set(token, (counts.get(token) ?? 0) + 1);
    this.#touchedTokens.add(token);
  }
}

/** Whether the row is one of those of its instance. */
function note(map: Map<string, Set<string>>, row: Row, isThere: boolean): void {
  const instance = owner(row);
  const rows = map.get(instance) ?? new Set();
  if (isThere) map.set(instance, rows.add(String(row.id)));
  else if (rows.delete(String(row.id)) && rows.size === 0) map.delete(instance);
}

function isSame(known: ReadonlySet<string> | undefined, expected: ReadonlySet<unknown>): boolean {
  const size = known?.size ?? 0;
  return size === expected.size && [...(known ?? [])].every((id) => expected.has(id));
}
