/** Answers requests for the dashboard, which has no routes. */

import type { RequestContext } from './context.js';
import type { Outcome, RouterDeps } from './step.js';

/** @throws EngineError 404 for an unknown file */
export function page(
  { request, exchange }: RequestContext,
  { pages }: Pick<RouterDeps, 'pages'>,
): Outcome {
  const reply = pages(request);
  if (reply === undefined) return 'continue';
  exchange.reply(reply);
  return 'answered';
}
