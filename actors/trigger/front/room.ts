/**
 * Triggers on the front thread: reads, and fires by requests and by stored events. A fire is a creation by name. The
 * nonce of a signed request, or the id of an event, is the idempotency key of the instance, so that each is used once.
 */

import type { CreateInstance } from '../../../schema/instance.js';
import { ROUTES } from '../../../schema/routes.js';
import { EngineError, invalid, notFound } from '../../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.js';
import { decodeUtf8 } from '../../../src/base/json-guard.js';
import { lastUsed, valueFor } from '../../../src/base/quota/last-used.js';
import { SecondLimit } from '../../../src/base/quota/rates.js';
import { owned } from '../../../src/base/tenancy.js';
import { openSecret, type StoredSecret } from '../../../src/core/sealing/sealing.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import {
  bodyIn,
  type FrontBodies,
  type FrontDeps,
  jsonReply,
  listBy,
  type Operation,
} from '../../../src/http/operation.js';
import type { Admission } from '../../../src/http/ports.js';
import { EventFiring, type FiringEvent, firingEvents } from '../../event/front/firing.js';
import type { eventOperations } from '../../event/room.js';
import type { Shards } from '../../runtime/shards.js';
import { isSameText, signatureProblem } from '../core/trigger-signature.js';
import { TRIGGER_SQL, type TriggerRow, wireTrigger } from '../loads.js';
import { TRIGGERS } from '../tables.js';

type Kernel = FrontKernel<Shards<typeof eventOperations>>;
type Client = Pick<Shards, 'ask' | 'anyShard'>;

/** `Trigger` records, oldest first, without their secrets. */
const triggerList = list({
  columns: selected(columnsBut(TRIGGERS)),
  from: 'triggers',
  by: filtersOf(TRIGGERS, ['tenant_id', 'namespace', 'sequence_name', 'trigger_type']),
  order: orderBy(TRIGGERS, ['created_at', 'slug']),
  toText: (row: TriggerRow) => JSON.stringify(wireTrigger(row)),
});

const triggerBySlug = lookup<TriggerRow>('read_trigger', TRIGGER_SQL.trigger);
const RECEIVE = ROUTES['triggers.receive'];

export function openTriggerFront(kernel: Kernel, admission: Admission) {
  const { client, reads, bodies } = kernel;
  const firing = new EventFiring({
    ...kernel,
    page: (at, id, rows) => firingEvents.rows(reads, at, id, rows),
    fire: (slug, event) => fireByEvent(client, reads, slug, event),
    fired: ({ id, key_id }, fires) =>
      client.ask(client.shardOf(key_id), 'events.fired', '', '', { id, fires }),
  });
  return {
    parts: [firing],
    operations: {
      'triggers.list': listBy(triggerList),
      'triggers.get': async (deps, { tenant, params: { slug } }) =>
        jsonReply(JSON.stringify(wireTrigger(await ownTrigger(deps.reads, tenant, slug)))),
      'triggers.fire': async (deps, { tenant, params: { slug }, body, header }) => {
        const row = await ownTrigger(deps.reads, tenant, slug);
        const secret = secretOf(deps, row);
        if (secret !== undefined && !isSameText(header('x-trigger-secret') ?? '', secret)) {
          throw unauthenticated('x-trigger-secret does not fit');
        }
        if (!row.enabled) throw invalid(`trigger ${slug} is disabled`);
        const { id } = await create(client, row, { source: 'http_fire' }, body);
        const fired = { instance_id: id, trigger: slug, sequence_name: row.sequence_name };
        return { status: 201, body: JSON.stringify(fired) };
      },
      'triggers.receive': receiveBy(client, bodies, admission),
    },
    // Events of the last process may have unfired triggers.
    start: () => firing.wake(),
    eventsFired: () => firing.wake(),
    drain: () => firing.stop(),
  } satisfies FrontRoom;
}

async function ownTrigger(reads: FrontDeps['reads'], tenant: string, slug: string) {
  return owned(await triggerBySlug.row(reads, slug), tenant, `trigger ${slug}`);
}

function unauthenticated(why: string): EngineError {
  return new EngineError('ENG_UNAUTHENTICATED', `unauthorized: ${why}`);
}

/** Undefined when the trigger has no secret. @throws EngineError 401 when the secret cannot be opened */
function secretOf({ keyring }: FrontDeps, row: TriggerRow): string | undefined {
  if (row.secret === null) return undefined;
  const stored = JSON.parse(row.secret) as StoredSecret;
  const secret = openSecret({ id: row.slug, tenant_id: row.tenant_id }, stored, keyring);
  if (secret !== undefined) return secret;
  throw unauthenticated('the secret of the trigger cannot be opened with the key of the server');
}

/** @param event describes the fire in the metadata of the instance */
async function create(
  client: Client,
  { slug, ...row }: TriggerRow,
  event: JsonObject,
  data: JsonObject,
  idempotency_key?: string,
): Promise<{ readonly id: string; readonly deduplicated: boolean }> {
  const body: CreateInstance = {
    tenant_id: row.tenant_id,
    namespace: row.namespace,
    sequence: row.sequence_name,
    ...(row.version === null ? {} : { version: row.version }),
    priority: 'normal',
    metadata: { _trigger: slug, _trigger_type: row.trigger_type, _trigger_event: event },
    context: { data },
    ...(idempotency_key === undefined ? {} : { idempotency_key }),
  };
  const to = [client.anyShard(), 'instances.create', row.tenant_id, ''] as const;
  return JSON.parse((await client.ask(...to, JSON.stringify(body))).body);
}

const receiveBy = (
  client: Client,
  bodies: FrontBodies,
  admission: Admission,
): Operation<'triggers.receive'> => {
  const limit = new SenderLimit();
  return async (deps, { params, header, raw, peer }) => {
    const { id: slug } = params;
    limit.take(`${peer()} ${slug}`, deps.now());
    const row = await triggerBySlug.row(deps.reads, slug);
    if (row?.trigger_type !== 'webhook' || !row.enabled) throw notFound(`webhook ${slug}`);
    const secret = secretOf(deps, row);
    if (secret === undefined) throw unauthenticated('the trigger has no secret');
    const head = {
      timestamp: header('x-trigger-timestamp'),
      nonce: header('x-trigger-nonce'),
      signature: header('x-engine-signature'),
    };
    const problem = signatureProblem(head, raw, secret, deps.now());
    if (problem !== undefined) throw unauthenticated(problem);
    await deps.admitTenant(row.tenant_id);
    const agent = header('user-agent');
    const event = { source: 'public_webhook', ...(agent !== undefined && { user_agent: agent }) };
    const once = `trigger:${slug}:${head.nonce}`;
    // Admission follows the read, because only the row of the trigger has the tenant.
    const leave = await admission.admit({
      ...{ route: RECEIVE, tenant: row.tenant_id, isRoot: false },
      ...{ body: raw, params },
    });
    const { id, deduplicated } = await dataIn(bodies, row.tenant_id, raw)
      .then((data) => create(client, row, event, data, once))
      .finally(leave);
    if (deduplicated) throw unauthenticated('x-trigger-nonce was used already');
    return { status: 202, body: JSON.stringify({ instance_id: id, trigger: slug }) };
  };
};

/** Rejects with an EngineError: 400 or 413. */
async function dataIn(bodies: FrontBodies, tenant: string, raw: Buffer): Promise<JsonObject> {
  const text = decodeUtf8(raw);
  if (text === undefined) throw invalid('the body is not UTF-8');
  return bodyIn(bodies, 'triggers.receive', tenant, text);
}

/** Starts one instance per event, even if the trigger is disabled now. @throws EngineError */
async function fireByEvent(
  client: Client,
  reads: FrontDeps['reads'],
  slug: string,
  { id: event_id, tenant_id, event_name, correlation_key, payload }: FiringEvent,
): Promise<void> {
  const row = await ownTrigger(reads, tenant_id, slug);
  const raw = JSON.parse(payload ?? 'null') as JsonValue;
  const data = isJsonObject(raw) ? raw : { payload: raw };
  const event = { source: 'event', event_id, event_name, correlation_key };
  await create(client, row, event, data, `trigger:${slug}:event:${event_id}`);
}

/** Limit of one sender, who has no key, for one trigger. */
export const WEBHOOKS_PER_SECOND_MAX = 300;
/** The count of an evicted sender starts again. */
const SENDERS_REMEMBERED = 10_000;

const TOO_MANY = new EngineError(
  'ENG_TOO_MANY_WEBHOOKS',
  `too many requests: more than ${WEBHOOKS_PER_SECOND_MAX} webhooks to one trigger in a second`,
  1_000,
);

/** Counts webhooks before any read. */
export class SenderLimit {
  readonly #limits = lastUsed<string, SecondLimit>(SENDERS_REMEMBERED);

  /** @throws EngineError 429 */
  take(sender: string, nowMs: number): void {
    const limit = valueFor(this.#limits, sender, () => new SecondLimit(WEBHOOKS_PER_SECOND_MAX));
    if (!limit.admits(nowMs)) throw TOO_MANY;
  }
}
