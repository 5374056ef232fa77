/** The entry of the thread that replays instances up to their frontier, a Piscina task for each. */

import type { Block } from '../schema/blocks.js';
import { compileUserSchema } from '../schema/user-schema.js';
import type { EffectReceipt } from './core/continuity/effects.js';
import {
  type FrontierOptions,
  type FrontierVerdict,
  replayToFrontier,
} from './core/continuity/frontier.js';
import type { Execution } from './core/execution.js';
import type { JsonObject } from './core/json.js';
import { type CompiledPlan, compilePlan } from './core/plan.js';
import type { RecordedOutput, RecordedSignal, RecordedTask } from './core/releases/recording.js';
import type { StoredRun } from './db/reads/replay-reads.js';

export interface FrontierTask extends Pick<FrontierOptions, 'unpoliciedRetry'> {
  /** `SequenceDefinition`s as JSON. */
  readonly source: string;
  readonly target: string;
  readonly isSame: boolean;
  readonly life: StoredRun;
  /** JSON: see `FrontierCase`. */
  readonly sourceData: string;
  readonly targetData: string;
  readonly hasTransforms: boolean;
  readonly receipts: readonly EffectReceipt[];
}

export default function replayFrontier(task: FrontierTask): FrontierVerdict {
  const { life, isSame, hasTransforms, receipts, unpoliciedRetry } = task;
  if (life.has_injected) return { passed: false, reason: 'it runs blocks of its own' };
  const source = compiled(task.source);
  const target = compiled(task.target);
  if (!source.ok) return { passed: false, reason: `the source: ${source.message}` };
  if (!target.ok) return { passed: false, reason: `the target: ${target.message}` };
  return replayToFrontier(
    {
      source: source.plan,
      target: target.plan,
      isSame,
      hasTransforms,
      receipts,
      sourceData: JSON.parse(task.sourceData) as JsonObject,
      targetData: JSON.parse(task.targetData) as JsonObject,
      life: {
        id: life.id,
        timezone: life.timezone,
        created_at: life.created_at,
        data: JSON.parse(life.data) as JsonObject,
        config: JSON.parse(life.config) as JsonObject,
        execution: JSON.parse(life.execution) as Execution,
        outputs: JSON.parse(life.outputs) as RecordedOutput[],
        tasks: JSON.parse(life.tasks) as RecordedTask[],
        signals: JSON.parse(life.signals) as RecordedSignal[],
      },
    },
    { unpoliciedRetry },
  );
}

function compiled(definition: string): CompiledPlan {
  const { blocks } = JSON.parse(definition) as { blocks: Block[] };
  return compilePlan({ id: 'replayed', blocks }, compileUserSchema);
}
