/** Reports all errors of a definition at once, and warnings (docs/reference/definitions.md). */

import { type Finding, findingOf, findingsText, type ShapeErrors } from '../../schema/finding.js';
import { type BuiltinName, HTTP_TIMEOUT_MS_MAX } from '../../schema/handlers.js';
import { checkParams, type ParamProblem } from '../../schema/params-check.js';
import { type BodyRouteId, ROUTES } from '../../schema/routes.js';
import { type EngineError, invalid } from '../base/errors.js';
import { type JsonObject, ownValue } from '../base/json.js';
import { type Findings, lintDefinition } from '../core/lint/definition.js';

/** The findings in the body of a route that takes definitions. */
export interface Judgement extends Findings {
  refusal(): EngineError;
}

export interface JudgeOptions {
  readonly shape?: ShapeErrors;
  /** Blocks outside of the body that run before. */
  readonly known?: ReadonlySet<string>;
  /** The refusal contains the findings as lists beside its message. */
  readonly isListed?: boolean;
  /** The server's limit for an in-process call; absent: time-outs are not checked. */
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

/** Warns of a time-out above the server's limit, which applies instead. */
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
