/**
 * The interface through which block kinds report the outputs that their blocks read, and problems. `plan.ts` implements
 * it to build plans, `lint/definition.ts` to collect findings before a definition is stored.
 */

import type { Block } from '../../schema/blocks.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import type { Condition } from './condition.js';
import type { OutputReads } from './expression/scope.js';
import type { Parsed } from './parsed.js';
import type { SchemaCheck } from './plan-nodes.js';
import type { Template } from './template.js';

/** Where an expression stands, and what happens when it does not parse. */
export interface ExpressionUse {
  readonly member: string;
  /** The effect of an expression that does not parse, as the end of a sentence. */
  readonly unparsed: string;
  /** The expression is evaluated again after the blocks inside have run. */
  readonly isRepeated?: true;
}

/** Why templates outside of calls may not name secrets. */
export const NO_SECRETS = 'names a secret: only http_request and workers are called with secrets';

export interface BlockCompiler {
  /** Reports a probable mistake, which never refuses the definition. */
  warn(member: string, message: string, suggestion?: string): void;
  refuse(member: string, message: string): void;
  expression(text: string, use: ExpressionUse): Parsed<Condition>;
  /** Compiles a value with templates. @param use `call`: a handler or worker gets the value, and may receive secrets */
  template(value: JsonValue, member: string, use?: 'call'): Template;
  /** Adds outputs that the block reads other than through expressions and templates compiled here. */
  reads(outputs: OutputReads): void;
  outputSchema(schema: JsonObject): SchemaCheck;
}

export function guardOf({ type, when }: Pick<Block, 'type' | 'when'>, compiler: BlockCompiler) {
  if (when == null) return undefined;
  const unparsed = `fails the ${type === 'step' ? 'step' : 'block'}`;
  return compiler.expression(when, { member: 'when', unparsed });
}

/** Compiles a condition; one that does not parse counts as false (docs/reference/expressions.md). */
export function conditionOf(
  compiler: BlockCompiler,
  text: string,
  use: Omit<ExpressionUse, 'unparsed'>,
): Condition | undefined {
  const parsed = compiler.expression(text, { ...use, unparsed: 'is false' });
  return parsed.ok ? parsed.value : undefined;
}
