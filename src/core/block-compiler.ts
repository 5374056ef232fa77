/**
 * What a kind of block is given when its blocks are compiled: by it the kind says what the block reads, and
 * what is wrong with it. There are two of them: `plan.ts` makes the plan that instances run by, and
 * `lint/block-reader.ts` collects what is to be told of a definition that somebody wants to store.
 */

import type { Block } from '../../schema/blocks.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import type { Condition, Parsed } from './condition.js';
import type { OutputReads } from './expression/scope.js';
import type { SchemaCheck } from './plan-nodes.js';
import type { Template } from './template.js';

/** Where an expression stands, and what becomes of it. */
export interface ExpressionUse {
  /** The path of the member within the block. */
  readonly member: string;
  /** What happens when it does not parse: the end of a sentence. */
  readonly unparsed: string;
  /** Evaluated again after the blocks inside have run. */
  readonly isRepeated?: true;
}

/** Why a template that nobody is called with is refused. */
export const NO_SECRETS = 'names a secret: only http_request and workers are called with secrets';

export interface BlockCompiler {
  /** What is probably a mistake. Never fatal. */
  warn(member: string, message: string, suggestion?: string): void;
  /** The definition is not accepted (400). */
  refuse(member: string, message: string): void;
  /** Parses an expression that the block will evaluate. */
  expression(text: string, use: ExpressionUse): Parsed<Condition>;
  /**
   * Compiles a value with templates that the block will render.
   *
   * @param use who is called with what was rendered, and may be given secrets; absent: nobody
   */
  template(value: JsonValue, member: string, use?: 'call'): Template;
  /** Outputs that the block reads, if not by an expression or template from here. */
  reads(outputs: OutputReads): void;
  /** The check of an `output_schema`. */
  outputSchema(schema: JsonObject): SchemaCheck;
  /** The block acts on the world outside, so that its instances do more than one commit. */
  noteEffect(): void;
}

/** The expression that has to hold for the block to run; undefined: it always does. */
export function guardOf(
  { type, when }: Pick<Block, 'type' | 'when'>,
  compiler: BlockCompiler,
): Parsed<Condition> | undefined {
  if (when == null) return undefined;
  const unparsed = `fails the ${type === 'step' ? 'step' : 'block'}`;
  return compiler.expression(when, { member: 'when', unparsed });
}

/** What does not parse counts as false (docs/reference/expressions.md). */
export function conditionOf(
  compiler: BlockCompiler,
  text: string,
  use: Omit<ExpressionUse, 'unparsed'>,
): Condition | undefined {
  const parsed = compiler.expression(text, { ...use, unparsed: 'is false' });
  return parsed.ok ? parsed.value : undefined;
}
