/**
 * Watches parents and children, commit by commit: a child is made by one step of its parent that knows
 * it, what a child came to is the output of one step, and a cancel that it has heard of ends it.
 */

import { CANCELLED, type Execution, type StepRecord } from '../../schema/execution.js';
import { type InstanceState, isEnded } from '../../schema/states.js';
import type { Change, Row } from './memory-tables.js';
import { loopsIn, mayRepeat, placesOf } from './places.js';
import { Violation } from './violation.js';
import { openSteps, Watcher } from './watcher.js';

export class FamilyObserver extends Watcher {
  /** Made in the commit that is looked at. */
  readonly #made: Row[] = [];
  /** Child → the output row of its parent that has its outputs. */
  readonly #told = new Map<string, string>();
  /** Child → the block of its parent that waited for it. */
  readonly #steps = new Map<string, string>();
  /** Parent and block → the newest child of that; and those that their parents have cancelled. */
  readonly #newest = new Map<string, string>();
  readonly #cut = new Set<string>();

  /** @throws Violation */
  look({ table, key, before, after }: Change): void {
    if (table === 'instances' && before === undefined && after?.parent_instance_id != null) {
      this.#made.push(after);
    }
    if (table === 'instances' && after !== undefined) this.#parent(key, after);
    if (table === 'kin_notes') this.#note(before, after);
    const isResult = table === 'block_outputs' && before === undefined && after !== undefined;
    if (isResult && /^child\d/.test(String(after.block_id))) this.#result(after);
  }

  /** To be called when all changes of a commit were looked at. @throws Violation */
  check(): void {
    for (const child of this.#made.splice(0)) this.#checkMade(child);
  }

  #checkMade({ id, parent_instance_id, metadata }: Row): void {
    this.#checkAlone(String(id), String(parent_instance_id), metadata as Row);
    const parent = this.tables.row('instances', String(parent_instance_id));
    if (parent === undefined || isEnded(parent.state as InstanceState)) return;
    const isKnown = openSteps(parent).some(({ c }) => c === id);
    const note = this.tables.keyOf('kin_notes', { to_id: id!, from_id: parent.id! });
    const isCut = this.tables.row('kin_notes', note)?.word === 'cancel';
    if (!isKnown && !isCut) throw new Violation('no step of its parent has the child', String(id));
  }

  /** A step that is run once has one, which its retries retry, unless that was cancelled or is gone. */
  #checkAlone(child: string, parent: string, { _parent_block_id: block }: Row): void {
    const around = placesOf(this.tables, parent).get(String(block)) ?? [];
    if (loopsIn(around).length > 0 || mayRepeat(around)) return;
    const step = `${parent} ${block}`;
    const before = this.#newest.get(step) ?? child;
    this.#newest.set(step, child);
    const { state = 'cancelled', execution } = this.tables.row('instances', before) ?? {};
    // A hook that fails makes a cancelled instance fail, after its parent was told of the cancel.
    const isCancelled = state === 'cancelled' || (execution as Row).e === CANCELLED;
    if (before === child || isCancelled || this.#cut.has(before)) return;
    throw new Violation(`${block} has ${child} beside the ${state} child ${before}`, parent);
  }

  /** Each of its steps has a child of its own. */
  #parent(id: string, row: Row): void {
    const seen = new Set<string>();
    for (const { c } of openSteps(row)) {
      if (c === undefined) continue;
      if (seen.has(c)) throw new Violation(`two steps wait for ${c}`, id);
      seen.add(c);
      const child = this.tables.row('instances', c);
      if (child !== undefined && child.parent_instance_id !== id) {
        throw new Violation(`waits for ${c}, the child of ${child.parent_instance_id}`, id);
      }
    }
    const { d } = row.execution as unknown as Execution;
    for (const [node, [code, , , kept]] of Object.entries(d ?? {})) {
      const child = (kept as StepRecord | undefined)?.c;
      if (child === undefined) continue;
      const state = this.tables.row('instances', child)?.state ?? 'completed';
      if (code === 0 && state !== 'completed') {
        throw new Violation(`its child ${child} is ${state}, and its block completed`, id);
      }
      const step = `${id} ${node}`;
      const known = this.#steps.get(child) ?? step;
      if (known !== step) throw new Violation(`${child} was the child of ${known}`, id);
      this.#steps.set(child, step);
    }
  }

  /** What a child has said is the output of its block, all of it, once. */
  #result({ instance_id, block_id, output, output_ref, id }: Row): void {
    if (output_ref !== null || !Array.isArray(output)) return;
    const parent = String(instance_id);
    const first = output[0] as { instance_id?: string } | undefined;
    const child = first?.instance_id;
    if (child === undefined) return;
    if (this.#told.has(child)) throw new Violation(`the outputs of ${child} came twice`, parent);
    this.#told.set(child, String(id));
    const row = this.tables.row('instances', child);
    if (row === undefined) return;
    if (row.state !== 'completed' || row.parent_instance_id !== instance_id) {
      throw new Violation(`${block_id} has outputs of the ${row.state} ${child}`, parent);
    }
    let count = 0;
    for (const one of this.tables.rows('block_outputs').values()) {
      if (one.instance_id === child) count += 1;
    }
    if (count !== output.length) {
      throw new Violation(`${output.length} of ${count} outputs of ${child} came`, parent);
    }
  }

  #note(before: Row | undefined, after: Row | undefined): void {
    if (before === undefined) this.counts.add(`kin told ${after?.word}`);
    if (after?.word === 'cancel') this.#cut.add(String(after.to_id));
    if (before?.word !== 'cancel') return;
    const { to_id, from_id } = before;
    if (after !== undefined && after.word !== 'cancel') {
      throw new Violation(`was cancelled by its parent, then told to ${after.word}`, String(to_id));
    }
    const child = this.tables.row('instances', String(to_id));
    if (after !== undefined || child === undefined || child.parent_instance_id !== from_id) return;
    const { x } = child.execution as unknown as Execution;
    if (x !== 1 && !isEnded(child.state as InstanceState)) {
      throw new Violation(`has heard of its cancel, and is ${child.state}`, String(to_id));
    }
  }
}
