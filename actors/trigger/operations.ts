/** The operations on triggers. */

import { ofFirstShard, type RouteOperations } from '../runtime/operation.js';
import type { Triggers } from './triggers.js';

export interface TriggerParts {
  readonly triggers: Triggers | undefined;
}

export const TRIGGER_OPERATIONS = {
  'triggers.create': { serve: ({ triggers }, call) => ofFirstShard(triggers).create(call) },
  'triggers.update': { serve: ({ triggers }, call) => ofFirstShard(triggers).update(call) },
  'triggers.delete': { serve: ({ triggers }, call) => ofFirstShard(triggers).delete(call) },
} satisfies Partial<RouteOperations<TriggerParts>>;
