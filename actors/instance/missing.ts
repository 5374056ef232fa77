/** Answers about instances without rows, which may be yet to start from collected creations (docs/concurrency.md). */

import { conflict, DATABASE_AWAY, type EngineError, notFound } from '../../src/base/errors.js';
import type { ServiceDeps } from '../runtime/service.js';
import { repeatedReply } from './creation.js';
import type { InstanceEnv } from './live-instance.js';
import type { InstanceLoads } from './loads.js';
import type { Creation, InstanceRequest, Repeat, WorkerRequest } from './messages.js';

export interface MissingDeps extends Pick<ServiceDeps, 'release' | 'schedule'> {
  readonly loader: Pick<InstanceLoads, 'keyedInstance' | 'startOfInstance'>;
  readonly env: Pick<InstanceEnv, 'now' | 'shards'>;
  /** Repeats a creation whose existing instance has been deleted. */
  readonly createAgain: (creation: Creation) => void;
}

/** The idempotency key may belong to a collected creation, whose instance has another id. */
export function repeatOfMissing(deps: MissingDeps, id: string, message: Creation | Repeat): void {
  const { request, instance } = message;
  answered(deps, request, deps.loader.keyedInstance(id), (known) => {
    if (known !== undefined) deps.release([repeatedReply(request, instance, known, deps.env)]);
    else if (message.kind === 'create') deps.createAgain(message);
    else deps.release(message.otherwise);
  });
}

const READS: ReadonlySet<InstanceRequest['kind']> = new Set([
  'get',
  'tree',
  'look',
  'result',
  'standing',
]);

/** An instance that is yet to start cannot be read, and nothing can be done with it. */
export function requestOfMissing(
  deps: MissingDeps,
  id: string,
  { kind, request, tenant }: Exclude<InstanceRequest, WorkerRequest>,
): void {
  answered(deps, request, deps.loader.startOfInstance(id), (start) => {
    const isSeen = start !== undefined && (tenant === '' || tenant === start.tenant_id);
    const until = isSeen && `it collects creations until ${start.starts_at}`;
    if (until === false) fail(deps, request, notFound(`instance ${id}`));
    else if (READS.has(kind)) fail(deps, request, notFound(`instance ${id}: ${until}`));
    else {
      const advice = `start or drop it at /pending-starts/${id}`;
      fail(deps, request, conflict(`instance ${id} has not started: ${until}; ${advice}`));
    }
  });
}

function answered<T>(
  deps: MissingDeps,
  request: number,
  reading: Promise<T>,
  then: (read: T) => void,
): void {
  const { schedule } = deps;
  reading.then(
    (read) => schedule(() => then(read)),
    () => schedule(() => fail(deps, request, DATABASE_AWAY)),
  );
}

function fail({ release }: MissingDeps, request: number, error: EngineError): void {
  release([{ kind: 'error', request, error }]);
}
