/** What a request changes and who sent it, for the actions of its tenant (docs/actions.md). */

import { actionDetails, isAction } from '../../schema/action.js';
import { ROUTES, type RouteId } from '../../schema/routes.js';
import { isJsonObject, type JsonObject } from '../base/json.js';

/** @property key undefined: the root key, or none */
export interface Requester {
  readonly by: string;
  readonly key?: string | undefined;
}

export interface RequestedAction extends Requester {
  /** The units of a request have the same one, of which the first counts. */
  readonly id: string;
  readonly operation: RouteId;
  /** Undefined: the new object. */
  readonly target: string | undefined;
  readonly details: JsonObject;
}

/** @param target the path parameters, separated by slashes @returns undefined for a request that is no action */
export function requestedAction(
  operation: RouteId,
  { by, key }: Requester,
  target: string,
  body: unknown,
  newId: () => string,
): RequestedAction | undefined {
  const { action: mark, paramNames } = ROUTES[operation];
  if (mark === undefined) return undefined;
  const members = isJsonObject(body) ? body : {};
  if (!isAction(mark, members)) return undefined;
  const params = paramNames.length > 1 ? target.split('/') : [target];
  const inPath = Object.fromEntries(paramNames.map((name, at) => [name, params[at] as string]));
  const named = mark.target.map((member) => members[member]).find((value) => value != null);
  const details = actionDetails(mark, members, inPath) as JsonObject;
  const changed = named === undefined ? params[0] : String(named);
  return { id: newId(), by, key, operation, target: changed || undefined, details };
}
