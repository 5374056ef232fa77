/** Counts the blocks of a definition before it is validated, for admission (docs/limits.md). */

import { HOOK_LISTS } from '../../../schema/blocks.js';
import { walkDefinition } from '../../../schema/members.js';
import { type BodyRouteId, ROUTES, type Route } from '../../../schema/routes.js';
import { isJsonObject, type JsonValue } from '../../../src/base/json.js';
import { BODY_JSON_LIMITS, parseJson } from '../../../src/base/json-guard.js';

export interface BlocksBody {
  readonly operation: BodyRouteId;
  readonly text: string;
}

/** Hooks included; in an invalid definition, the blocks that can be found. */
export function countBlocks({ operation, text }: BlocksBody): number {
  const parsed = parseJson(text, BODY_JSON_LIMITS);
  const { body: schema }: Route = ROUTES[operation];
  if (!parsed.ok || schema === undefined || !isJsonObject(parsed.value as JsonValue)) return 0;
  const definition = parsed.value as Readonly<Record<string, unknown>>;
  let blocks = 0;
  walkDefinition(schema, definition, '', {
    block: () => {
      blocks += 1;
    },
    unknown: () => undefined,
    text: () => undefined,
  });
  for (const name of HOOK_LISTS) {
    const hooks = definition[name];
    if (Array.isArray(hooks)) blocks += hooks.length;
  }
  return blocks;
}
