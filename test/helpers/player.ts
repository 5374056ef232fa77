/**
 * Plays an instance through the evaluator as an actor would: sends events, keeps what they led to,
 * and checks after each one what must hold at any time. Every event is applied a second time to a
 * copy of the snapshot that went through JSON, and must lead to the same.
 */

import assert from 'node:assert/strict';
import type { Block, Hooks } from '../../schema/blocks.js';
import type { Execution, StepPhase, StepRecord } from '../../schema/execution.js';
import { emptyExecution } from '../../schema/execution.js';
import { isTerminal } from '../../schema/states.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import { advance } from '../../src/core/evaluator.js';
import { iterationOf } from '../../src/core/paths.js';
import { compilePlan, type Plan, type SchemaCheck } from '../../src/core/plan.js';
import {
  type ChildOrder,
  type Dispatch,
  type EngineEvent,
  type Env,
  GATE_REF,
  type KeptOutput,
  type OutputRow,
  type Progress,
  type RateRequest,
  type Snapshot,
} from '../../src/core/progress.js';
import { treeOf } from '../../src/core/tree.js';

const WAITS: Partial<Record<StepPhase, 'said' | 'event' | 'child'>> = {
  gate: 'said',
  event: 'event',
  child: 'child',
};

export const START = 1_700_000_000_000;

/** What an instance is advanced with. */
export const ENV: Env = {
  now: START,
  random: () => 0.5,
  unpoliciedRetry: 'redispatch',
  stepBudget: 500,
  outputBytesBudget: 1_000_000,
};

export function planOf(
  blocks: Block[],
  compileSchema?: () => SchemaCheck,
  hooks: Hooks = {},
): Plan {
  const compiled = compilePlan({ id: 'sequence', blocks, ...hooks }, compileSchema);
  assert.ok(compiled.ok, compiled.ok ? '' : compiled.message);
  return compiled.plan;
}

export function freshSnapshot(data: JsonObject = {}): Snapshot {
  return {
    id: '01890000-0000-7000-8000-000000000001',
    timezone: 'UTC',
    state: 'scheduled',
    nextFireAt: START,
    data,
    config: {},
    runtime: {},
    execution: emptyExecution(),
    outputs: new Map(),
    snapshots: new Map(),
  };
}

export interface PlayerOptions {
  readonly data?: JsonObject;
  readonly env?: Partial<Env>;
  readonly compileSchema?: () => SchemaCheck;
  readonly hooks?: Hooks;
}

type PlainEvent = 'wake' | 'pause' | 'resume' | 'park' | 'cancel' | 'retry' | 'admitted';
type Act =
  | PlainEvent
  | 'tick'
  | 'recover'
  | `${'ok' | 'fail' | 'again' | 'claim' | 'return'} ${string}`;

/** What can be seen of an instance, as far as tests ask. */
interface Sight {
  readonly state: string;
  readonly done: readonly string[];
  readonly atWork: readonly string[];
  readonly tree: Readonly<Record<string, string>>;
  /** Of every dispatch, its block with the number of the try. */
  readonly tries: readonly string[];
  /** Blocks whose work was taken back last. */
  readonly withdrawn: readonly string[];
  /** How often a rate limit was asked. */
  readonly asked: number;
  readonly failure: string | undefined;
  readonly data: JsonObject;
  readonly wakeAt: number | null;
  readonly nextFireAt: number | null;
  /** For a slot of its concurrency key. */
  readonly waits: boolean;
}

export class Player {
  readonly plan: Plan;
  snapshot: Snapshot;
  now = START;
  env: Partial<Env>;
  /** Everything stored so far, in order, without dropped `__error__` rows. */
  rows: OutputRow[] = [];
  /** Every dispatch ever, and those still at work. */
  readonly dispatched: Dispatch[] = [];
  readonly open = new Map<string, Dispatch>();
  readonly asked: RateRequest[] = [];
  readonly children: ChildOrder[] = [];
  readonly transitions: string[] = [];
  last: Progress | undefined;

  constructor(blocks: Block[], options: PlayerOptions = {}) {
    this.plan = planOf(blocks, options.compileSchema, options.hooks);
    this.snapshot = freshSnapshot(options.data);
    this.env = options.env ?? {};
  }

  get state(): string {
    return this.snapshot.state;
  }

  /** Sends one event, and whatever `more` asks for after it. */
  send(event: EngineEvent): Progress {
    const progress = this.sendOnce(event);
    let turns = 0;
    while (this.last!.more) {
      this.sendOnce({ kind: 'wake' });
      turns += 1;
      assert.ok(turns < 100_000, 'more without end');
    }
    return progress;
  }

  sendOnce(event: EngineEvent): Progress {
    const before = this.snapshot.state;
    const copy = clone(this.snapshot);
    const progress = advance(this.plan, this.snapshot, event, this.#env());
    const again = advance(this.plan, copy, event, this.#env());
    assert.deepEqual(again, progress, `${event.kind} differs after a JSON round trip`);
    assert.deepEqual(copy, this.snapshot, `${event.kind} differs after a JSON round trip`);
    // But for one whose hooks cannot clean up.
    const isOver = isTerminal(before as Snapshot['state']);
    if (isOver && this.snapshot.execution.j?.f === undefined) assert.equal(this.state, before);
    this.#record(progress);
    this.last = progress;
    return progress;
  }

  start(): this {
    this.send({ kind: 'wake' });
    return this;
  }

  /** Moves time to the next wake and sends it. */
  tick(): this {
    const { wakeAt } = this.last!;
    assert.ok(wakeAt !== null, 'nothing to wait for');
    this.now = Math.max(this.now, wakeAt);
    this.send({ kind: 'wake' });
    return this;
  }

  /** The process dies, with the handlers in it, and another one takes over. */
  recover(): Progress {
    for (const [key, { external }] of this.open) if (!external) this.open.delete(key);
    return this.send({ kind: 'wake', recovered: true });
  }

  /** What a worker or a handler reports for the open try of a block. */
  complete(blockId: string, output: JsonValue = {}): Progress {
    return this.#outcome(blockId, { kind: 'success', output });
  }

  fail(blockId: string, retryable = false, message = 'broken', details?: JsonObject): Progress {
    const base = { kind: 'failure', retryable, message } as const;
    return this.#outcome(blockId, details === undefined ? base : { ...base, details });
  }

  /** The open try comes to this. */
  end(blockId: string, outcome: StepOutcome): this {
    this.#outcome(blockId, outcome);
    return this;
  }

  #ofTask(kind: 'step.claimed' | 'step.returned', blockId: string): void {
    const open = [...this.open.values()].find((dispatch) => dispatch.blockId === blockId);
    assert.ok(open !== undefined, `${blockId} is not at work`);
    const { node, iteration, attempt } = open;
    this.send({ kind, node, iteration, attempt });
  }

  #outcome(blockId: string, outcome: Extract<EngineEvent, { kind: 'step.outcome' }>['outcome']) {
    const dispatch = [...this.open.values()].find((open) => open.blockId === blockId);
    assert.ok(dispatch !== undefined, `${blockId} is not at work`);
    const { node, iteration, attempt, external } = dispatch;
    this.open.delete(keyOf(dispatch));
    return this.send({ kind: 'step.outcome', node, iteration, attempt, outcome, external });
  }

  /** Lets things happen one after the other: `ok a`, `fail a` and `again a` (which may be tried again)
   * are outcomes of the block `a`, `claim a` and `return a` what becomes of its task; `tick` and `recover` are meant as the methods of that name. */
  after(...acts: readonly (Act | EngineEvent)[]): this {
    for (const act of acts) {
      if (typeof act !== 'string') this.send(act);
      else if (act === 'tick' || act === 'recover') this[act]();
      else if (act.startsWith('ok ')) this.complete(act.slice(3));
      else if (act.startsWith('fail ')) this.fail(act.slice(5));
      else if (act.startsWith('again ')) this.fail(act.slice(6), true);
      else if (act.startsWith('claim ')) this.#ofTask('step.claimed', act.slice(6));
      else if (act.startsWith('return ')) this.#ofTask('step.returned', act.slice(7));
      else this.send({ kind: act as PlainEvent });
    }
    return this;
  }

  /** Holds what can be seen of the instance against what is expected; of the tree, the blocks named. */
  shows(expected: Partial<Sight>): this {
    const { last, snapshot, tree } = this;
    const sight: Sight = {
      state: this.state,
      done: this.done,
      atWork: this.atWork,
      tree: Object.fromEntries(Object.keys(expected.tree ?? {}).map((id) => [id, tree[id] ?? ''])),
      tries: this.dispatched.map(({ blockId, attempt }) => `${blockId}${attempt}`),
      withdrawn: (last?.withdrawals ?? []).map(({ blockId }) => blockId),
      asked: this.asked.length,
      failure: snapshot.execution.y?.message,
      data: snapshot.data,
      wakeAt: last?.wakeAt ?? null,
      nextFireAt: snapshot.nextFireAt,
      waits: snapshot.execution.w === 1,
    };
    const seen = Object.keys(expected).map((name) => [name, sight[name as keyof Sight]]);
    assert.deepEqual(Object.fromEntries(seen), expected);
    return this;
  }

  /** Ids of the blocks at work, in order of dispatch. */
  get atWork(): string[] {
    return [...this.open.values()].map(({ blockId }) => blockId);
  }

  /** `block` or `block@iteration` of real rows, in order. */
  get done(): string[] {
    return this.rows
      .filter(({ outputRef }) => outputRef === null)
      .map(({ blockId, iteration }) => (iteration === '' ? blockId : `${blockId}@${iteration}`));
  }

  /** The open leaves that wait for somebody outside: `said`, `event` or `child`, with block and iteration. */
  get awaited(): string[] {
    return this.awaitedTries.map(({ name }) => name).sort();
  }

  get awaitedTries() {
    const { execution } = this.snapshot;
    return Object.entries(execution.o).flatMap(([key, record]) => {
      const { p = 'ready', a: attempt } = record as Partial<StepRecord>;
      const kind = WAITS[p];
      if (kind === undefined) return [];
      const node = this.plan.nodes[Number(key)]!;
      const iteration = iterationOf(execution, node);
      const step = { node: node.index, iteration, attempt: attempt! };
      // A child has a number of its own instead.
      const path = [node.id, iteration, ...(kind === 'event' ? [attempt] : [])];
      return [{ ...step, kind, block: node.id, name: `${kind}:${path.join('/')}` }];
    });
  }

  outputOf(blockId: string): JsonValue | undefined {
    return this.rows.findLast((row) => row.blockId === blockId)?.output;
  }

  /** State by block id, as the tree shows it. */
  get tree(): Record<string, string> {
    const nodes = treeOf(this.plan, this.snapshot.execution, this.snapshot.id);
    return Object.fromEntries(nodes.map((node) => [node.block_id, node.state]));
  }

  #env(): Env {
    return { ...ENV, now: this.now, ...this.env };
  }

  #record(progress: Progress): void {
    if (progress.dropErrorRows) {
      this.rows = this.rows.filter((row) => row.outputRef !== '__error__');
    }
    const { droppedOutputs } = progress;
    this.rows = this.rows.filter(({ blockId }) => !droppedOutputs.includes(blockId));
    for (const row of progress.outputs) {
      const twin = this.rows.find(
        ({ blockId, iteration, attempt, outputRef }) =>
          blockId === row.blockId &&
          iteration === row.iteration &&
          attempt === row.attempt &&
          // What a person said has a place of its own.
          outputRef !== GATE_REF &&
          row.outputRef !== GATE_REF,
      );
      assert.equal(twin, undefined, `two rows for ${row.blockId} ${row.iteration} ${row.attempt}`);
      this.rows.push(row);
    }
    for (const withdrawal of progress.withdrawals) this.open.delete(keyOf(withdrawal));
    for (const dispatch of progress.dispatches) {
      this.dispatched.push(dispatch);
      this.open.set(keyOf(dispatch), dispatch);
    }
    this.asked.push(...progress.rateRequests);
    this.children.push(...(progress.children ?? []));
    for (const { eventType, fromState, toState } of progress.audit) {
      if (eventType === 'state_transition') this.transitions.push(`${fromState}>${toState}`);
    }
  }
}

/** An instance that has started. */
export const play = (blocks: Block[], options?: PlayerOptions): Player =>
  new Player(blocks, options).start();

const keyOf = (step: { node: number; iteration: string; attempt: number }): string =>
  `${step.node}/${step.iteration}/${step.attempt}`;

export function clone(snapshot: Snapshot): Snapshot {
  const { outputs, snapshots, ...plain } = snapshot;
  return {
    ...(JSON.parse(JSON.stringify(plain)) as Omit<Snapshot, 'outputs' | 'snapshots'>),
    execution: JSON.parse(JSON.stringify(snapshot.execution)) as Execution,
    outputs: new Map(JSON.parse(JSON.stringify([...outputs])) as [string, KeptOutput][]),
    snapshots: new Map(JSON.parse(JSON.stringify([...snapshots])) as [string, JsonValue[]][]),
  };
}

// ---------------------------------------------------------------- blocks in few words

export const noop = (id: string): Block => ({ type: 'step', id, handler: 'noop' });

export const failing = (id: string): Block => ({ type: 'step', id, handler: 'fail' });

export function transform(id: string, params: JsonObject): Block {
  return { type: 'step', id, handler: 'transform', params };
}

/** A step of an external worker. */
export function work(id: string, fields: object = {}): Block {
  return { type: 'step', id, handler: 'work', ...fields };
}

export function http(id: string, fields: object = {}): Block {
  return { type: 'step', id, handler: 'http_request', ...fields };
}

export function sleep(id: string, duration: number, fields: object = {}): Block {
  return { type: 'step', id, handler: 'sleep', params: { duration_ms: duration }, ...fields };
}

export function parallel(id: string, ...branches: Block[][]): Block {
  return { type: 'parallel', id, branches };
}

export const race = (id: string, ...branches: Block[][]): Block => ({ type: 'race', id, branches });

export function tryCatch(id: string, body: Block[], rescue: Block[], last?: Block[]): Block {
  const base = { type: 'try_catch', id, try_block: body, catch_block: rescue } as const;
  return last === undefined ? base : { ...base, finally_block: last };
}

export function loop(id: string, condition: string, max: number, body: Block[]): Block {
  return { type: 'loop', id, condition, max_iterations: max, body };
}

export function forEach(id: string, collection: string, body: Block[], fields: object = {}): Block {
  return { type: 'for_each', id, collection, body, ...fields };
}
