/** Finds the route by method and path. */

import { matchRoute } from '../../../schema/route-match.js';
import { EngineError, invalid } from '../../base/errors.js';
import type { HeaderList } from '../reply.js';
import type { HttpRequest } from '../server.js';
import type { RequestContext } from './context.js';
import type { Outcome } from './step.js';

export class MethodNotAllowed extends EngineError {
  readonly allow: readonly string[];

  constructor(method: string, allow: readonly string[]) {
    super('ENG_METHOD_NOT_ALLOWED', `method ${method} is not allowed here`);
    this.allow = allow;
  }
}

/** @throws EngineError 404, 405 (as MethodNotAllowed) or 400 for a bad encoding */
export function match(context: RequestContext): Outcome {
  const { request, exchange } = context;
  const found = matchRoute(request.method, request.path);
  if (found === 'not-found') {
    throw new EngineError('ENG_NOT_FOUND', `not found: no route ${request.path}`);
  }
  if (found === 'bad-encoding') throw invalid('the path is not percent-encoded UTF-8');
  if ('allow' in found) throw new MethodNotAllowed(request.method, found.allow);
  if (found.isBareAlias) exchange.addHeaders(deprecation(request));
  context.matched(found.route, found.params);
  return 'continue';
}

/** Every answer on a bare path, refusals too, names the prefixed path that replaces it. */
function deprecation({ path, query }: HttpRequest): HeaderList {
  const search = query === '' ? '' : `?${query}`;
  // These may stand in a request line, but would end the address within the header.
  const address = `/api/v1${path}${search}`.replace(/[<>"]/g, encodeURIComponent);
  return [
    ['deprecation', '@1767225600'],
    ['sunset', 'Sat, 01 Jan 2028 00:00:00 GMT'],
    ['link', `<${address}>; rel="successor-version"`],
  ];
}
