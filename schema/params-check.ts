/**
 * Checks the parameters of steps with built-in handlers in a definition. Each handler's row (`handlers.ts`) is compiled
 * on first use. Values with templates are known only at run time and are not checked.
 */

import type { TSchema } from '@sinclair/typebox';
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import { isJsonObject, type JsonObject, ownValue } from '../src/base/json.js';
import { hasTemplate } from '../src/base/template-places.js';
import { type Finding, findingOf } from './finding.js';
import { type BuiltinName, HANDLER_PARAMS } from './handlers.js';
import { findingOfError } from './messages.js';
import { checkUserSchema } from './user-schema.js';

export interface ParamProblem extends Finding {
  /** Every such step fails; otherwise the handler replaces the value. */
  readonly isFatal: boolean;
}

/** Beyond hand-written sizes, only the first problem is reported. */
const MEMBERS_MAX = 1_000;

const ajvOf = (allErrors: boolean) => {
  const ajv = new Ajv2020({ strict: true, allErrors, verbose: true, validateSchema: false });
  return ajv.addVocabulary(['x-otherwise', 'x-any-case', 'x-check']);
};
const AJVS = { all: ajvOf(true), first: ajvOf(false) };

/** @returns paths begin with `params` */
export function checkParams(handler: BuiltinName, params: JsonObject): ParamProblem[] {
  const many = Object.values(params).some(
    (value) => typeof value === 'object' && value !== null && sizeOf(value) > MEMBERS_MAX,
  );
  // Compiled once: the compiler keeps the result for each schema.
  const validate = AJVS[many ? 'first' : 'all'].compile(HANDLER_PARAMS[handler]);
  const problems = new Map<string, ParamProblem>();
  for (const problem of schemaProblems(handler, params)) problems.set(problem.path, problem);
  for (const error of validate(params) ? [] : (validate.errors ?? [])) {
    if (isFine(error)) continue;
    const problem = problemOf(error);
    if (!problems.has(problem.path)) problems.set(problem.path, problem);
  }
  return [...problems.values()];
}

function schemaProblems(handler: BuiltinName, params: JsonObject): ParamProblem[] {
  const members = Object.entries<TSchema>(HANDLER_PARAMS[handler].properties);
  return members.flatMap(([name, { 'x-check': check }]) => {
    const schema = ownValue(params, name);
    if (check !== 'json-schema' || !isJsonObject(schema)) return [];
    const problem = checkUserSchema(schema);
    if (problem === undefined) return [];
    return [{ ...findingOf(`params.${name}`, `params.${name} ${problem}`), isFatal: true }];
  });
}

function sizeOf(value: object): number {
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/** `verbose` adds the value and the violated schema. */
function isFine({ keyword, data, parentSchema }: ErrorObject): boolean {
  if (typeof data !== 'string') return false;
  if (hasTemplate(data)) return true;
  if (keyword !== 'enum' || parentSchema?.['x-any-case'] !== true) return false;
  return (parentSchema.enum as unknown[]).includes(data.toUpperCase());
}

function problemOf(error: ErrorObject): ParamProblem {
  const otherwise: string | undefined = error.parentSchema?.['x-otherwise']?.[error.keyword];
  const place = { ...error, instancePath: `/params${error.instancePath}` };
  const more = otherwise === undefined ? '' : `; anything else ${otherwise}`;
  return { ...findingOfError(place, 'params', more), isFatal: otherwise === undefined };
}
