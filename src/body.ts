/** From the text of a request's body to its checked value: done once, by the thread that owns it. */

import { type BodyOf, type BodyRouteId, ROUTES } from '../schema/routes.js';
import type { Validators } from '../schema/validators.js';
import { isJsonObject } from './core/json.js';
import { BODY_JSON_LIMITS, type JsonProblem, parseJson } from './core/json-guard.js';
import { listIn } from './core/json-items.js';
import { judgeDefinition } from './definition.js';
import { EngineError, invalid, tooLarge } from './errors.js';

/** An item of a list whose items are judged one by one, in the place of one that is wrong. */
export class RefusedItem {
  readonly item: unknown;
  readonly error: EngineError;

  constructor(item: unknown, error: EngineError) {
    this.item = item;
    this.error = error;
  }
}

/**
 * @param isListed the refusal of a definition has its mistakes as lists, too
 * @throws EngineError 400 that names the field or the place, 413 for more values than a body may have
 */
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

/**
 * The value of a text in which there is something that cannot be kept, if that is within items that are
 * judged one by one: they are `RefusedItem` in it.
 *
 * @throws EngineError what is wrong beside the items
 */
function itemwise(operation: BodyRouteId, text: string, problem: JsonProblem): unknown {
  if (problem.kind === 'values') throw tooLarge(problem.message);
  const { judgesEach: member } = ROUTES[operation];
  const isJson = problem.kind !== 'syntax' && problem.kind !== 'utf8' && isParsed(text);
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
    // Whatever else is wrong with it, nothing in it has a place.
    return false;
  }
}

/**
 * The body with `RefusedItem` in the place of each item that is wrong, if the items of its list are
 * judged one by one; undefined: they are not, or it is the list that is wrong.
 *
 * @throws EngineError what is wrong beside the list
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
  const rest = validators.validateBody(operation, { ...body, [member]: [] });
  if (!rest.ok) throw invalid(rest.message);
  const judged = items.map((item, at) => {
    if (item instanceof RefusedItem) return item;
    const one = validators.validateBody(operation, { ...body, [member]: [item] });
    if (one.ok) return item;
    return new RefusedItem(item, invalid(one.message.replace(`${member}[0]`, `${member}[${at}]`)));
  });
  return { ...(rest.value as object), [member]: judged } as BodyOf<Id>;
}
