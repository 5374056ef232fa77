/**
 * Reads and fires of triggers. A fire is an authorised creation by name. The nonce of a signed request and the id of an
 * event are the idempotency key of the instance, so that each is used once.
 */

import type { CreateInstance } from '../../../schema/instance.js';
import { ROUTES } from '../../../schema/routes.js';
import { EngineError, invalid, notFound } from '../../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../src/base/json.js';
import { decodeUtf8 } from '../../../src/base/json-guard.js';
import { owned } from '../../../src/base/tenancy.js';
import { openSecret, type StoredSecret } from '../../../src/core/sealing/sealing.js';
import type { Admission } from '../../../src/http/admission.js';
import {
  bodyIn,
  type FrontBodies,
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  listBy,
  type Operation,
} from '../../../src/http/operation.js';
import type { FiringEvent } from '../../event/front/firing.js';
import type { Shards } from '../../runtime/shards.js';
import { isSameText, signatureProblem } from '../core/trigger-signature.js';
import { type TriggerRow, triggerBySlug, triggerList, triggerText } from './reads.js';
import { SenderLimit } from './sender-limit.js';

async function ownTrigger({ reads }: FrontDeps, tenant: string, slug: string): Promise<TriggerRow> {
  return owned(await triggerBySlug.row(reads, slug), tenant, `trigger ${slug}`);
}

const RECEIVE = ROUTES['triggers.receive'];

const get: Operation<'triggers.get'> = async (deps, { tenant, params: { slug } }) =>
  jsonReply(triggerText(await ownTrigger(deps, tenant, slug)));

function unauthenticated(why: string): EngineError {
  return new EngineError('ENG_UNAUTHENTICATED', `unauthorized: ${why}`);
}

/** Undefined: the trigger has none. @throws EngineError 401 when it cannot be opened */
function secretOf({ keyring }: FrontDeps, row: TriggerRow): string | undefined {
  if (row.secret === null) return undefined;
  const stored = JSON.parse(row.secret) as StoredSecret;
  const secret = openSecret({ id: row.slug, tenant_id: row.tenant_id }, stored, keyring);
  if (secret !== undefined) return secret;
  throw unauthenticated('the secret of the trigger cannot be opened with the key of the server');
}

/** @param event the fire, for the metadata of the instance */
function creationBy(
  { slug, ...row }: TriggerRow,
  event: JsonObject,
  data: JsonObject,
  idempotency_key?: string,
): CreateInstance {
  return {
    tenant_id: row.tenant_id,
    namespace: row.namespace,
    sequence: row.sequence_name,
    ...(row.version === null ? {} : { version: row.version }),
    priority: 'normal',
    metadata: { _trigger: slug, _trigger_type: row.trigger_type, _trigger_event: event },
    context: { data },
    ...(idempotency_key === undefined ? {} : { idempotency_key }),
  };
}

interface Created {
  readonly id: string;
  readonly deduplicated: boolean;
}

type Client = Pick<Shards, 'ask' | 'anyShard'>;

async function create(client: Client, body: CreateInstance): Promise<Created> {
  const asked = [client.anyShard(), 'instances.create', body.tenant_id, ''] as const;
  return JSON.parse((await client.ask(...asked, JSON.stringify(body))).body) as Created;
}

const fireBy =
  (client: Client): Operation<'triggers.fire'> =>
  async (deps, { tenant, params: { slug }, body, header }) => {
    const row = await ownTrigger(deps, tenant, slug);
    const secret = secretOf(deps, row);
    if (secret !== undefined && !isSameText(header('x-trigger-secret') ?? '', secret)) {
      throw unauthenticated('x-trigger-secret does not fit');
    }
    if (!row.enabled) throw invalid(`trigger ${slug} is disabled`);
    const { id } = await create(client, creationBy(row, { source: 'http_fire' }, body));
    const fired = { instance_id: id, trigger: slug, sequence_name: row.sequence_name };
    return { status: 201, body: JSON.stringify(fired) };
  };

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
    const event = {
      source: 'public_webhook',
      ...(agent === undefined ? {} : { user_agent: agent }),
    };
    const once = `trigger:${slug}:${head.nonce}`;
    // Only the trigger's row has the tenant.
    const leave = await admission.admit({
      ...{ route: RECEIVE, tenant: row.tenant_id, isRoot: false },
      ...{ body: raw, params },
    });
    const { id, deduplicated } = await dataIn(bodies, row.tenant_id, raw)
      .then((data) => create(client, creationBy(row, event, data, once)))
      .finally(leave);
    if (deduplicated) throw unauthenticated('x-trigger-nonce was used already');
    return { status: 202, body: JSON.stringify({ instance_id: id, trigger: slug }) };
  };
};

/**
 * Starts the instance of an event trigger, once for each event. A trigger that was disabled after the event still
 * fires.
 *
 * @throws EngineError 404 when the trigger is gone, or as a creation does
 */
export async function fireByEvent(
  client: Client,
  reads: FrontDeps['reads'],
  slug: string,
  { id: event_id, tenant_id, event_name, correlation_key, payload }: FiringEvent,
): Promise<void> {
  const row = owned(await triggerBySlug.row(reads, slug), tenant_id, `trigger ${slug}`);
  const given = JSON.parse(payload ?? 'null') as JsonValue;
  const data = isJsonObject(given) ? given : { payload: given };
  const event = { source: 'event', event_id, event_name, correlation_key };
  await create(client, creationBy(row, event, data, `trigger:${slug}:event:${event_id}`));
}

/** Rejects with an EngineError: 400 or 413. */
async function dataIn(bodies: FrontBodies, tenant: string, raw: Buffer): Promise<JsonObject> {
  const text = decodeUtf8(raw);
  if (text === undefined) throw invalid('the body is not UTF-8');
  return bodyIn(bodies, 'triggers.receive', tenant, text);
}

export function triggerOperations(client: Client, bodies: FrontBodies, admission: Admission) {
  return {
    'triggers.list': listBy(triggerList),
    'triggers.get': get,
    'triggers.fire': fireBy(client),
    'triggers.receive': receiveBy(client, bodies, admission),
  } satisfies Partial<FrontOperations>;
}
