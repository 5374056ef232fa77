/**
 * The entry of the thread that replays ended runs, a Piscina task for each of them. The definitions
 * come with every run, since the thread may be a new one; their plans are kept while they are the same.
 */

import type { Block } from '../schema/blocks.js';
import { compileUserSchema } from '../schema/user-schema.js';
import type { Execution } from './core/execution.js';
import type { JsonObject, JsonValue } from './core/json.js';
import { type CompiledPlan, compilePlan } from './core/plan.js';
import type {
  RecordedOutput,
  RecordedRun,
  RecordedSignal,
  RecordedTask,
} from './core/releases/recording.js';
import { type ReplayOptions, replay, type Verdict } from './core/releases/replay.js';
import type { StoredRun } from './db/reads/replay-reads.js';

/** `SequenceDefinition`s as JSON. */
export interface Definitions {
  readonly baseline: string;
  readonly candidate: string;
}

export interface ReplayTask extends ReplayOptions {
  readonly definitions: Definitions;
  /** Absent: only whether the candidate can run at all is asked. */
  readonly run?: StoredRun;
}

export type ReplayAnswer =
  | { readonly kind: 'ready' }
  /** The candidate cannot run. */
  | { readonly kind: 'broken'; readonly message: string }
  | Verdict;

export default function runReplay({ definitions, run, ...options }: ReplayTask): ReplayAnswer {
  const { baseline, candidate, checkInput } = prepared(definitions);
  if (!candidate.ok) return { kind: 'broken', message: candidate.message };
  if (run === undefined) return { kind: 'ready' };
  if (!baseline.ok) return inconclusive('the baseline does not compile');
  if (run.has_injected) return inconclusive('it ran blocks of its own');
  const recorded = recordedOf(run);
  if (recorded === undefined) return inconclusive('it runs again');
  if (checkInput?.(recorded.data) !== undefined) {
    return inconclusive('the candidate does not take its data');
  }
  return replay(candidate.plan, baseline.plan, recorded, options);
}

function inconclusive(reason: string): Verdict {
  return { kind: 'inconclusive', reason };
}

// ---------------------------------------------------------------- definitions

interface Prepared {
  readonly definitions: Definitions;
  readonly baseline: CompiledPlan;
  readonly candidate: CompiledPlan;
  /** What the candidate finds wrong with the data of an instance. */
  readonly checkInput: ((data: JsonValue) => string | undefined) | undefined;
}

let last: Prepared | undefined;

function prepared(definitions: Definitions): Prepared {
  const { baseline, candidate } = definitions;
  if (last?.definitions.baseline === baseline && last.definitions.candidate === candidate) {
    return last;
  }
  const { input_schema: schema } = JSON.parse(candidate) as { input_schema?: JsonObject | null };
  last = {
    definitions,
    baseline: compiled(baseline),
    candidate: compiled(candidate),
    checkInput: schema == null ? undefined : compileUserSchema(schema),
  };
  return last;
}

function compiled(text: string): CompiledPlan {
  const { id, blocks } = JSON.parse(text) as { id: string; blocks: Block[] };
  return compilePlan({ id, blocks }, compileUserSchema);
}

// ---------------------------------------------------------------- runs

/** Undefined: it has not ended, or not any more. */
function recordedOf({ state, ...run }: StoredRun): RecordedRun | undefined {
  if (state !== 'completed' && state !== 'failed') return undefined;
  return {
    id: run.id,
    state,
    timezone: run.timezone,
    data: JSON.parse(run.data) as JsonObject,
    config: JSON.parse(run.config) as JsonObject,
    execution: JSON.parse(run.execution) as Execution,
    created_at: run.created_at,
    outputs: JSON.parse(run.outputs) as RecordedOutput[],
    tasks: JSON.parse(run.tasks) as RecordedTask[],
    signals: JSON.parse(run.signals) as RecordedSignal[],
  };
}
