/** The operations on triggers. */

import type { RouteOperations } from '../runtime/operation.js';
import type { Triggers } from './triggers.js';

export function triggerOperations(triggers: Triggers) {
  return {
    'triggers.create': { serve: (call) => triggers.create(call) },
    'triggers.update': { serve: (call) => triggers.update(call) },
    'triggers.delete': { serve: (call) => triggers.delete(call) },
  } satisfies RouteOperations;
}
