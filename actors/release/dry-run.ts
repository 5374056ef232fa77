/** Offload job: runs a definition that is not stored as a dry run, on the initial data of a stored instance. */

import { DRY_RUN_BYTES_MAX, type DryRun } from '../../schema/dry-run.js';
import type { CreateSequence } from '../../schema/sequence.js';
import { compileUserSchema } from '../../schema/user-schema.js';
import type { JsonObject } from '../../src/base/json.js';
import { compilePlan } from '../../src/core/plan.js';
import type { StoredStart } from './replay-reads.js';
import { inputCheck } from './stored-replays.js';
import { NeverEnds, TrialRun } from './trial.js';

export interface DryRunOrder {
  /** As JSON; its shape is valid. */
  readonly definition: string;
  readonly start: StoredStart;
}

export type DryRunEnd =
  | { readonly kind: 'ended'; readonly text: string }
  | { readonly kind: 'invalid' | 'unprocessable'; readonly message: string };

export async function dryRun({ definition, start }: DryRunOrder): Promise<DryRunEnd> {
  const { name, blocks, on_failure, on_cancel, input_schema, batch } = JSON.parse(
    definition,
  ) as CreateSequence;
  const hooks = { ...(on_failure && { on_failure }), ...(on_cancel && { on_cancel }) };
  const compiled = compilePlan({ id: name, name, version: 1, blocks, ...hooks }, compileUserSchema);
  if (!compiled.ok) return { kind: 'invalid', message: compiled.message };
  const { plan } = compiled;
  const data = JSON.parse(start.data) as JsonObject;
  const check = input_schema && inputCheck(compileUserSchema(input_schema), batch != null);
  const problem = check?.(data);
  if (problem !== undefined) return unprocessable(`context.data ${problem}`);
  const run = new TrialRun(plan, {
    id: start.id,
    data,
    config: JSON.parse(start.config) as JsonObject,
    runtime: { dry_run: true, dry_run_auto_approve: true },
    timezone: start.timezone,
    now: Date.parse(start.created_at),
    handlers: {},
    answers: {},
    arrivals: [],
    children: {},
  });
  const trial = await run.run().catch((error: unknown) => {
    if (error instanceof NeverEnds) return error;
    throw error;
  });
  if (trial instanceof NeverEnds) return unprocessable(trial.message);
  const { state, failure, outputs, data: left } = trial;
  const end: DryRun = { state, failure, data: left, tree: run.tree(), outputs };
  const text = JSON.stringify(end);
  return text.length > DRY_RUN_BYTES_MAX
    ? unprocessable(`the outputs are larger than ${DRY_RUN_BYTES_MAX} bytes`)
    : { kind: 'ended', text };
}

const unprocessable = (message: string): DryRunEnd => ({ kind: 'unprocessable', message });
