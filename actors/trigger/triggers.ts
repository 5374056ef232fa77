/** The owner of triggers, on the first shard. It caches no rows: each request reads, decides, and commits one unit. */

import { changedTo } from '../../schema/change-shapes.js';
import { KEY_LENGTH_MAX, NAME_LENGTH_MAX } from '../../schema/common.js';
import { findingOfStray } from '../../schema/finding.js';
import { matchRoute } from '../../schema/route-match.js';
import {
  type CreateTrigger,
  NAMESPACE_DEFAULT,
  type Trigger,
  type UpdateTrigger,
} from '../../schema/trigger.js';
import { conflict, invalid, notFound } from '../../src/base/errors.js';
import type { JsonObject } from '../../src/base/json.js';
import { checkTenant, owned } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { checkUnchanged, updatedAt } from '../../src/base/unchanged-since.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, RouteOperations } from '../runtime/operation.js';
import { type RowSecretsDeps, storedSecret, warnIfWeak } from '../runtime/row-secrets.js';
import type { NamedId, SequenceName } from '../runtime/sequence-name.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import { publishProblem } from './core/publishing.js';
import { secretsOf, verifyProblem } from './core/schemes.js';
import {
  publishIn,
  type TriggerLoads,
  type TriggerRow,
  verificationIn,
  wireTrigger,
} from './loads.js';
import { TRIGGER } from './tables.js';

export type TriggerNeededLoads = TriggerLoads & {
  readonly namedSequence: (name: SequenceName) => Promise<NamedId>;
};

export type TriggersDeps = Kernel<TriggerNeededLoads> & RowSecretsDeps;

export class Triggers {
  readonly #deps: TriggersDeps;
  /** Requests about one slug are serialized, so that a slug is unique. */
  readonly #service: Service;

  readonly operations = {
    'triggers.create': { serve: (call) => this.#create(call) },
    'triggers.update': { serve: (call) => this.#update(call) },
    'triggers.delete': { serve: (call) => this.#delete(call) },
  } satisfies RouteOperations;

  constructor(deps: TriggersDeps) {
    this.#deps = deps;
    this.#service = new Service('triggers', deps);
  }

  #create({ request, tenant, body }: Call<CreateTrigger>): void {
    checkTenant(tenant, body.tenant_id);
    const type = body.trigger_type ?? 'webhook';
    const config = (body.config ?? {}) as JsonObject;
    const event_name = eventIn(type, config);
    const { slug, tenant_id } = body;
    if (type === 'webhook' && !isReached(slug)) {
      throw invalid(`slug must not be ${slug}: /webhooks/${slug} is another address`);
    }
    checkVerify(type, body);
    const at = isoTime(this.#deps.now());
    this.#service.answer(request, 201, slug, async () => {
      if ((await this.#read(slug)) !== undefined) throw conflict(`trigger ${slug} exists`);
      const row = {
        slug,
        tenant_id,
        namespace: body.namespace ?? NAMESPACE_DEFAULT,
        sequence_name: body.sequence_name ?? null,
        version: body.version ?? null,
        trigger_type: type,
        ...this.#authentication({ slug, tenant_id }, body),
        config: JSON.stringify(config),
        publish: textOrNull(body.publish),
        event_name,
        enabled: body.enabled ?? true,
        created_at: at,
        updated_at: at,
      };
      return this.#put(request, row, false);
    });
  }

  #update({ request, tenant, target: slug, body }: Call<UpdateTrigger>): void {
    this.#service.answer(request, 200, slug, async () => {
      const row = await this.#own(tenant, slug);
      checkUnchanged(body.if_unchanged_since, row.updated_at);
      checkVerify(row.trigger_type, body);
      const before = JSON.parse(row.config) as JsonObject;
      const config = changedTo(body.config as JsonObject | null | undefined, before, {});
      const changed = {
        ...row,
        sequence_name: changedTo(body.sequence_name, row.sequence_name, null),
        version: changedTo(body.version, row.version, null),
        ...this.#authentication(row, body, row),
        config: JSON.stringify(config),
        publish: body.publish === undefined ? row.publish : textOrNull(body.publish),
        event_name: eventIn(row.trigger_type, config),
        enabled: changedTo(body.enabled, row.enabled, true),
        updated_at: updatedAt(this.#deps.now(), row.updated_at),
      };
      const { sequence_name, version } = row;
      const isSame = changed.sequence_name === sequence_name && changed.version === version;
      // A trigger whose sequence is deleted can be disabled.
      return this.#put(request, changed, isSame);
    });
  }

  #delete({ request, tenant, target: slug }: Call): void {
    this.#service.answer(request, 204, slug, async () => {
      const { tenant_id } = await this.#own(tenant, slug);
      const turn = new Turn(tenant_id, request);
      turn.put(TRIGGER.clear, slug, { slug });
      await this.#service.commit(turn, { key: `trigger:${slug}` });
      return undefined;
    });
  }

  #read(slug: string): Promise<TriggerRow | undefined> {
    return this.#service.read(() => this.#deps.loader.trigger(slug));
  }

  async #own(tenant: string, slug: string): Promise<TriggerRow> {
    return owned(await this.#read(slug), tenant, `trigger ${slug}`);
  }

  /** Rejects with 400 for members that do not go together, and with 404 for an unknown sequence. */
  async #put(request: number, row: TriggerRow, isOfSameSequence: boolean): Promise<Trigger> {
    const problem = problemOf(row);
    if (problem !== undefined) throw invalid(problem);
    if (!isOfSameSequence) await this.#expectSequence(row);
    const turn = new Turn(row.tenant_id, request);
    turn.put(TRIGGER.set, row.slug, {
      ...row,
      config: JSON.parse(row.config),
      publish: publishIn(row),
      secret: JSON.parse(row.secret ?? 'null'),
      verify: verificationIn(row),
    });
    await this.#service.commit(turn, { key: `trigger:${row.slug}` });
    return wireTrigger(row);
  }

  async #expectSequence(row: TriggerRow): Promise<void> {
    const { tenant_id: tenant, namespace, sequence_name: name, version } = row;
    if (name === null) return;
    const named = { tenant, namespace, name, version };
    const sequence = await this.#service.read(() => this.#deps.loader.namedSequence(named));
    if (sequence == null) throw notFound(sequenceNotFound(null, named, sequence));
  }

  /** The secret of a trigger with `verify` is stored as a list. @throws EngineError 400 */
  #authentication(
    place: TriggerPlace,
    { secret, verify }: Pick<UpdateTrigger, 'secret' | 'verify'>,
    before: Authentication = NO_AUTHENTICATION,
  ): Authentication {
    if (verify != null) {
      if (secret != null)
        throw invalid('secret must not be given beside verify, which has its own');
      const problem = verifyProblem(verify);
      if (problem !== undefined) throw invalid(problem);
      const { secret: given, ...settings } = verify;
      const secrets = secretsOf(given);
      const sealed = this.#sealed(place, JSON.stringify(secrets), secrets);
      return { verify: JSON.stringify(settings), secret: sealed };
    }
    if (before.verify !== null && verify === undefined) {
      if (secret != null) throw invalid('secret must be given in verify, by which it is verified');
      return { verify: before.verify, secret: before.secret };
    }
    const own = before.verify === null ? before.secret : null;
    const sealed = secret && this.#sealed(place, secret, [secret]);
    return { verify: null, secret: changedTo(sealed, own, null) };
  }

  #sealed({ slug: id, tenant_id }: TriggerPlace, text: string, secrets: readonly string[]): string {
    const { keyring, log } = this.#deps;
    const fields = { trigger: id };
    if (keyring === undefined) log.warn(fields, 'the secret of a trigger is stored unsealed');
    for (const secret of secrets) warnIfWeak(this.#deps, secret, fields);
    return JSON.stringify(storedSecret(this.#deps, { id, tenant_id }, text));
  }
}

type TriggerPlace = Pick<TriggerRow, 'slug' | 'tenant_id'>;
type Authentication = Pick<TriggerRow, 'secret' | 'verify'>;
const NO_AUTHENTICATION: Authentication = { secret: null, verify: null };

const textOrNull = (value: object | null | undefined) =>
  value == null ? null : JSON.stringify(value);

/** Members that do not go together, or templates that can never be rendered. */
function problemOf(row: TriggerRow): string | undefined {
  const publish = publishIn(row);
  if ((publish === null) === (row.sequence_name === null)) {
    return 'the trigger must have exactly one of sequence_name and publish';
  }
  if (publish === null) return undefined;
  if (row.version !== null) return 'version goes with sequence_name';
  return publishProblem(publish);
}

/** Nobody sends a request to a trigger of events. @throws EngineError 400 */
function checkVerify(type: string, { verify }: Pick<UpdateTrigger, 'verify'>): void {
  if (type === 'event' && verify != null) throw invalid('verify is for webhook triggers');
}

/** Whether the slug is not the address of another route below /webhooks. */
function isReached(slug: string): boolean {
  const found = matchRoute('POST', `/webhooks/${slug}`);
  return typeof found === 'object' && 'route' in found && found.route.id === 'triggers.receive';
}

/** The name of the events that fire the trigger; null for none. @throws EngineError 400 */
function eventIn(type: string, config: JsonObject): string | null {
  if (type !== 'event') return null;
  const { event_name: name, correlation_key: key, ...others } = config;
  const [stray] = Object.keys(others);
  // A misspelt correlation_key would let every event of the name fire.
  if (stray !== undefined) {
    const finding = findingOfStray(`config.${stray}`, stray, ['event_name', 'correlation_key']);
    throw invalid(finding.message);
  }
  if (typeof name !== 'string' || name.trim() === '') {
    throw invalid('config.event_name is required for an event trigger');
  }
  if (key != null && (typeof key !== 'string' || key.trim() === '')) {
    throw invalid('config.correlation_key must be a text that is not blank');
  }
  for (const [member, text, max] of [
    ['event_name', name, NAME_LENGTH_MAX],
    ['correlation_key', key ?? '', KEY_LENGTH_MAX],
  ] as const) {
    if ([...text].length <= max) continue;
    throw invalid(`config.${member} must have at most ${max} characters`);
  }
  return name;
}
