/**
 * What the programs of the model run in: the tries that are at work, and what is asked of the
 * instance as a whole.
 */

import type { Block, Hooks, StepBlock } from '../../schema/blocks.js';
import type { InstanceState } from '../../schema/states.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { Context, type Iteration } from './model-context.js';
import { cancelOpen, type End, type Frame, newFrame, reopen, unpaidIn } from './model-frames.js';
import type { Process, Run, Scope, Wait } from './model-processes.js';
import { isCut, Processes, scopeIn } from './model-processes.js';

/** What whoever was at a try says it came to. */
export type Outcome =
  | { readonly kind: 'success'; readonly output: JsonValue }
  | { readonly kind: 'failure'; readonly retryable: boolean };

/** Where a program runs. `frame` is that of the block whose lists it runs. */
export interface Place extends Iteration {
  readonly scope: Scope;
  readonly frame: Frame;
  /** In what a saga has to clean up before anything else: no step of it runs that does not. */
  readonly onlyCleansUp?: boolean;
  /** In a scope, and in what a catch list does and no saga nor finally list in between. */
  readonly isInScope?: boolean;
  readonly isCatching?: boolean;
}

/** One try of a step. */
export interface Try {
  readonly block: StepBlock;
  readonly place: Place;
  readonly number: number;
  readonly cut: () => boolean;
}

/** A try at work, or a question about its rate limit. */
interface Open {
  readonly isLostWithProcess: boolean;
  wait?: Wait;
  answer?: unknown;
}

/** What ends a wait for somebody outside. */
export type Word =
  /** Of a person. */
  | { readonly kind: 'said'; readonly value: string }
  | { readonly kind: 'event'; readonly payload: JsonValue }
  /** Of a child; undefined: it has failed. */
  | { readonly kind: 'child'; readonly output: JsonValue | undefined };

export interface ModelOptions {
  readonly blocks: readonly Block[];
  readonly data: JsonObject;
  readonly instanceId: string;
  readonly startsAt: number;
  /** Payloads of signals that were sent before it began. */
  readonly kept: readonly JsonValue[];
  readonly hooks: Hooks;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
}

export type ModelEvent =
  | { readonly kind: 'wake' | 'pause' | 'resume' | 'cancel' | 'park' | 'retry' }
  /** `begun`: the tries that the process was at, and that have died with it. */
  | { readonly kind: 'crash'; readonly begun: ReadonlySet<string> }
  | { readonly kind: 'reschedule'; readonly at: number }
  | { readonly kind: 'stop'; readonly state: 'completed' | 'failed' | 'cancelled' }
  | { readonly kind: 'update_context'; readonly values: JsonObject }
  | { readonly kind: 'outcome'; readonly key: string; readonly outcome: Outcome }
  /** Of a task, whose time begins. */
  | { readonly kind: 'claimed'; readonly key: string; readonly timeout: number | null }
  | { readonly kind: 'word'; readonly key: string; readonly word: Word }
  /** `until`: put off till then. */
  | { readonly kind: 'rate'; readonly key: string; readonly until?: number };

/** A clean-up that has failed in what was cut off. */
interface Debt {
  readonly scope: Scope;
  again(): Run<End>;
  /** Whose clean-up it is. */
  readonly frame?: Frame;
  isAtWork?: boolean;
}

function isIn(scope: Scope, around: Scope): boolean {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.around) {
    if (at === around) return true;
  }
  return false;
}

type Hold = 'none' | 'parked' | number;

export abstract class World {
  readonly options: ModelOptions;
  readonly context: Context;
  readonly root = newFrame();
  /** What was given out, by try: the parameters and the items around it. */
  readonly dispatched = new Map<string, { params: JsonValue; items: JsonObject | null }>();
  readonly open = new Map<string, Open>();
  readonly asked = new Map<string, Open>();
  /** Waits for people, events and children. */
  readonly awaited = new Map<string, Open>();
  /** The order within one instant has mattered: nothing is promised from here on. */
  isDraw = false;
  isCancelled = false;
  /** What could not be cleaned up, and is owed to a retry. */
  #debts: Debt[] = [];
  #hasGivenUp = false;
  /** Hooks of a cancel have failed. */
  #owesHooks = false;

  protected readonly processes: Processes;
  #scope = scopeIn();
  #main: Process<End>;
  #ended: 'completed' | 'failed' | 'cancelled' | undefined;
  #hold: Hold | 'paused' | 'paused when failed';
  /** What held it before it was paused, and since when it is. */
  #heldBefore: Hold = 'none';
  #pausedAt = 0;
  #hookRuns = 0;

  constructor(options: ModelOptions, startsNow: number) {
    this.options = options;
    this.context = new Context(options.data);
    this.processes = new Processes(startsNow);
    this.#hold = options.startsAt > startsNow ? options.startsAt : 'none';
    this.#main = this.#begin();
  }

  abstract list(blocks: readonly Block[], place: Place): Run<End>;

  get now(): number {
    return this.processes.now;
  }

  // -------------------------------------------------------------- what programs wait for

  *wait(wait: Wait): Run<unknown> {
    return yield wait;
  }

  *until<T>(answer: () => T | undefined): Run<T> {
    return (yield { answer }) as T;
  }

  owe(debt: Debt): void {
    this.#debts.push(debt);
  }

  #owedIn(scope: Scope): Debt[] {
    return this.#debts.filter((debt) => isIn(debt.scope, scope));
  }

  owesIn(scopes: readonly Scope[]): boolean {
    return scopes.some((scope) => this.#owedIn(scope).length > 0);
  }

  /** Until nothing is owed in the scope, or what is around it was cut off, too, and goes on without. */
  *untilPaid(scope: Scope, around = scope.around!): Run<void> {
    yield* this.until(() => this.#owedIn(scope).length === 0 || isCut(around) || undefined);
  }

  /** What is owed is done again. */
  #payDebts(): void {
    for (const debt of this.#debts) {
      if (debt.isAtWork === true) continue;
      debt.isAtWork = true;
      if (debt.frame !== undefined) debt.frame.isPaying = true;
      this.processes.spawn(this.#pay(debt));
    }
  }

  *#pay(debt: Debt): Run<End> {
    const end = yield* debt.again();
    debt.isAtWork = false;
    if (debt.frame !== undefined) debt.frame.isPaying = false;
    if (end !== 'failed') this.#debts = this.#debts.filter((other) => other !== debt);
    return end;
  }

  start(blocks: readonly Block[], place: Place): Process<End> {
    return this.processes.spawn(this.list(blocks, place));
  }

  *allOf(processes: readonly Process<End>[]): Run<End[]> {
    yield* this.until(() => processes.every(({ end }) => end !== undefined) || undefined);
    return processes.flatMap(({ end }) => end ?? []);
  }

  /** Waits until something new may start. */
  *isCutBeforeStart(scope: Scope): Run<boolean> {
    return (yield { due: this.now, cut: () => isCut(scope) }) === 'cut';
  }

  *defer(cut: () => boolean, due: number): Run<unknown> {
    return yield { due, cut, as: 'deferred' };
  }

  /** Cuts off what runs in the scope when its time is over. */
  *within<T>(scope: Scope, limit: number, run: Run<T>): Run<T> {
    const { limited } = this.processes;
    scope.limit = limit;
    limited.add(scope);
    const result = yield* run;
    limited.delete(scope);
    return result;
  }

  *handOut(
    one: Try,
    params: JsonValue,
    limit: number | undefined,
  ): Run<Outcome | 'timeout' | 'cut' | 'lost' | 'not begun'> {
    const { block, place, cut } = one;
    this.dispatched.set(keyOf(one), { params, items: this.context.itemsOf(place) });
    const as = isExternal(block) ? 'task' : 'active';
    const result = yield* this.#answerTo(this.open, keyOf(one), { cut, limit, as });
    return result === 'limit' ? 'timeout' : (result as Outcome | 'cut' | 'lost' | 'not begun');
  }

  /** Waits for somebody outside. */
  *hear<W extends Word['kind']>(
    kind: W,
    { block, place, number }: { block: Block; place: Place; number?: number },
    wait: Pick<Wait, 'cut' | 'limit' | 'late'>,
  ): Run<Extract<Word, { kind: W }> | 'cut' | 'limit'> {
    const path = [block.id, place.iteration.join('.'), ...(number === undefined ? [] : [number])];
    const key = `${kind}:${path.join('/')}`;
    const result = yield* this.#answerTo(this.awaited, key, { ...wait, as: 'task' });
    return result as Extract<Word, { kind: W }> | 'cut' | 'limit';
  }

  /** Asks the rate limit of the try; a number: until then the try is put off. */
  *ask(one: Try): Run<'cut' | 'lost' | 'not begun' | 'granted' | number> {
    const { cut } = one;
    const result = yield* this.#answerTo(this.asked, keyOf(one), { cut, as: 'active' });
    return result as 'cut' | 'lost' | 'not begun' | 'granted' | number;
  }

  *#answerTo(
    among: Map<string, Open>,
    key: string,
    wait: Pick<Wait, 'cut' | 'limit' | 'late' | 'as'>,
  ): Run<unknown> {
    const open: Open = { isLostWithProcess: wait.as === 'active' };
    among.set(key, open);
    open.wait = { ...wait, answer: () => open.answer };
    const result = yield open.wait;
    among.delete(key);
    return result;
  }

  // -------------------------------------------------------------- the instance as a whole

  /** Takes in one event. Returns false for an answer that nobody waits for. */
  take(event: ModelEvent, now: number): boolean {
    this.processes.now = now;
    this.context.instant += 1;
    const isTaken = this.#takeIn(event);
    this.processes.isHeld = this.#isHeld;
    this.processes.isPaused = this.#isPaused || this.#ended !== undefined;
    this.processes.settle();
    if (this.processes.isTie || this.context.isTie) this.isDraw = true;
    this.#noteEnd();
    return isTaken;
  }

  #takeIn(event: ModelEvent): boolean {
    if (event.kind === 'outcome') return this.#answer(this.open, event.key, event.outcome);
    if (event.kind === 'rate') return this.#answer(this.asked, event.key, event.until ?? 'granted');
    if (event.kind === 'claimed') {
      const wait = this.open.get(event.key)?.wait;
      if (wait !== undefined) {
        wait.limit = event.timeout === null ? undefined : this.#clock + event.timeout;
      }
      return wait !== undefined;
    }
    if (event.kind === 'word') return this.#answer(this.awaited, event.key, event.word);
    if (this.#ended === 'completed' || this.#ended === 'cancelled') return true;
    switch (event.kind) {
      case 'wake':
        break;
      case 'crash':
        for (const [key, open] of [...this.open, ...this.asked]) {
          if (open.isLostWithProcess) open.answer = event.begun.has(key) ? 'lost' : 'not begun';
        }
        // Of one whose time was over in this instant, whether that was noted before is open.
        if ([...event.begun].some((key) => !this.open.has(key))) this.isDraw = true;
        break;
      case 'pause':
        if (this.state === 'paused') break;
        this.#heldBefore = this.#isHeld ? (this.#hold as Hold) : 'none';
        this.#pausedAt = this.now;
        this.#hold = this.#hasFailed ? 'paused when failed' : 'paused';
        this.#ended = undefined;
        break;
      case 'resume':
        if (this.#hold === 'paused when failed') this.#schedule(this.now);
        else if (this.#hold === 'paused') {
          this.#endPause();
          this.#hold = this.#heldBefore;
        }
        break;
      case 'park':
        this.#endPause();
        if (this.#ended === undefined) this.#hold = 'parked';
        break;
      case 'reschedule':
        if (this.#ended === undefined) this.#schedule(event.at);
        break;
      case 'retry':
        if (this.#ended === 'failed') this.#retry();
        break;
      case 'update_context':
        this.context.merge(event.values);
        this.#unpark();
        break;
      case 'cancel':
        this.#endPause();
        this.isCancelled = true;
        this.#scope.by = 'signal';
        if (this.#hasFailed) {
          cancelOpen(this.root);
          this.#drop('cancelled');
        } else if (this.#main.end === 'failed') {
          // In a pause, in which nobody has seen it.
          for (const one of unpaidIn(this.root)) one.unpaid!.owe();
        }
        this.#hold = 'none';
        break;
      case 'stop':
        cancelOpen(this.root);
        if (event.state === 'completed') this.context.forgetError(...this.options.blocks);
        this.#drop(event.state);
    }
    return true;
  }

  #answer(among: Map<string, Open>, key: string, answer: NonNullable<Open['answer']>): boolean {
    const open = among.get(key);
    if (open === undefined) return false;
    open.answer = answer;
    // An outcome wakes a parked instance.
    if (among !== this.asked) this.#unpark();
    return true;
  }

  #unpark(): void {
    if (this.#hold === 'parked') this.#hold = 'none';
    if (this.#isPaused && this.#heldBefore === 'parked') this.#heldBefore = 'none';
  }

  /** By which limits count. */
  get #clock(): number {
    return this.#isPaused ? this.#pausedAt : this.now;
  }

  get #isPaused(): boolean {
    return this.#hold === 'paused' || this.#hold === 'paused when failed';
  }

  #endPause(): void {
    if (this.#isPaused) this.processes.putOff(this.now - this.#pausedAt);
  }

  #schedule(at: number): void {
    this.#endPause();
    if (this.#hold === 'paused when failed') this.#retry();
    // An earlier time ends the deferrals that next_fire_at stood for.
    const due = this.nextFireAt;
    for (const wait of this.processes.waits) {
      if (wait.as !== 'deferred' || wait.due === undefined || due === null) continue;
      if (wait.due <= due && wait.due > at) wait.due = at;
    }
    this.#hold = at > this.now ? at : 'none';
  }

  #drop(state: 'completed' | 'failed' | 'cancelled'): void {
    if (state !== this.#ended && !this.#owesHooks) this.#runHooks(state);
    this.processes.dropAll();
    this.#hasGivenUp ||= this.#debts.length > 0;
    this.#debts = [];
    this.open.clear();
    this.asked.clear();
    this.awaited.clear();
    this.#ended = state;
    this.#hold = 'none';
    const { on_cancel } = this.options.hooks;
    const isGivenUp = this.#owesHooks;
    this.#owesHooks = false;
    if (state === 'failed') this.#owesHooks = isGivenUp;
    if (state !== 'cancelled' || isGivenUp) return;
    this.#owesHooks = on_cancel?.some(({ handler }) => handler === 'fail') === true;
    if (this.#owesHooks) this.#failAgain();
  }

  /** It has failed to clean up, which it tells. */
  #failAgain(): void {
    this.#ended = 'failed';
    this.#runHooks('failed');
  }

  /** One after the other, whatever they come to; the number of the run stands in their iteration. */
  #runHooks(state: 'completed' | 'failed' | 'cancelled'): void {
    const { on_failure, on_cancel } = this.options.hooks;
    const steps = state === 'failed' ? on_failure : state === 'cancelled' ? on_cancel : null;
    if (steps == null) return;
    const iteration = `${state === 'failed' ? 'on_failure' : 'on_cancel'}.${this.#hookRuns}`;
    for (const { id, handler, params } of steps) {
      const output = handler === 'transform' ? this.context.rendered(params!) : {};
      const row = { block: id, iteration, number: 0, attempt: this.#hookRuns, output };
      if (handler !== 'fail') this.context.rows.push({ ...row, isError: false });
    }
    this.#hookRuns += 1;
  }

  /** What failed or was cut off is run again, with tries counted from the start. */
  #retry(): void {
    // They fail again.
    if (this.#owesHooks) {
      this.#failAgain();
      return;
    }
    this.context.dropErrors();
    if (this.#debts.length > 0) {
      this.#payDebts();
      this.#ended = undefined;
      this.#hold = 'none';
      return;
    }
    reopen(this.root);
    this.isCancelled = false;
    this.#ended = undefined;
    this.#hold = 'none';
    this.#scope = scopeIn();
    this.#main = this.#begin();
  }

  #begin(): Process<End> {
    return this.start(this.options.blocks, {
      scope: this.#scope,
      frame: this.root,
      iteration: [],
      layers: [],
      loops: [],
    });
  }

  #noteEnd(): void {
    const { end } = this.#main;
    if (this.#ended !== undefined) return;
    if (this.#debts.length > 0) {
      const isIdle = this.processes.waits.every(({ as }) => as === undefined);
      if (!isIdle || this.#isHeld) return;
      this.#failAgain();
      return;
    }
    if (end === undefined) return;
    if (this.#hold === 'paused when failed') return;
    // Of a paused instance only the failure of one without composite blocks shows.
    const isFatal = end === 'failed' && !this.isCancelled && this.isStepOnly;
    if (this.#hold === 'paused' && !isFatal) return;
    this.#drop(this.isCancelled ? 'cancelled' : end === 'failed' ? 'failed' : 'completed');
  }

  /** Whether something is owed: what has ended how is open. */
  get owes(): boolean {
    return this.#debts.length > 0 || this.#hasGivenUp;
  }

  get isStepOnly(): boolean {
    return this.options.blocks.every(({ type }) => type === 'step' || type === 'sub_sequence');
  }

  get #hasFailed(): boolean {
    return this.#ended === 'failed' || this.#hold === 'paused when failed';
  }

  get #isHeld(): boolean {
    return this.#hold !== 'none' && (typeof this.#hold !== 'number' || this.#hold > this.now);
  }

  get state(): InstanceState {
    if (this.#ended !== undefined) return this.#ended;
    if (this.#isPaused) return 'paused';
    if (this.#hold === 'parked') return 'waiting';
    if (this.#isHeld) return 'scheduled';
    const open = this.processes.waits.map((wait) => wait.as);
    if (open.includes('active')) return 'running';
    if (open.includes('task')) return open.includes('deferred') ? 'running' : 'waiting';
    return 'scheduled';
  }

  /** Shown while the instance is scheduled. */
  get nextFireAt(): number | null {
    if (this.state !== 'scheduled') return null;
    if (typeof this.#hold === 'number' && this.#isHeld) return this.#hold;
    return earliest(
      this.processes.waits.filter((wait) => wait.as === 'deferred').map(({ due }) => due),
    );
  }

  /** When something happens by itself at the latest; null: never. */
  get dueAt(): number | null {
    const { limited, waits } = this.processes;
    const counting = [...limited].filter((scope) => this.processes.counts(scope));
    const limits = [...counting, ...waits].map(({ limit }) => limit);
    if (this.#ended !== undefined || this.#isPaused) return null;
    if (!this.#isHeld) {
      const times = this.processes.waits.flatMap(({ due, late }) => [due, late]);
      return earliest([...limits, ...times]);
    }
    return earliest(typeof this.#hold === 'number' ? [...limits, this.#hold] : limits);
  }
}

export function isExternal({ handler }: StepBlock): boolean {
  return !['noop', 'fail', 'transform', 'sleep', 'http_request', 'wait_for_event'].includes(
    handler,
  );
}

function keyOf({ block, place, number }: Try): string {
  return `${block.id}/${place.iteration.join('.')}/${number}`;
}

function earliest(times: readonly (number | undefined)[]): number | null {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? null : Math.min(...known);
}
