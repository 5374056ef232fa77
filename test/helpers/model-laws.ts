/**
 * Laws of a life in the evaluator that need no model, checked after every event and at the end, and
 * the tally of what the lives of a test file have seen, so that the generator cannot run dry unseen.
 */

import assert from 'node:assert/strict';
import {
  CATCH_LIST,
  FAILED,
  FINALLY_LIST,
  type OpenRecord,
  type TryCatchRecord,
} from '../../schema/execution.js';
import { isEnded, isTerminal } from '../../schema/states.js';
import { advance } from '../../src/core/evaluator.js';
import type { PlanNode, TryCatchNode } from '../../src/core/plan-nodes.js';
import type { EngineEvent, Env } from '../../src/core/progress.js';
import type { Player } from './player.js';

/** How often what has happened. */
export class Tally {
  readonly counts = new Map<string, number>();

  count(what: string, times = 1): void {
    if (times > 0) this.counts.set(what, (this.counts.get(what) ?? 0) + times);
  }

  of(what: string): number {
    return this.counts.get(what) ?? 0;
  }
}

export class Laws {
  readonly #player: Player;
  readonly #tally: Tally;
  /** `block@iteration` of everything that has left a row or was given out. */
  readonly #traces = new Set<string>();
  /** With how often its step had begun again by then. */
  #openBefore = new Map<string, number>();
  #decidedBefore: ReadonlySet<number> = new Set();
  #dispatchesSeen = 0;
  #rowsSeen = 0;
  /** Tries that were taken back, in the present life of the instance. */
  #takenBack = new Set<string>();
  /** What was open when the signal came; undefined: it has not. */
  #openAtCancel: ReadonlySet<number> | undefined;
  #wasStopped = false;
  /** Something could not be cleaned up, and may have been given up by then. */
  #hasOwed = false;

  constructor(player: Player, tally: Tally) {
    this.#player = player;
    this.#tally = tally;
  }

  // -------------------------------------------------------------- before an event

  before(event: EngineEvent): void {
    const { state, execution } = this.#player.snapshot;
    this.#openBefore = new Map([...this.#player.open].map(([key, { runs }]) => [key, runs]));
    this.#decidedBefore = new Set(this.#openNodes('race').map(({ index }) => index));
    if (state === 'failed' || execution.f === 1) this.#takenBack = new Set();
    if (event.kind === 'stop') this.#openAtCancel = undefined;
    if (isEnded(state) && event.kind !== 'retry') return;
    switch (event.kind) {
      case 'cancel':
        if (this.#openNodes('try_catch').some((node) => this.#isCleaningUp(node))) {
          this.#tally.count('cancel during finally');
        }
        this.#openAtCancel ??= new Set(Object.keys(execution.o).map(Number));
        if (this.#openNodes('step').some((node) => node.type === 'step' && !node.isCancellable)) {
          this.#tally.count('cancel with a protected step');
        }
        break;
      case 'stop':
        this.#wasStopped = true;
        this.#tally.count('stop with work open', this.#openBefore.size);
        break;
      case 'retry':
        if (state === 'failed') this.#tally.count('retry of a failed instance');
        break;
      case 'step.outcome':
        if (state === 'paused') this.#tally.count('outcome during a pause');
        if (execution.h !== undefined) this.#tally.count('outcome before the time asked for');
        if (execution.p === 1) this.#tally.count('outcome while parked');
    }
  }

  /** The process dies now. */
  noteDeath(): void {
    const inProcess = [...this.#player.open.values()].filter(({ external }) => !external);
    this.#tally.count('death with handlers at work', inProcess.length);
    const inLoops = inProcess.filter(({ iteration }) => iteration !== '');
    this.#tally.count('death with handlers at work in a loop', inLoops.length);
    if (this.#player.last?.more === true) this.#tally.count('death between two turns');
    for (const { node, iteration, attempt } of inProcess) {
      this.#openBefore.delete(`${node}/${iteration}/${attempt}`);
    }
  }

  // -------------------------------------------------------------- after an event

  /** @param answered the try that the event was about */
  after(answered: string | undefined): void {
    const { open, dispatched, rows, snapshot } = this.#player;
    for (const [key, runs] of this.#openBefore) {
      if (key === answered || open.has(key)) continue;
      this.#takenBack.add(`${key}/${runs}`);
      this.#noteTakenBack(Number(key.split('/')[0]));
    }
    for (const dispatch of dispatched.slice(this.#dispatchesSeen)) {
      const { node, iteration, attempt, blockId, runs } = dispatch;
      this.#traces.add(`${blockId}@${iteration}`);
      if (attempt > 0) this.#tally.count('dispatched again');
      this.#mayBeGivenOut(
        this.#player.plan.nodes[node]!,
        `${node}/${iteration}/${attempt}/${runs}`,
      );
    }
    // Error rows may have been dropped: what is left has been seen.
    for (const { blockId, iteration } of rows.slice(Math.min(this.#rowsSeen, rows.length))) {
      this.#traces.add(`${blockId}@${iteration}`);
    }
    this.#dispatchesSeen = dispatched.length;
    this.#rowsSeen = rows.length;
    if (!isEnded(snapshot.state)) return;
    assert.equal(open.size, 0, 'work is left when the instance has ended');
    // But for what could not clean up.
    const { a: cleanUp, o } = snapshot.execution;
    if (cleanUp === undefined)
      assert.deepEqual(o, {}, 'blocks are open when the instance has ended');
    else {
      this.#hasOwed = true;
      this.#tally.count('could not clean up');
      const caught = this.#openNodes('try_catch').map(({ index }) => o[index] as TryCatchRecord);
      const isFailed = ({ p, f, z }: TryCatchRecord) =>
        z === 1 && p === FINALLY_LIST && f === FAILED;
      this.#tally.count(
        'owes a cut catch list',
        caught.filter(({ p, z }) => z === 1 && p === CATCH_LIST).length,
      );
      this.#tally.count('owes a catch list that failed before', caught.filter(isFailed).length);
    }
    assert.equal(this.#player.last!.wakeAt, null);
  }

  #noteTakenBack(index: number): void {
    const { nodes } = this.#player.plan;
    const { o } = this.#player.snapshot.execution;
    for (let up = nodes[index]; up !== undefined; up = nodes[up.parent]) {
      const record = o[up.index] as OpenRecord | undefined;
      const isDecided = up.type === 'race' && (record === undefined || record.x === 1);
      if (isDecided && this.#decidedBefore.has(up.index)) {
        this.#tally.count('loser of a race at work');
        if (record !== undefined) this.#tally.count('loser of a race cleans up');
        return;
      }
    }
  }

  #mayBeGivenOut(node: PlanNode, key: string): void {
    assert.ok(!this.#takenBack.has(key), `${key} is given out after it was taken back`);
    const before = this.#openAtCancel;
    if (before === undefined) return;
    const isProtected = node.type === 'step' && !node.isCancellable && before.has(node.index);
    assert.ok(isProtected || this.#isShielded(node), `${node.id} begins after a cancel`);
  }

  #isShielded(node: PlanNode): boolean {
    const parent = this.#player.plan.nodes[node.parent];
    if (parent === undefined) return false;
    const isLast = parent.type === 'try_catch' && node.branch === FINALLY_LIST;
    // A scope has begun; the lists of a saga alternate, and every second one is a compensation.
    const isScope = parent.type === 'cancellation_scope' && this.#openAtCancel!.has(parent.index);
    const isUndoing = parent.type === 'saga' && node.branch % 2 === 1;
    const isOwed = parent.type === 'try_catch' && this.#hasOwed && this.#mayOwe(parent, node);
    return isLast || isScope || isUndoing || isOwed || this.#isShielded(parent);
  }

  /** A retry does a catch list again, behind the cancel, only with protected work in it or in a scope around it. */
  #mayOwe(around: PlanNode, { branch }: PlanNode): boolean {
    const { nodes } = this.#player.plan;
    if (branch !== CATCH_LIST) return false;
    for (let up = nodes[around.parent]; up !== undefined; up = nodes[up.parent]) {
      if (up.type === 'cancellation_scope') return true;
    }
    const list = around.lists[CATCH_LIST]!;
    return nodes
      .slice(list[0], nodes[list.at(-1)!]!.end)
      .some(
        (one) => one.type === 'cancellation_scope' || (one.type === 'step' && !one.isCancellable),
      );
  }

  #openNodes(type: PlanNode['type']): PlanNode[] {
    const { plan, snapshot } = this.#player;
    return plan.nodes.filter((node) => node.type === type && snapshot.execution.o[node.index]);
  }

  #isCleaningUp({ index }: PlanNode): boolean {
    return (this.#player.snapshot.execution.o[index] as TryCatchRecord).p === FINALLY_LIST;
  }

  // -------------------------------------------------------------- at the end

  atEnd(env: Env): void {
    const { plan, snapshot } = this.#player;
    assert.ok(isEnded(snapshot.state), `the instance is ${snapshot.state} in the end`);
    this.#tally.count(`ended ${snapshot.state}`);
    const kinds = new Set<string>();
    const mayOwe = this.#wasStopped || this.#hasOwed;
    for (const node of plan.nodes) {
      if (this.#hasTrace(node)) kinds.add(node.type);
      if (node.type === 'for_each' && node.concurrency > 1 && kinds.has('for_each')) {
        kinds.add('for_each with items side by side');
      }
      if (node.type === 'try_catch' && !mayOwe) this.#checkFinally(node);
    }
    for (const kind of kinds) this.#tally.count(`ran a ${kind}`);
    const hooks = [...this.#traces].filter((trace) => trace.includes('@on_'));
    this.#tally.count('ran a hook', hooks.length);
    this.#checkStaysEnded(env);
  }

  #hasTrace({ index, end }: PlanNode): boolean {
    const ids = new Set(this.#player.plan.nodes.slice(index, end).map(({ id }) => id));
    return [...this.#traces].some((trace) => ids.has(trace.split('@')[0]!));
  }

  /** Every pass through a try_catch that left a trace left one of its finally list too. */
  #checkFinally(node: TryCatchNode): void {
    const { nodes } = this.#player.plan;
    const [tried, rescue, [last]] = node.lists as [number[], number[], number[]];
    if (last === undefined) return;
    const ids = new Set<string>();
    for (const index of [...tried, ...rescue]) {
      for (let i = index; i < nodes[index]!.end; i += 1) ids.add(nodes[i]!.id);
    }
    for (const trace of this.#traces) {
      const [id, path] = trace.split('@') as [string, string];
      if (!ids.has(id)) continue;
      const iteration = path.split('.').slice(0, node.loops.length).join('.');
      const cleanUp = `${nodes[last]!.id}@${iteration}`;
      assert.ok(this.#traces.has(cleanUp), `${node.id} has not cleaned up in ${iteration}`);
      this.#tally.count('cleaned up');
    }
  }

  #checkStaysEnded(env: Env): void {
    const { plan, snapshot } = this.#player;
    const before = JSON.stringify(snapshot);
    const events: EngineEvent[] = [
      { kind: 'wake' },
      { kind: 'wake', recovered: true },
      { kind: 'resume' },
      { kind: 'park' },
      { kind: 'reschedule', at: null },
    ];
    if (isTerminal(snapshot.state)) {
      events.push({ kind: 'pause' }, { kind: 'cancel' }, { kind: 'retry' });
      events.push({ kind: 'stop', state: 'failed' }, { kind: 'stop', state: 'completed' });
    }
    for (const event of events) {
      const progress = advance(plan, snapshot, event, env);
      assert.deepEqual([progress.outputs, progress.dispatches, progress.more], [[], [], false]);
      assert.equal(JSON.stringify(snapshot), before, `${event.kind} changes what has ended`);
    }
  }
}
