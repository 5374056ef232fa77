/** What the router gives an operation of the front thread, for tests that call one without it. */

import type { FrontRouteId } from '../../schema/routes.js';
import { IN_PLACE } from '../../src/base/offload.js';
import type { Call, UncheckedCall } from '../../src/http/operation.js';
import { checkCall, frontBodies } from '../../src/http/operation.js';

const BODIES = frontBodies(IN_PLACE);

/** The body is short. @throws EngineError 400 when query or body are wrong */
export function frontCall<Id extends FrontRouteId>(
  id: Id,
  given: Partial<UncheckedCall> = {},
): Call<Id> {
  const call = checkCall(BODIES, id, {
    ...{ tenant: '', key: undefined, by: 'root', params: {} },
    path: `/api/v1/${id}`,
    search: '',
    bodyText: '',
    traceparent: undefined,
    header: () => undefined,
    allHeaders: () => ({}),
    peer: () => '127.0.0.1',
    raw: Buffer.alloc(0),
    ...given,
  });
  if (call instanceof Promise) throw new Error('the body is large');
  return call;
}
