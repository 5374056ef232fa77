/** Parses and validates request bodies. A side thread determines why a large one is invalid. */

import { setImmediate } from 'node:timers/promises';
import { type BodyOf, type BodyRouteId, ROUTES } from '../../schema/routes.js';
import { type Checked, createValidators, type Validators } from '../../schema/validators.js';
import { EngineError, type ErrorData, fromErrorData, invalid, tooLarge } from '../base/errors.js';
import { isJsonObject } from '../base/json.js';
import {
  BODY_JSON_LIMITS,
  type JsonProblem,
  parseJson,
  tooManyValues,
} from '../base/json-guard.js';
import { listIn } from '../base/json-members.js';
import type { Findings } from '../core/lint/definition.js';
import { judgeDefinition } from './definition.js';
import { cutJson } from './json-cut.js';

/** Replaces an invalid item of a list whose items are validated one by one. */
export class RefusedItem {
  readonly item: unknown;
  readonly error: EngineError;

  constructor(item: unknown, error: EngineError) {
    this.item = item;
    this.error = error;
  }
}

/** @throws EngineError 400 that names the field or position, 413 for too many values */
export function parseBody<Id extends BodyRouteId>(
  validators: Validators,
  operation: Id,
  text: string,
  isListed = false,
): BodyOf<Id> {
  const isLeftOut = text === '' && ROUTES[operation].isBodyOptional === true;
  const parsed = parseJson(isLeftOut ? '{}' : text, BODY_JSON_LIMITS);
  const value = parsed.ok ? parsed.value : itemwise(operation, text, parsed.problem);
  const checked = validators.validateBody(operation, value);
  if (!checked.ok) {
    const judged = judgeEach(validators, operation, value);
    if (judged !== undefined) return judged;
    if (ROUTES[operation].definition === undefined) throw invalid(checked.message);
    const shape = validators.describeBody(operation, value);
    throw judgeDefinition(operation, value, { shape, isListed }).refusal();
  }
  return checked.value;
}

/** @throws EngineError 400 */
export function validOf<T>(checked: Checked<T>): T {
  if (!checked.ok) throw invalid(checked.message);
  return checked.value;
}

/** In characters: parsing a longer body takes a millisecond or more, so it is parsed in pieces. */
export const LARGE_BODY = 64 * 1024;
/** Returns the body; undefined when it is invalid, and `judgeBody` determines why. */
export type BodyInPieces<Body> = Generator<void, Body | undefined, void>;
const PIECES_MS = 1;

/** Runs to the end, yielding to the event loop between pieces: for a thread without turns. */
export async function inPieces<Result>(pieces: Generator<void, Result, void>): Promise<Result> {
  for (;;) {
    const until = performance.now() + PIECES_MS;
    do {
      const { done, value } = pieces.next();
      if (done === true) return value as Result;
    } while (performance.now() < until);
    await setImmediate();
  }
}

/** @throws EngineError 413 for more values than a body may have */
export function* parseInPieces<Id extends BodyRouteId>(
  validators: Validators,
  operation: Id,
  text: string,
): BodyInPieces<BodyOf<Id>> {
  const cut = yield* cutJson(text, BODY_JSON_LIMITS);
  if (!cut.ok) {
    if (cut.hasTooMany) throw tooLarge(tooManyValues(BODY_JSON_LIMITS));
    return undefined;
  }
  const checked = validators.validateBody(operation, cut.value);
  return checked.ok ? checked.value : undefined;
}

export interface DoubtfulBody {
  readonly operation: BodyRouteId;
  readonly text: string;
  readonly isListed: boolean;
  /** Set to lint a definition: see `JudgeOptions`. */
  readonly callMsMax?: number | undefined;
}

export interface BodyJudgement {
  readonly error?: ErrorData;
  readonly findings?: Findings;
  /** The invalid items of a list whose items are validated one by one. */
  readonly refused: readonly { readonly at: number; readonly error: ErrorData }[];
}

let judging: Validators | undefined;

export function judgeBody({ operation, text, isListed, callMsMax }: DoubtfulBody): BodyJudgement {
  judging ??= createValidators();
  let body: unknown;
  try {
    body = parseBody(judging, operation, text, isListed);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { error: error.toData(), refused: [] };
  }
  if (callMsMax !== undefined) {
    const { errors, warnings } = judgeDefinition(operation, body, { callMsMax });
    return { findings: { errors, warnings }, refused: [] };
  }
  const { judgesEach: member } = ROUTES[operation];
  if (member === undefined) return { refused: [] };
  const items = (body as Record<string, readonly unknown[]>)[member] ?? [];
  const refused = items.flatMap((item, at) =>
    item instanceof RefusedItem ? [{ at, error: item.error.toData() }] : [],
  );
  return { refused };
}

/** Applies the judgement of `judgeBody`. @throws EngineError when the body is rejected */
export function* parseAsJudged<Id extends BodyRouteId>(
  validators: Validators,
  operation: Id,
  text: string,
  { error, findings, refused }: BodyJudgement,
): BodyInPieces<BodyOf<Id>> {
  if (error !== undefined) throw fromErrorData(error);
  const { judgesEach: member = '' } = ROUTES[operation];
  const cut = yield* cutJson(text, undefined);
  if (findings !== undefined && cut.ok) return cut.value as BodyOf<Id>;
  const items = cut.ok && isJsonObject(cut.value) ? cut.value[member] : undefined;
  if (!Array.isArray(items)) throw new Error('a body was judged to be right that is not');
  const judged: unknown[] = items;
  for (const { at, error } of refused)
    judged[at] = new RefusedItem(items[at], fromErrorData(error));
  yield;
  return judgeEach(validators, operation, cut.ok ? cut.value : undefined);
}

/**
 * Parses a text that contains a value that cannot be stored. If it is inside items that are validated one by one,
 * these become `RefusedItem`. @throws EngineError for a problem outside of the items
 */
function itemwise(operation: BodyRouteId, text: string, problem: JsonProblem): unknown {
  if (problem.kind === 'values') throw tooLarge(problem.message);
  const { judgesEach: member } = ROUTES[operation];
  const isJson = problem.kind !== 'syntax' && isParsed(text);
  const spans = member !== undefined && isJson ? listIn(text, member) : undefined;
  if (member === undefined || spans === undefined) throw unkept(problem);
  const [start, end] = spans.list;
  const rest = parseJson(`${text.slice(0, start)}[]${text.slice(end)}`, BODY_JSON_LIMITS);
  if (!rest.ok) throw unkept(rest.problem);
  const items = spans.items.map(([from, to], at) => {
    const item = text.slice(from, to);
    const parsed = parseJson(item, BODY_JSON_LIMITS);
    if (parsed.ok) return parsed.value;
    return new RefusedItem(JSON.parse(item), unkept(parsed.problem, `${member}[${at}]: `));
  });
  return { ...(rest.value as object), [member]: items };
}

function unkept({ kind, message }: JsonProblem, place = ''): EngineError {
  const code = kind === 'syntax' ? 'ENG_INVALID_JSON' : 'ENG_VALIDATION';
  return new EngineError(code, `invalid argument: ${place}${message}`);
}

function isParsed(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Invalid JSON has no items.
    return false;
  }
}

/**
 * The body with a `RefusedItem` for each invalid item, if its items are validated one by one; undefined: they are
 * not, or the list itself is invalid. @throws EngineError for a problem outside of the list
 */
function judgeEach<Id extends BodyRouteId>(
  validators: Validators,
  operation: Id,
  body: unknown,
): BodyOf<Id> | undefined {
  const { judgesEach: member, body: schema } = ROUTES[operation];
  if (member === undefined || !isJsonObject(body)) return undefined;
  const items = body[member];
  if (!Array.isArray(items) || items.length > schema?.properties[member].maxItems) return undefined;
  const rest = validOf(validators.validateBody(operation, { ...body, [member]: [] }));
  const judged = items.map((item, at) => {
    if (item instanceof RefusedItem) return item;
    const one = validators.validateBody(operation, { ...body, [member]: [item] });
    if (one.ok) return item;
    return new RefusedItem(item, invalid(one.message.replace(`${member}[0]`, `${member}[${at}]`)));
  });
  return { ...(rest as object), [member]: judged } as BodyOf<Id>;
}
