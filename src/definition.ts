/**
 * What callers are told of a definition that they send: everything that is wrong with it at once, and what
 * is odd (docs/reference/definitions.md).
 */

import type { Finding, ShapeErrors } from '../schema/finding.js';
import { checkParams } from '../schema/params-check.js';
import { type BodyRouteId, ROUTES } from '../schema/routes.js';
import { type Findings, lintDefinition } from './core/lint/definition.js';
import { type EngineError, invalidDefinition } from './errors.js';

/** Of the body of a route that takes definitions. */
export interface Judgement extends Findings {
  /** The answer that refuses it. */
  refusal(): EngineError;
}

export interface JudgeOptions {
  /** What is wrong with its shape; absent when that is right. */
  readonly shape?: ShapeErrors;
  /** Blocks that stand elsewhere and run before. */
  readonly known?: ReadonlySet<string>;
  /** A refusal has the findings as lists beside its message. */
  readonly isListed?: boolean;
}

export function judgeDefinition(
  operation: BodyRouteId,
  body: unknown,
  { isListed, ...options }: JudgeOptions = {},
): Judgement {
  const { body: schema, definition: name = 'the body' } = ROUTES[operation];
  if (schema === undefined) throw new Error(`operation ${operation} takes no body`);
  const { errors, warnings } = lintDefinition(schema, body, { ...options, name, checkParams });
  return {
    errors,
    warnings,
    refusal: () =>
      invalidDefinition(
        [...errors, ...warnings],
        isListed ? { ...listOf('errors', errors), ...listOf('warnings', warnings) } : undefined,
      ),
  };
}

function listOf(name: 'errors' | 'warnings', findings: readonly Finding[]) {
  return findings.length === 0 ? {} : { [name]: findings };
}
