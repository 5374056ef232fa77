/** Offload jobs that replay stored runs, whose definitions and rows are JSON text. */

import type { Block } from '../../schema/blocks.js';
import type { Execution } from '../../schema/execution.js';
import { compileUserSchema } from '../../schema/user-schema.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../src/base/json.js';
import type { CollectingMembers } from '../../src/core/collecting.js';
import { type CompiledPlan, compilePlan, type SchemaCheck } from '../../src/core/plan.js';
import type { DefinitionPair } from './core/diff.js';
import {
  type FrontierCase,
  failure,
  type PositionVerdict,
  replayToPosition,
} from './core/position.js';
import type {
  RecordedLife,
  RecordedOutput,
  RecordedReceipt,
  RecordedRun,
  RecordedSignal,
  RecordedTask,
} from './core/recording.js';
import { inconclusive, replay, type Verdict } from './core/replay.js';
import type { RerunOptions } from './core/rerun.js';
import type { StoredRun } from './replay-reads.js';

export interface RunReplay extends RerunOptions {
  readonly definitions: DefinitionPair;
  readonly run: StoredRun;
}

/** The reason why the candidate cannot run; undefined when it can. */
export function compileCandidate(definitions: DefinitionPair): string | undefined {
  const { candidate } = prepared(definitions);
  return candidate.ok ? undefined : candidate.message;
}

export function replayRun({ definitions, run, ...options }: RunReplay): Verdict {
  const { baseline, candidate, checkInput } = prepared(definitions);
  if (!candidate.ok) return inconclusive('the candidate does not compile');
  if (!baseline.ok) return inconclusive('the baseline does not compile');
  if (run.has_injected) return inconclusive('it ran blocks of its own');
  const { state } = run;
  if (state !== 'completed' && state !== 'failed') return inconclusive('it runs again');
  const recorded: RecordedRun = { ...lifeOf(run), state };
  if (checkInput?.(recorded.data) !== undefined) {
    return inconclusive('the candidate does not take its data');
  }
  return replay(candidate.plan, baseline.plan, recorded, options);
}

interface Prepared {
  readonly definitions: DefinitionPair;
  readonly baseline: CompiledPlan;
  readonly candidate: CompiledPlan;
  /** Checks context.data against the input schema of the candidate. */
  readonly checkInput: ((data: JsonValue) => string | undefined) | undefined;
}

/** Cached, because a thread replays the runs of one validation in succession, each with the same definitions. */
let last: Prepared | undefined;

function prepared(definitions: DefinitionPair): Prepared {
  const { baseline, candidate } = definitions;
  if (last?.definitions.baseline === baseline && last.definitions.candidate === candidate) {
    return last;
  }
  const { input_schema: schema, batch } = JSON.parse(candidate) as StoredMembers;
  last = {
    definitions,
    baseline: compiled(baseline),
    candidate: compiled(candidate),
    checkInput: schema == null ? undefined : inputCheck(compileUserSchema(schema), batch != null),
  };
  return last;
}

type StoredMembers = CollectingMembers & { readonly input_schema?: JsonObject | null };

/** The input schema of a sequence with batch is for each of the items. */
export function inputCheck(check: SchemaCheck, isOfItems: boolean): SchemaCheck {
  if (!isOfItems) return check;
  return (data) => {
    const items = isJsonObject(data) ? ownValue(data, 'items') : undefined;
    if (!Array.isArray(items)) return check(data);
    return items.map(check).find((problem) => problem !== undefined);
  };
}

export interface MigrationReplay
  extends Pick<RerunOptions, 'unpoliciedRetry'>,
    Pick<FrontierCase, 'isSame' | 'hasTransforms' | 'receipts'> {
  readonly source: string;
  readonly target: string;
  readonly life: StoredRun;
  readonly sourceData: string;
  readonly targetData: string;
}

export function replayMigration({ unpoliciedRetry, ...stored }: MigrationReplay): PositionVerdict {
  if (stored.life.has_injected) return failure('OWN_BLOCKS', 'the instance runs blocks of its own');
  const source = compiled(stored.source);
  const target = compiled(stored.target);
  if (!source.ok) return failure('REPLAY_IMPOSSIBLE', `the source: ${source.message}`);
  if (!target.ok) return failure('REPLAY_IMPOSSIBLE', `the target: ${target.message}`);
  const replayed: FrontierCase = {
    ...stored,
    source: source.plan,
    target: target.plan,
    sourceData: JSON.parse(stored.sourceData) as JsonObject,
    targetData: JSON.parse(stored.targetData) as JsonObject,
    life: lifeOf(stored.life),
  };
  return replayToPosition(replayed, { unpoliciedRetry });
}

function compiled(definition: string): CompiledPlan {
  const { blocks } = JSON.parse(definition) as { blocks: Block[] };
  return compilePlan({ id: 'replayed', blocks }, compileUserSchema);
}

function lifeOf(run: StoredRun): RecordedLife {
  return {
    id: run.id,
    timezone: run.timezone,
    data: JSON.parse(run.data) as JsonObject,
    config: JSON.parse(run.config) as JsonObject,
    execution: JSON.parse(run.execution) as Execution,
    created_at: run.created_at,
    outputs: JSON.parse(run.outputs) as RecordedOutput[],
    tasks: JSON.parse(run.tasks) as RecordedTask[],
    receipts: JSON.parse(run.receipts) as RecordedReceipt[],
    signals: JSON.parse(run.signals) as RecordedSignal[],
  };
}
