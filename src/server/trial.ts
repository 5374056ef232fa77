/**
 * Runs a definition in this process, without a server, for unit tests of definitions (`client/src/testing/run.ts`),
 * which load it from the server's bundle.
 */

import { type Trial, type TrialOptions, TrialRun } from '../../actors/release/trial.js';
import type { CreateSequence } from '../../schema/sequence.js';
import { compileUserSchema } from '../../schema/user-schema.js';
import { createValidators } from '../../schema/validators.js';
import { invalid } from '../base/errors.js';
import type { JsonObject } from '../base/json.js';
import { compilePlan } from '../core/plan.js';
import { parseBody } from '../http/body.js';

const VALIDATORS = createValidators();
/** Where a definition would be stored that does not say it. */
const PLACE: object = { tenant_id: 'test', namespace: 'default' };

export interface DefinitionOptions extends TrialOptions {
  /** With `batch`: data of several creations. Default: `data` alone. */
  readonly items?: readonly JsonObject[];
}

/** @throws EngineError for an invalid definition or input, Error for a handler or child that is missing */
export async function runDefinition(
  definition: CreateSequence,
  options: DefinitionOptions,
): Promise<Trial> {
  const text = JSON.stringify({ ...PLACE, ...definition });
  const { blocks, on_failure, on_cancel, input_schema, batch, name } = parseBody(
    VALIDATORS,
    'sequences.create',
    text,
  );
  const hooks = { ...(on_failure && { on_failure }), ...(on_cancel && { on_cancel }) };
  const compiled = compilePlan({ id: name, name, version: 1, blocks, ...hooks }, compileUserSchema);
  if (!compiled.ok) throw invalid(compiled.message);
  const { data, items, ...others } = options;
  if (items !== undefined && batch == null) {
    throw invalid('items must be absent: the sequence has no batch');
  }
  const given = items ?? [data];
  if (input_schema != null) {
    const problem = given
      .map(compileUserSchema(input_schema as JsonObject))
      .find((found) => found !== undefined);
    if (problem !== undefined) throw invalid(`context.data ${problem}`);
  }
  const started = batch == null ? data : { items: [...given] };
  return new TrialRun(compiled.plan, { ...others, data: started }, runDefinition).run();
}
