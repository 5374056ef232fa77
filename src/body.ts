/** From the text of a request's body to its checked value: done once, by the thread that owns it. */

import { type BodyOf, type BodyRouteId, ROUTES } from '../schema/routes.js';
import type { Validators } from '../schema/validators.js';
import { parseJson } from './core/json-guard.js';
import { judgeDefinition } from './definition.js';
import { EngineError, invalid } from './errors.js';

/**
 * @param isListed the refusal of a definition has its mistakes as lists, too
 * @throws EngineError 400 that names the field or the place
 */
export function parseBody<Id extends BodyRouteId>(
  validators: Validators,
  operation: Id,
  text: string,
  isListed = false,
): BodyOf<Id> {
  const isLeftOut = text === '' && ROUTES[operation].isBodyOptional === true;
  const parsed = parseJson(isLeftOut ? '{}' : text);
  if (!parsed.ok) {
    const code = parsed.problem.kind === 'syntax' ? 'ENG_INVALID_JSON' : 'ENG_VALIDATION';
    throw new EngineError(code, `invalid argument: ${parsed.problem.message}`);
  }
  const checked = validators.validateBody(operation, parsed.value);
  if (!checked.ok) {
    if (ROUTES[operation].definition === undefined) throw invalid(checked.message);
    const shape = validators.describeBody(operation, parsed.value);
    throw judgeDefinition(operation, parsed.value, { shape, isListed }).refusal();
  }
  return checked.value;
}
