/** The codes of errors: what each means, and what the caller should do. */

import { ERROR_STATUS, type ErrorCode } from '../../src/base/errors.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

interface ErrorTold {
  readonly means: string;
  readonly remedy: string;
}

const ERRORS: { readonly [Code in ErrorCode]: ErrorTold } = {
  ENG_INVALID_JSON: {
    means: 'The body is not JSON, or not UTF-8.',
    remedy: 'Correct the body.',
  },
  ENG_VALIDATION: {
    means:
      'A field, a parameter or a header is missing, of the wrong type, or outside its limits. The message names it; of a definition it names [all mistakes](definitions.md). Also: `x-tenant-id` is required and absent, or the body has what cannot be stored unchanged, such as an integer beyond 2^53.',
    remedy: 'Correct what the message names.',
  },
  ENG_INVALID_TRANSITION: {
    means:
      'The instance cannot go from its present state to the requested one. Also: a retry of an instance that has not failed.',
    remedy: 'Read the instance. Ask for a move that its state allows.',
  },
  ENG_REFUSED_DATA: {
    means:
      'The data passed every check, and the database refused it all the same. Nothing of it was stored.',
    remedy:
      'Change the data; the message has the reason. Report it: the checks should have found it.',
  },
  ENG_UNAUTHENTICATED: {
    means: 'No key was sent, or it is wrong, revoked or expired.',
    remedy: 'Send a valid key in `x-api-key`, or as a bearer token.',
  },
  ENG_FORBIDDEN: {
    means:
      'The key may not do this. Or two tenants are named: by the key, the header `x-tenant-id` and the body. What belongs to somebody else is 404, never 403.',
    remedy:
      'Use a key that may; see [authorization.md](../authorization.md). Send one tenant in all places.',
  },
  ENG_NOT_FOUND: {
    means:
      "There is no such path, instance, sequence, release or task, or it belongs to another tenant. Also: a worker's call without `claim_epoch` about a task that it does not hold.",
    remedy: 'Check the path, the id and the tenant. A worker drops the task.',
  },
  ENG_METHOD_NOT_ALLOWED: {
    means: 'The path exists, but not with this method.',
    remedy: 'Use a method that the header `allow` names.',
  },
  ENG_CONFLICT: {
    means:
      'It could be done at another time, but not now. The name or id exists already. The sequence has live or failed instances. A deletion is under way. The release is in another state, or its gates do not pass. There are as many keys as there may be. It was changed since it was read ([`if_unchanged_since`](#changing-what-you-have-read)). Of migrations and handoffs: it was decided on what has changed since, or something does not fit ([migration.md](../migration.md#what-a-refusal-means)).',
    remedy: 'Read what is there, and decide anew.',
  },
  ENG_STALE_EPOCH: {
    means:
      'The worker does not hold the task under this `claim_epoch`. Somebody else may have it. Or the `checkpoint_seq` is not the last one.',
    remedy:
      'Stop working on the task. After a wrong `checkpoint_seq`, send the number that the message names.',
  },
  ENG_RESULT_REPEATED: {
    means:
      'The worker has ended this task under this `claim_epoch` before: its first result was taken, and this one changes nothing.',
    remedy: 'Nothing: it is the answer to a result that is sent again.',
  },
  ENG_GONE: {
    means: 'The link to an approval has expired.',
    remedy: 'Ask whoever sent it for another one.',
  },
  ENG_TOO_LARGE: {
    means:
      'Something is larger than its limit: the body, a context, an output, a checkpoint, injected blocks, or the outputs that a fork copies.',
    remedy:
      'Send less, or raise `ENGINE_MAX_BODY_BYTES`, `ENGINE_MAX_CONTEXT_BYTES` or `ENGINE_MAX_OUTPUT_BYTES`.',
  },
  ENG_UNSUPPORTED_ENCODING: {
    means: 'The body is compressed: its `content-encoding` is not `identity`.',
    remedy: 'Send the body as it is.',
  },
  ENG_WRONG_CELL: {
    means:
      'Another [cell](../operate/cells.md) of the cluster has the tenant, or is the one that `x-cell` names. Its name is in the member `cell` and in the header `x-cell`. Nothing was done.',
    remedy:
      'Send it to that cell. Behind a proxy: its map is behind, which passes within seconds; try again, and look at the map if it does not pass.',
  },
  ENG_INPUT_SCHEMA: {
    means:
      '`context.data` of a new instance does not conform to the `input_schema` of its sequence.',
    remedy: 'Correct the data.',
  },
  ENG_TOO_MANY_CONNECTIONS: {
    means:
      'One address has as many connections open as it may, or one connection has 100 requests that wait for answers; it is closed.',
    remedy: 'Use the connections that are open, and wait for answers.',
  },
  ENG_TOO_MANY_REQUESTS: {
    means:
      'One address has as many requests in flight as it may, parked polls and streams among them.',
    remedy:
      'Wait for answers; set `ENGINE_MAX_REQUESTS_PER_ADDRESS`, or `ENGINE_TRUSTED_PROXIES` where many clients come through one address.',
  },
  ENG_TOO_MANY_WEBHOOKS: {
    means: 'One sender has sent more than 300 webhooks to one trigger within a second.',
    remedy: 'Send it again after a second.',
  },
  ENG_TENANT_LIMIT: {
    means:
      'The tenant has used up what it may ask for: bytes of bodies, rows, blocks or schedules in a second, or open tasks. The message names the unit and its bound ([limits.md](../limits.md#work-of-a-tenant)).',
    remedy:
      'Ask again after the wait. The operator raises the limits with `PUT /tenants/{id}/limits`.',
  },
  ENG_TENANT_SHARE: {
    means:
      'The tenant has its whole share of something that tenants have in common: streams of instances, lists and reports under way, heavy work, validations. The message names the bound.',
    remedy: 'Ask again after the wait, with fewer requests at once. Other tenants are served.',
  },
  ENG_TOO_MANY_STREAMS: {
    means:
      'All streams of changes that may be open are, or 256 of one tenant; the last ones are for tenants that have few.',
    remedy: 'Ask again after the wait, or read pages instead.',
  },
  ENG_HEADERS_TOO_LARGE: {
    means: 'The request line and the headers together are larger than 16 KiB.',
    remedy: 'Send fewer or shorter headers.',
  },
  ENG_INTERNAL: {
    means:
      "A defect of the server. The body says `internal error`; the log has more under the request's id.",
    remedy: 'Ask again once, then report it with the id.',
  },
  ENG_DELIVERY_FAILED: {
    means:
      'A webhook was to be sent again, and its receiver did not take it. It is kept; its delivery log says why.',
    remedy: 'Repair the receiver, then send again. Or discard the webhook.',
  },
  ENG_DATABASE_DOWN: {
    means:
      'The database cannot be reached, takes no writes, or lacks what is needed. The message says why, with the SQLSTATE. With *unknown outcome*: the connection was lost while the change was on its way. With *may still be made*: the disk became full meanwhile.',
    remedy: 'Ask again after the wait.',
  },
  ENG_OVERLOADED: {
    means:
      'Too much waits already: requests, large bodies, commits, lists, heavy work, or messages to one instance. Also: the sequence, or the instance of the idempotency key, is being deleted. With *unknown outcome*: the answer did not come in time.',
    remedy: 'Ask again after the wait, with fewer requests at once.',
  },
  ENG_SLOW_READ: {
    means: 'A list or report took longer than 10 s and was given up.',
    remedy: 'Ask in the cheaper way that the message names.',
  },
  ENG_DIRECTORY_DOWN: {
    means:
      'The tenant has not been seen by this engine, and the directory of the [cluster](../operate/cells.md) cannot be asked which cell has it. Nothing was done.',
    remedy: 'Wait as `retry-after` says and try again.',
  },
  ENG_NO_CELL: {
    means: 'The tenant is a new one, and no cell of the cluster takes new ones.',
    remedy: 'Open a cell: `cells open NAME`. Or place the tenant by hand.',
  },
  ENG_TENANT_MOVING: {
    means: 'The tenant is being moved to another cell. Nothing was done.',
    remedy: 'Wait as `retry-after` says and try again.',
  },
  ENG_NO_KEYS: {
    means: 'The server has no encryption key, or not the one that this was sealed with.',
    remedy:
      'Start it with `ENGINE_ENCRYPTION_KEY`, and with the key before it in `ENGINE_OLD_ENCRYPTION_KEY`.',
  },
  ENG_STANDBY: {
    means:
      'Another engine owns the database, and this one waits to take over. Or this one was stopped for so long that it has to look first.',
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
      'A part of the engine is being restarted. Or an earlier change of the same instance was refused, and this one with it. The outcome may be unknown.',
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
