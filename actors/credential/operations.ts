/** The operations on credentials. */

import type { RouteOperations } from '../runtime/operation.js';
import type { Credentials } from './credentials.js';

export function credentialOperations(credentials: Credentials) {
  return {
    'credentials.create': { serve: (call) => credentials.create(call) },
    'credentials.update': { serve: (call) => credentials.update(call) },
    'credentials.delete': { serve: (call) => credentials.delete(call) },
  } satisfies RouteOperations;
}
