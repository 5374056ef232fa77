/** The owner of triggers, on the first shard. It caches no rows: each request reads, decides, and commits one unit. */

import { changedTo } from '../../schema/change-shapes.js';
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
import { type TriggerLoads, type TriggerRow, wireTrigger } from './loads.js';
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
    const at = isoTime(this.#deps.now());
    this.#service.answer(request, 201, slug, async () => {
      if ((await this.#read(slug)) !== undefined) throw conflict(`trigger ${slug} exists`);
      return this.#putChecked({
        slug,
        tenant_id,
        namespace: body.namespace ?? NAMESPACE_DEFAULT,
        sequence_name: body.sequence_name,
        version: body.version ?? null,
        trigger_type: type,
        secret: body.secret == null ? null : this.#sealed({ slug, tenant_id }, body.secret),
        config: JSON.stringify(config),
        event_name,
        enabled: body.enabled ?? true,
        created_at: at,
        updated_at: at,
      });
    });
  }

  #update({ request, tenant, target: slug, body }: Call<UpdateTrigger>): void {
    this.#service.answer(request, 200, slug, async () => {
      const row = await this.#own(tenant, slug);
      checkUnchanged(body.if_unchanged_since, row.updated_at);
      const { secret } = body;
      const before = JSON.parse(row.config) as JsonObject;
      const config = changedTo(body.config as JsonObject | null | undefined, before, {});
      const changed = {
        ...row,
        sequence_name: body.sequence_name ?? row.sequence_name,
        version: changedTo(body.version, row.version, null),
        secret: changedTo(secret && this.#sealed(row, secret), row.secret, null),
        config: JSON.stringify(config),
        event_name: eventIn(row.trigger_type, config),
        enabled: changedTo(body.enabled, row.enabled, true),
        updated_at: updatedAt(this.#deps.now(), row.updated_at),
      };
      const { sequence_name, version } = row;
      const isSame = changed.sequence_name === sequence_name && changed.version === version;
      // A trigger whose sequence is deleted can be disabled.
      return isSame ? this.#put(changed) : this.#putChecked(changed);
    });
  }

  #delete({ request, tenant, target: slug }: Call): void {
    this.#service.answer(request, 204, slug, async () => {
      const { tenant_id } = await this.#own(tenant, slug);
      const turn = new Turn(tenant_id);
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

  /** Rejects with 404 for an unknown sequence. */
  async #putChecked(row: TriggerRow): Promise<Trigger> {
    const { tenant_id: tenant, namespace, sequence_name: name, version } = row;
    const named = { tenant, namespace, name, version };
    const sequence = await this.#service.read(() => this.#deps.loader.namedSequence(named));
    if (sequence == null) throw notFound(sequenceNotFound(null, named, sequence));
    return this.#put(row);
  }

  async #put(row: TriggerRow): Promise<Trigger> {
    const turn = new Turn();
    const secret = row.secret === null ? null : (JSON.parse(row.secret) as object);
    const config = JSON.parse(row.config) as JsonObject;
    turn.put(TRIGGER.set, row.slug, { ...row, config, secret });
    await this.#service.commit(turn, { key: `trigger:${row.slug}` });
    return wireTrigger(row);
  }

  #sealed({ slug: id, tenant_id }: Pick<TriggerRow, 'slug' | 'tenant_id'>, secret: string): string {
    const { keyring, log } = this.#deps;
    const fields = { trigger: id };
    if (keyring === undefined) log.warn(fields, 'the secret of a trigger is stored unsealed');
    warnIfWeak(this.#deps, secret, fields);
    return JSON.stringify(storedSecret(this.#deps, { id, tenant_id }, secret));
  }
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
  return name;
}
