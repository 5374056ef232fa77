/** The codes of errors: what each means, and what the caller should do. */

import { ERROR_STATUS, type ErrorCode } from '../../src/errors.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

interface ErrorTold {
  readonly means: string;
  readonly remedy: string;
}

const ERRORS: { readonly [Code in ErrorCode]: ErrorTold } = {
  ENG_INVALID_JSON: {
    means: 'The body is not JSON, or not UTF-8.',
    remedy: 'Mend the body.',
  },
  ENG_VALIDATION: {
    means:
      'A field, a query or path parameter, or a header is missing, of the wrong type or outside its limits; or the body holds what cannot be stored unchanged, such as an integer beyond 2^53. The message names the place. Also answered when `x-tenant-id` is required and absent.',
    remedy: 'Mend what the message names.',
  },
  ENG_INVALID_TRANSITION: {
    means:
      'The instance cannot go from its present state to the requested one, or is not failed and cannot be retried.',
    remedy: 'Read the instance; ask for a move that its state allows.',
  },
  ENG_REFUSED_DATA: {
    means:
      'The database refused the data of this request although it passed every check. Nothing of it was stored.',
    remedy:
      'Change the data; the message has the reason. Report it, since the checks should have found it.',
  },
  ENG_UNAUTHENTICATED: {
    means: 'No key, or one that is wrong, revoked or expired, in `x-api-key` or as a bearer token.',
    remedy: 'Send a valid key.',
  },
  ENG_FORBIDDEN: {
    means:
      'The key lacks the capability, or only the root key may do this; or the header `x-tenant-id` or the body names another tenant than the key or the header. Never about what belongs to somebody else.',
    remedy:
      'Use a key that may; see [authorization.md](../authorization.md). Send one tenant in all places.',
  },
  ENG_NOT_FOUND: {
    means:
      "No such route, instance, sequence, release or worker task; also for what belongs to another tenant, and for a worker's call without `claim_epoch` about a claim that the worker does not hold.",
    remedy: 'Check the path, the id and the tenant. A worker drops the task.',
  },
  ENG_METHOD_NOT_ALLOWED: {
    means: 'The path exists, but not with this method.',
    remedy: 'Use a method that the header `allow` names.',
  },
  ENG_CONFLICT: {
    means:
      'True when asked, not now: an id or a name and version that exists, a sequence with live or failed instances, a deletion under way, a release in another state than the move starts from or whose gates do not pass, as many keys as there may be; a migration or handoff that was decided on what has changed since, a capsule, receipt or grant that does not fit, an instance that belongs elsewhere ([migration.md](../migration.md#what-a-refusal-means)).',
    remedy: 'Read what is there and decide anew.',
  },
  ENG_STALE_EPOCH: {
    means:
      'The worker holds no claim on the task at this `claim_epoch`, or its `checkpoint_seq` is not the last one. Somebody else may have the task.',
    remedy:
      'Stop working on the task. After a checkpoint conflict, send the number that the message names.',
  },
  ENG_TOO_LARGE: {
    means:
      'The body, a context, an output, a checkpoint, injected blocks or the outputs that a fork copies are larger than their limit.',
    remedy:
      'Send less, or raise `ENGINE_MAX_BODY_BYTES`, `ENGINE_MAX_CONTEXT_BYTES` or `ENGINE_MAX_OUTPUT_BYTES`.',
  },
  ENG_INPUT_SCHEMA: {
    means:
      '`context.data` of a new instance does not conform to the `input_schema` of its sequence.',
    remedy: 'Mend the data.',
  },
  ENG_TOO_MANY_STREAMS: {
    means: '256 streams of changes are open.',
    remedy: 'Ask again after the wait, or read pages instead.',
  },
  ENG_HEADERS_TOO_LARGE: {
    means: 'The request line and the headers together are larger than 16 KiB.',
    remedy: 'Send fewer or shorter headers.',
  },
  ENG_INTERNAL: {
    means:
      "A defect. The body says `internal error`; the log has the stack under the request's id.",
    remedy: 'Ask again once, then report it with the id.',
  },
  ENG_DELIVERY_FAILED: {
    means:
      'A webhook that was to be redelivered was not taken by its receiver. It is kept, and its delivery log says why.',
    remedy: 'Mend the receiver, then redeliver again, or discard it.',
  },
  ENG_DATABASE_DOWN: {
    means:
      'The database cannot be reached, takes no writes or lacks what is needed (the message says why, with the SQLSTATE), or the connection that carried the change was lost before its answer (*unknown outcome*).',
    remedy: 'Ask again after the wait.',
  },
  ENG_OVERLOADED: {
    means:
      'A limit on waiting work was reached: requests in flight, large bodies, commits behind, lists being read, heavy work such as comparing large sequences, or one instance with too many messages. Also for a sequence that is being deleted, for an idempotency key whose instance is being removed with its sequence, and for an answer that did not come in time (*unknown outcome*).',
    remedy: 'Ask again after the wait, with fewer requests at once.',
  },
  ENG_SLOW_READ: {
    means: 'A list or report took longer than 10 s and was given up.',
    remedy: 'Ask in the cheaper way that the message names.',
  },
  ENG_NO_KEYS: {
    means:
      'What seals or signs was asked of a server without an encryption key, or what was sealed with a key that it does not have any more.',
    remedy:
      'Start it with `ENGINE_ENCRYPTION_KEY`, and with the former one in `ENGINE_OLD_ENCRYPTION_KEY`.',
  },
  ENG_STANDBY: {
    means:
      'Another engine owns the database, and this one waits to take over; or this one was paused for so long that it has to look who does.',
    remedy: 'Ask the engine whose `/health/ready` answers 200.',
  },
  ENG_STARTING: {
    means: 'The engine did not become ready within the 10 s that the request waited.',
    remedy: 'Ask again after the wait.',
  },
  ENG_STOPPING: {
    means: 'The engine is stopping.',
    remedy: 'Ask another engine, or this one after its restart.',
  },
  ENG_SHARD_RESTARTING: {
    means:
      'A thread of the engine is being replaced, or an earlier change of the same instance was refused and this one with it. When the thread died with the request, the outcome is unknown.',
    remedy: 'Ask again after the wait.',
  },
};

export function errorRegions(): Regions {
  const codes = Object.keys(ERROR_STATUS) as ErrorCode[];
  const rows = codes.map((name) => {
    const { means, remedy } = ERRORS[name];
    return [code(name), String(ERROR_STATUS[name]), means, remedy];
  });
  return { errors: table(['code', 'status', 'meaning', 'what the caller should do'], rows) };
}
