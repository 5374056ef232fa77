/** Reports all errors of a definition at once, and warnings (docs/reference/definitions.md). */

import { type Finding, findingOf, findingsText, type ShapeErrors } from '../../schema/finding.js';
import { type BuiltinName, HTTP_TIMEOUT_MS_MAX } from '../../schema/handlers.js';
import { checkParams, type ParamProblem } from '../../schema/params-check.js';
import { type BodyRouteId, ROUTES } from '../../schema/routes.js';
import { type EngineError, invalid } from '../base/errors.js';
import { type JsonObject, ownValue } from '../base/json.js';
import { type Findings, lintDefinition } from '../core/lint/definition.js';

/** Of the body of a route that takes definitions. */
export interface Judgement extends Findings {
  refusal(): EngineError;
}

export interface JudgeOptions {
  /** What is wrong with its shape; absent when that is right. */
  readonly shape?: ShapeErrors;
  /** Blocks that stand elsewhere and run before. */
  readonly known?: ReadonlySet<string>;
  /** A refusal has the findings as lists beside its message. */
  readonly isListed?: boolean;
  /** The longest time that the server gives a call inside the process; absent: none is said. */
  readonly callMsMax?: number;
}

export function judgeDefinition(
  operation: BodyRouteId,
  body: unknown,
  { isListed, callMsMax, ...options }: JudgeOptions = {},
): Judgement {
  const { body: schema, definition: name = 'the body' } = ROUTES[operation];
  if (schema === undefined) throw new Error(`operation ${operation} takes no body`);
  const { errors, warnings } = lintDefinition(schema, body, {
    ...options,
    name,
    checkParams: (handler, params) => [
      ...checkParams(handler, params),
      ...(callMsMax === undefined ? [] : cutShort(params, callMsMax, handler)),
    ],
  });
  return judgementOf({ errors, warnings }, isListed);
}

/** @param isListed see `JudgeOptions` */
export function judgementOf({ errors, warnings }: Findings, isListed = false): Judgement {
  return {
    errors,
    warnings,
    refusal: () =>
      invalid(
        findingsText([...errors, ...warnings]),
        isListed ? { ...listOf('errors', errors), ...listOf('warnings', warnings) } : undefined,
      ),
  };
}

/** A request may ask for more time than the server gives: it is cut off then. */
function cutShort(params: JsonObject, callMsMax: number, handler: BuiltinName): ParamProblem[] {
  const given = handler === 'http_request' ? ownValue(params, 'timeout_ms') : undefined;
  const isMore = typeof given === 'number' && given > callMsMax && given <= HTTP_TIMEOUT_MS_MAX;
  if (!isMore) return [];
  const path = 'params.timeout_ms';
  const meant = `the server cuts the call off after ${callMsMax} ms (ENGINE_STEP_TIMEOUT_MAX_SECS)`;
  return [{ ...findingOf(path, `${path} is ${given}, but ${meant}`), isFatal: false }];
}

function listOf(name: 'errors' | 'warnings', findings: readonly Finding[]) {
  return findings.length === 0 ? {} : { [name]: findings };
}
