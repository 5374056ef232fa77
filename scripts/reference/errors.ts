/** The codes of errors: what each means, and what the caller should do. */

import { ERROR_STATUS, type ErrorCode } from '../../src/base/errors.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

interface ErrorText {
  readonly means: string;
  readonly remedy: string;
}

const ERRORS: { readonly [Code in ErrorCode]: ErrorText } = {
  ENG_INVALID_JSON: {
    means: 'The body is not JSON, or not UTF-8.',
    remedy: 'Correct the body.',
  },
  ENG_VALIDATION: {
    means:
      'A field, a parameter or a header is missing, of the wrong type, or outside its limits; for definitions the message names [all errors](definitions.md). Also: a required `x-tenant-id` is absent, or the body has a value that cannot be stored unchanged, such as an integer beyond 2^53.',
    remedy: 'Correct what the message names.',
  },
  ENG_INVALID_TRANSITION: {
    means:
      'The instance cannot go from its current state to the requested one. Also: a retry of an instance that has not failed.',
    remedy: 'Read the instance, and request a transition that its state allows.',
  },
  ENG_REFUSED_DATA: {
    means: 'The data passed every check, but the database refused it. Nothing was stored.',
    remedy: 'Change the data; the message has the reason. Report it: a check is missing.',
  },
  ENG_UNAUTHENTICATED: {
    means: 'The key is missing, wrong, revoked or expired.',
    remedy: 'Send a valid key in `x-api-key`, or as a bearer token.',
  },
  ENG_FORBIDDEN: {
    means:
      'The key lacks the capability, or the key, the header `x-tenant-id` and the body name different tenants. Resources of other tenants are 404, never 403.',
    remedy:
      'Use another key ([authorization.md](../authorization.md)), or name one tenant everywhere.',
  },
  ENG_NOT_FOUND: {
    means:
      'There is no such path, instance, sequence, release or task, or it belongs to another tenant. Also: a worker without `claim_epoch` calls about a task that it does not hold.',
    remedy: 'Check the path, the id and the tenant. A worker drops the task.',
  },
  ENG_METHOD_NOT_ALLOWED: {
    means: 'The path exists, but not with this method.',
    remedy: 'Use a method of the header `allow`.',
  },
  ENG_CONFLICT: {
    means:
      'The current state does not allow it: the name or id exists, the sequence has live or failed instances, a deletion is in progress, the release is in another state or its gates do not pass, the number of keys is at its limit, or the resource has changed ([`if_unchanged_since`](#changing-what-you-have-read)). For migrations and handoffs see [migration.md](../migration.md#what-a-refusal-means).',
    remedy: 'Read the current state, and decide again.',
  },
  ENG_STALE_EPOCH: {
    means:
      'The worker does not hold the task under this `claim_epoch`, or the `checkpoint_seq` is not the last one.',
    remedy:
      'Stop working on the task. After a wrong `checkpoint_seq`, send the number in the message.',
  },
  ENG_RESULT_REPEATED: {
    means:
      'The worker has already ended this task under this `claim_epoch`. The first result counts.',
    remedy: 'Nothing.',
  },
  ENG_GONE: {
    means: 'The link to an approval has expired.',
    remedy: 'Ask its sender for another one.',
  },
  ENG_TOO_LARGE: {
    means:
      'The body, a context, an output, a checkpoint, injected blocks, or the outputs that a fork copies exceed a limit.',
    remedy:
      'Send less, or raise `ENGINE_MAX_BODY_BYTES`, `ENGINE_MAX_CONTEXT_BYTES` or `ENGINE_MAX_OUTPUT_BYTES`.',
  },
  ENG_UNSUPPORTED_ENCODING: {
    means: 'The body is compressed: its `content-encoding` is not `identity`.',
    remedy: 'Send it uncompressed.',
  },
  ENG_WRONG_CELL: {
    means:
      'The tenant, or the `x-cell` of the request, belongs to another [cell](../operate/cells.md), which the member `cell` and the header `x-cell` name. Nothing was done.',
    remedy:
      'Send it to that cell. A proxy updates its map within seconds; if the error persists, check the map.',
  },
  ENG_INPUT_SCHEMA: {
    means:
      'A new instance does not fit its sequence: `context.data` does not conform to the `input_schema`, or gives no key for a limit; or it brings a `concurrency_key` although the sequence has `concurrency`.',
    remedy: 'Correct the data, or omit the key.',
  },
  ENG_TEMPLATE: {
    means:
      'A template of a [trigger](../triggers.md) comes to null, to a blank text, or to one that is too long. The message names its member.',
    remedy: 'Correct the template or the request, or give the template a fallback.',
  },
  ENG_TOO_MANY_CONNECTIONS: {
    means:
      'One address has too many open connections, or one connection has 100 unanswered requests and is closed.',
    remedy: 'Reuse connections, and wait for responses.',
  },
  ENG_TOO_MANY_REQUESTS: {
    means: 'One address has too many requests in flight, including waiting polls and streams.',
    remedy:
      'Wait for responses. Set `ENGINE_MAX_REQUESTS_PER_ADDRESS`, or `ENGINE_TRUSTED_PROXIES` if many clients share an address.',
  },
  ENG_TOO_MANY_WEBHOOKS: {
    means: 'One sender has sent more than 300 webhooks to one trigger within a second.',
    remedy: 'Retry after a second.',
  },
  ENG_TENANT_LIMIT: {
    means:
      'The tenant has reached a limit: bytes of bodies, rows, blocks or schedules per second, or open tasks. The message names it ([limits.md](../limits.md#work-of-a-tenant)).',
    remedy: 'Retry after the wait. The operator raises limits with `PUT /tenants/{id}/limits`.',
  },
  ENG_TENANT_SHARE: {
    means:
      'The tenant uses its whole share of a common resource: streams of instances, concurrent lists and reports, heavy work, validations. The message names it.',
    remedy: 'Retry after the wait, with fewer concurrent requests.',
  },
  ENG_TOO_MANY_STREAMS: {
    means:
      'All streams of changes are in use, or 256 of one tenant; the last ones are reserved for tenants with few.',
    remedy: 'Retry after the wait, or read pages.',
  },
  ENG_HEADERS_TOO_LARGE: {
    means: 'The request line and the headers together exceed 16 KiB.',
    remedy: 'Send fewer or shorter headers.',
  },
  ENG_INTERNAL: {
    means:
      'A defect of the server. The body is `internal error`; the log has details under the request id.',
    remedy: 'Retry once, then report it with the id.',
  },
  ENG_DELIVERY_FAILED: {
    means:
      'The receiver did not accept a redelivered webhook. It is kept; its delivery log has the reason.',
    remedy: 'Repair the receiver and redeliver, or discard the webhook.',
  },
  ENG_DATABASE_DOWN: {
    means:
      'The database is unreachable, refuses writes, or lacks something. The message has the reason and the SQLSTATE. *Unknown outcome*: the connection was lost during the change. *May still be made*: the disk became full.',
    remedy: 'Retry after the wait.',
  },
  ENG_OVERLOADED: {
    means:
      'Too many requests, large bodies, commits, lists, heavy work, or messages to one instance are waiting. Also: the sequence, or the instance of the idempotency key, is being deleted. *Unknown outcome*: no response in time.',
    remedy: 'Retry after the wait, with fewer concurrent requests.',
  },
  ENG_SLOW_READ: {
    means: 'A list or report took longer than 10 s and was aborted.',
    remedy: 'Use the cheaper request that the message names.',
  },
  ENG_DIRECTORY_DOWN: {
    means:
      'The engine does not know the tenant, and cannot reach the directory of the [cluster](../operate/cells.md). Nothing was done.',
    remedy: 'Retry after the wait.',
  },
  ENG_NO_CELL: {
    means: 'The tenant is new, and no cell of the cluster takes new tenants.',
    remedy: 'Open a cell (`cells open NAME`), or place the tenant by hand.',
  },
  ENG_TENANT_MOVING: {
    means: 'The tenant is being moved to another cell. Nothing was done.',
    remedy: 'Retry after the wait.',
  },
  ENG_NO_KEYS: {
    means: 'The server has no encryption key, or not the one that sealed this.',
    remedy:
      'Start it with `ENGINE_ENCRYPTION_KEY`, and the former key in `ENGINE_OLD_ENCRYPTION_KEY`.',
  },
  ENG_STANDBY: {
    means:
      'Another engine owns the database, or this one was suspended and must check its ownership first.',
    remedy: 'Use the engine whose `/health/ready` answers 200.',
  },
  ENG_STARTING: {
    means: 'The engine did not become ready within the 10 s that the request waited.',
    remedy: 'Retry after the wait.',
  },
  ENG_STOPPING: {
    means: 'The engine is stopping.',
    remedy: 'Use another engine, or this one after its restart.',
  },
  ENG_SHARD_RESTARTING: {
    means:
      'A part of the engine is restarting, or an earlier change of the same instance was refused, and this one with it. The outcome may be unknown.',
    remedy: 'Retry after the wait.',
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
