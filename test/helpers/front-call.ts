/** What the router gives an operation of the front thread, for tests that call one without it. */

import type { FrontRouteId } from '../../schema/routes.js';
import { createValidators } from '../../schema/validators.js';
import { type Call, checkCall, type UncheckedCall } from '../../src/http/operations/operation.js';

const VALIDATORS = createValidators();

/** @throws EngineError 400 when query or body are wrong */
export function frontCall<Id extends FrontRouteId>(
  id: Id,
  given: Partial<UncheckedCall> = {},
): Call<Id> {
  return checkCall(VALIDATORS, id, {
    tenant: '',
    isOfTenantKey: false,
    by: 'root',
    host: undefined,
    wantsPage: false,
    params: {},
    path: `/api/v1/${id}`,
    search: '',
    bodyText: '',
    traceparent: undefined,
    header: () => undefined,
    peer: () => '127.0.0.1',
    raw: Buffer.alloc(0),
    lastEventId: undefined,
    ...given,
  });
}
