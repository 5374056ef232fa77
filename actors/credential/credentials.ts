/**
 * The owner of credentials, on the first shard. It caches no rows: each request reads, decides, and commits one unit.
 * Changes need no publishing, because each use reads the row (`secrets.ts`).
 */

import { changedTo } from '../../schema/change-shapes.js';
import {
  CREDENTIAL_ID_PATTERN,
  CREDENTIAL_VALUE_BYTES_MAX,
  type CreateCredential,
  type Credential,
  type UpdateCredential,
} from '../../schema/credential.js';
import { conflict, EngineError, invalid, notFound, tooLarge } from '../../src/base/errors.js';
import { tenantOf } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, RouteOperations } from '../runtime/operation.js';
import { type RowSecretsDeps, storedSecret } from '../runtime/row-secrets.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import { type CredentialLoads, type CredentialPlace, type CredentialRow, keyOf } from './loads.js';
import { CREDENTIAL } from './tables.js';

export interface CredentialsDeps extends Kernel<CredentialLoads>, RowSecretsDeps {
  readonly sender: Pick<WebhookSender, 'problemOf'>;
}

/** Each row has up to half a megabyte. */
export const CREDENTIALS_PER_TENANT_MAX = 1_000;
const KIND_AT_FIRST = 'api_key';
const ID = new RegExp(CREDENTIAL_ID_PATTERN);

export class Credentials {
  readonly #deps: CredentialsDeps;
  /** Requests of one tenant are serialized, so that the limit holds. */
  readonly #service: Service;

  readonly operations = {
    'credentials.create': { serve: (call) => this.#create(call) },
    'credentials.update': { serve: (call) => this.#update(call) },
    'credentials.delete': { serve: (call) => this.#delete(call) },
  } satisfies RouteOperations;

  constructor(deps: CredentialsDeps) {
    this.#deps = deps;
    this.#service = new Service('credentials', deps);
  }

  #create({ request, tenant: header, body }: Call<CreateCredential>): void {
    const tenant = tenantOf(header, body.tenant_id);
    if (tenant.trim() === '') throw invalid('tenant_id must not be blank');
    const id = body.id ?? body.name;
    if (id == null) throw invalid('id or name is required');
    // Only a name can be invalid here, because the schema checks an id.
    const isDots = id === '.' || id === '..';
    if (isDots || !ID.test(id)) {
      const rule = isDots
        ? 'not be . or .., which no address has'
        : 'have letters, digits, dots, _ and - only';
      throw invalid(`name must ${rule}, or id must be sent beside it`);
    }
    this.#check(body);
    this.#service.answer(request, 201, tenant, () => this.#insert(request, tenant, id, body));
  }

  async #insert(
    request: number,
    tenant_id: string,
    id: string,
    body: CreateCredential,
  ): Promise<Credential> {
    const { loader, now } = this.#deps;
    const { present, count } = await this.#service.read(async () => {
      const [row] = await loader.credentials([{ tenant_id, id }]);
      return { present: row, count: await loader.credentialCount(tenant_id) };
    });
    if (present !== undefined) throw conflict(`credential ${id} exists`);
    if (count >= CREDENTIALS_PER_TENANT_MAX) {
      throw conflict(`a tenant has at most ${CREDENTIALS_PER_TENANT_MAX} credentials`);
    }
    const at = isoTime(now());
    return this.#put(request, {
      tenant_id,
      id,
      name: body.name ?? id,
      kind: body.kind ?? KIND_AT_FIRST,
      description: body.description ?? null,
      enabled: true,
      created_at: at,
      ...this.#changed({ tenant_id, id }, body, NOTHING),
      updated_at: at,
    });
  }

  #update({ request, tenant, target: id, body }: Call<UpdateCredential>): void {
    this.#check(body);
    this.#service.answer(request, 200, tenant, async () => {
      const row = await this.#own(tenant, id);
      return this.#put(request, {
        ...row,
        name: changedTo(body.name, row.name, id),
        kind: changedTo(body.kind, row.kind, KIND_AT_FIRST),
        description: changedTo(body.description, row.description, null),
        enabled: changedTo(body.enabled, row.enabled, true),
        ...this.#changed(row, body, row),
        updated_at: isoTime(this.#deps.now()),
      });
    });
  }

  #delete({ request, tenant, target }: Call): void {
    this.#service.answer(request, 204, tenant, async () => {
      const { tenant_id, id } = await this.#own(tenant, target);
      const turn = new Turn(tenant_id, request);
      turn.put(CREDENTIAL.clear, keyOf({ tenant_id, id }), { tenant_id, id });
      await this.#service.commit(turn, { key: `credential:${keyOf({ tenant_id, id })}` });
      return undefined;
    });
  }

  /** @throws EngineError 400, 404 */
  async #own(tenant_id: string, id: string): Promise<CredentialRow> {
    if (tenant_id === '') throw invalid('x-tenant-id is required');
    const read = () => this.#deps.loader.credentials([{ tenant_id, id }]);
    const [row] = await this.#service.read(read);
    if (row === undefined) throw notFound(`credential ${id}`);
    return row;
  }

  /** @throws EngineError 400, 413, or 503 without a key to seal with */
  #check({ value, refresh_url, refresh_token }: CreateCredential | UpdateCredential): void {
    const { keyring, sender } = this.#deps;
    if (keyring === undefined && (value !== undefined || refresh_token != null)) throw NO_KEY;
    for (const [name, text] of Object.entries({ value, refresh_token })) {
      const bytes = Buffer.byteLength(text ?? '');
      if (bytes <= CREDENTIAL_VALUE_BYTES_MAX) continue;
      throw tooLarge(`${name} is ${bytes} bytes, the limit is ${CREDENTIAL_VALUE_BYTES_MAX}`);
    }
    const problem = refresh_url == null ? undefined : sender.problemOf(refresh_url);
    if (problem !== undefined) throw invalid(`refresh_url: ${problem}`);
  }

  /** @throws EngineError 400 for an incomplete OAuth credential */
  #changed(place: CredentialPlace, body: CreateCredential | UpdateCredential, before: Changing) {
    const { value, refresh_token } = body;
    const after: Changing = {
      value: value === undefined ? before.value : this.#sealed(place, value),
      refresh_url: changedTo(body.refresh_url, before.refresh_url, null),
      refresh_token: changedTo(
        refresh_token && this.#sealed(place, refresh_token),
        before.refresh_token,
        null,
      ),
      expires_at: changedTo(body.expires_at, before.expires_at, null),
    };
    if (after.refresh_url !== null && after.refresh_token === null) {
      throw invalid('refresh_url needs a refresh_token');
    }
    return after;
  }

  #sealed(place: CredentialPlace, secret: string): string {
    return JSON.stringify(storedSecret(this.#deps, place, secret));
  }

  async #put(request: number, row: CredentialRow): Promise<Credential> {
    const { value, refresh_token, ...rest } = row;
    const turn = new Turn(row.tenant_id, request);
    turn.put(CREDENTIAL.set, keyOf(row), {
      ...rest,
      value: JSON.parse(value) as object,
      refresh_token: refresh_token === null ? null : (JSON.parse(refresh_token) as object),
    });
    await this.#service.commit(turn, { key: `credential:${keyOf(row)}` });
    const kind = rest.kind as Credential['kind'];
    return { ...rest, kind, has_refresh_token: refresh_token !== null };
  }
}

type Changing = Pick<CredentialRow, 'value' | 'refresh_url' | 'refresh_token' | 'expires_at'>;
const NOTHING: Changing = { value: '', refresh_url: null, refresh_token: null, expires_at: null };

const NO_KEY = new EngineError(
  'ENG_NO_KEYS',
  'credentials are kept sealed: set ENGINE_ENCRYPTION_KEY first',
);
