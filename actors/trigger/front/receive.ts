/**
 * Requests from outside for triggers: each is verified by the scheme of its trigger before its body is parsed, and
 * admitted on account of the tenant whose trigger it is.
 */

import { PLAIN_TEXT } from '../../../schema/route-row.js';
import { ROUTES } from '../../../schema/routes.js';
import { words } from '../../../schema/states.js';
import type { WebhookTaken } from '../../../schema/trigger.js';
import { EngineError, invalid, notFound } from '../../../src/base/errors.js';
import type { JsonObject } from '../../../src/base/json.js';
import { decodeUtf8 } from '../../../src/base/json-guard.js';
import { formText, isFormType } from '../../../src/http/form.js';
import {
  bodyIn,
  type Call,
  type FrontBodies,
  type FrontDeps,
  type Operation,
} from '../../../src/http/operation.js';
import type { Admission } from '../../../src/http/ports.js';
import { boundedId, type Delivery, schemeOf, type Verification } from '../core/schemes.js';
import { publishIn, type TriggerRow, verificationIn } from '../loads.js';
import { type EffectDeps, effectOf } from './effects.js';
import { secretsIn, triggerBySlug, unauthenticated } from './reads.js';
import { SenderLimit } from './sender-limit.js';

/** By outcome, for metrics. */
export class ReceivedCounts {
  accepted = 0;
  repeated = 0;
  refused = 0;
}

export interface ReceiveDeps extends EffectDeps {
  readonly bodies: FrontBodies;
  readonly admission: Admission;
  readonly counts: ReceivedCounts;
}

type Received = Call<'triggers.receive'>;

export function receiveBy(deps: ReceiveDeps): Operation<'triggers.receive'> {
  const limit = new SenderLimit();
  const { counts } = deps;
  return async (front, call) => {
    try {
      limit.take(`${call.peer()} ${call.params.id}`, front.now());
      return await receive(deps, front, call);
    } catch (error) {
      if (error instanceof EngineError && error.status < 500) counts.refused += 1;
      throw error;
    }
  };
}

async function receive(deps: ReceiveDeps, front: FrontDeps, call: Received) {
  const { id: slug } = call.params;
  const row = await triggerBySlug.row(front.reads, slug);
  if (row?.trigger_type !== 'webhook' || !row.enabled) throw notFound(`webhook ${slug}`);
  const settings = verificationIn(row) ?? { scheme: 'engine' };
  const scheme = schemeOf(settings);
  const delivery: Delivery = { header: call.header, body: call.raw };
  const secrets = secretsIn(front, row);
  if (secrets === undefined) throw unauthenticated('the trigger has no secret');
  const problem = scheme.problem({ ...delivery, settings, secrets, now: front.now() });
  if (problem !== undefined) throw unauthenticated(problem);
  await front.admitTenant(row.tenant_id);
  const leave = await admitted(deps, row, call);
  try {
    const body = await bodyOf(deps.bodies, row.tenant_id, call);
    const challenge = settings.scheme === 'slack' ? challengeIn(body) : undefined;
    if (challenge !== undefined) return { status: 200, body: challenge, contentType: PLAIN_TEXT };
    const agent = call.header('user-agent');
    const id = scheme.idOf(delivery, body);
    const outcome = await effectOf(deps, row, {
      body,
      headers: readableHeaders(call.allHeaders(), settings),
      event: { source: 'public_webhook', ...(agent !== undefined && { user_agent: agent }) },
      id: id === undefined || id === '' ? undefined : boundedId(id),
    });
    const isRepeated = outcome.duplicate === true;
    if (isRepeated && scheme.refusesRepeats)
      throw unauthenticated('x-trigger-nonce was used already');
    deps.counts[isRepeated ? 'repeated' : 'accepted'] += 1;
    if (scheme.isAnsweredEmpty) return { status: 200, body: '', contentType: PLAIN_TEXT };
    const taken: WebhookTaken = { trigger: slug, ...outcome };
    return { status: 202, body: JSON.stringify(taken) };
  } finally {
    leave?.();
  }
}

const RECEIVE = ROUTES['triggers.receive'];
const PUBLISH = { ...RECEIVE, makes: 'event' } as const;

/** Follows the read, because only the row of the trigger has the tenant. */
function admitted({ admission }: ReceiveDeps, row: TriggerRow, { raw, params }: Received) {
  const route = publishIn(row) === null ? RECEIVE : PUBLISH;
  return admission.admit({ route, tenant: row.tenant_id, isRoot: false, body: raw, params });
}

/** Rejects with an EngineError: 400 or 413. */
async function bodyOf(bodies: FrontBodies, tenant: string, call: Received): Promise<JsonObject> {
  const text = decodeUtf8(call.raw);
  if (text === undefined) throw invalid('the body is not UTF-8');
  const isForm = isFormType(call.header('content-type'));
  // GitHub and Slack send JSON in this member of a form.
  const json = isForm ? formText(text, 'payload') : text;
  return bodyIn(bodies, 'triggers.receive', tenant, json);
}

/** What Slack sends to prove that an address is its user's. */
function challengeIn({ type, challenge }: JsonObject): string | undefined {
  return type === 'url_verification' && typeof challenge === 'string' ? challenge : undefined;
}

const CREDENTIALS: readonly string[] = words(
  'authorization proxy-authorization cookie x-api-key x-trigger-secret',
);

/** Without credentials: what an event takes from them is stored and shown. */
export function readableHeaders(
  headers: Readonly<Record<string, string>>,
  settings?: Verification,
): JsonObject {
  const token = settings?.scheme === 'bearer' ? settings.header?.toLowerCase() : undefined;
  const isReadable = (name: string) => !CREDENTIALS.includes(name) && name !== token;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isReadable(name)));
}
