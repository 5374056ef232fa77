/** The pipeline of a request. The order of the steps decides which of several errors a caller gets. */

import { answer } from './pipeline/answer.js';
import { admission, cell, key, placement, signal, tenant } from './pipeline/caller.js';
import {
  type MatchedContext,
  RequestContext,
  type RouterDeps,
  type Step,
} from './pipeline/context.js';
import { refuse } from './pipeline/refuse.js';
import { lifetime, match, page, parameters, probe, start, state } from './pipeline/routing.js';
import type { HttpHandler } from './server.js';

const STEPS: readonly Step[] = [
  ...[page, match, probe, start],
  ...[cell, key, tenant, state, placement, admission],
  ...[parameters, signal, lifetime, answer],
];

export function createRouter(deps: RouterDeps): HttpHandler {
  return (request, exchange) => {
    // The steps after `match` rely on `route`.
    run(deps, new RequestContext(deps.watch, request, exchange) as MatchedContext, 0);
  };
}

/** Runs the steps from `from` on, until one waits, refuses or answers. */
function run(deps: RouterDeps, context: MatchedContext, from: number): void {
  try {
    for (let at = from; at < STEPS.length; at += 1) {
      const outcome = (STEPS[at] as Step)(context, deps);
      if (outcome === 'answered') return;
      if (outcome === 'continue') continue;
      outcome.then(
        (settled) => {
          if (settled === 'continue') run(deps, context, at + 1);
        },
        (error: unknown) => refuse(context, deps.log, error),
      );
      return;
    }
  } catch (error) {
    refuse(context, deps.log, error);
  }
}
