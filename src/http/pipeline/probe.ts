/** Answers open probes: they require neither key nor tenant nor an engine that has started. */

import type { RoutesOf } from '../../../schema/routes.js';
import type { MatchedContext } from './context.js';
import type { Outcome, RouterDeps } from './step.js';

export function probe(
  { exchange, route, params }: MatchedContext,
  { operations, protectDocs }: Pick<RouterDeps, 'operations' | 'protectDocs'>,
): Outcome {
  if (route.owner !== 'probe' || (protectDocs && route.isDocument)) return 'continue';
  exchange.reply(operations[route.id as RoutesOf<'probe'>](params));
  return 'answered';
}
