/** The operations on credentials. */

import { ofFirstShard, type RouteOperations } from '../runtime/operation.js';
import type { Credentials } from './credentials.js';

export interface CredentialParts {
  readonly credentials: Credentials | undefined;
}

export const CREDENTIAL_OPERATIONS = {
  'credentials.create': {
    serve: ({ credentials }, call) => ofFirstShard(credentials).create(call),
  },
  'credentials.update': {
    serve: ({ credentials }, call) => ofFirstShard(credentials).update(call),
  },
  'credentials.delete': {
    serve: ({ credentials }, call) => ofFirstShard(credentials).delete(call),
  },
} satisfies Partial<RouteOperations<CredentialParts>>;
