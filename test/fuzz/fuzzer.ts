/**
 * Requests made of the OpenAPI document against a real server, in two parts. In a quiet engine only
 * what must be refused is sent, and all rows stay as they are. Then everything is sent at once: valid
 * requests that build on the ids of earlier answers, hostile ones, and those for what is another
 * tenant's or gone. Each answer is held against the document and the checks.
 */

import { randomUUID } from 'node:crypto';
import { createRandom, type Random } from '../chaos/random.js';
import type { Api } from '../helpers/api.js';
import { type Client, createClient, expectStatus, NoReplyError } from '../helpers/client.js';
import type { Answer, Operation, Response } from '../helpers/contract.js';
import { deref, OPERATIONS } from '../helpers/contract.js';
import { openEvents } from '../helpers/event-stream.js';
import { changedTables, snapshotOf } from '../helpers/table-rows.js';
import { POLLUTION, type Purpose, problemOf } from './checks.js';
import { furnish } from './fixture.js';
import { KnownIds } from './known.js';
import { prepared } from './prepared.js';
import { type Parties, type Request, Requests } from './requests.js';
import { FUZZED_ENV } from './server.js';

export interface FuzzOptions {
  readonly requests: number;
  readonly seed: number;
  /** Operations that are left out, by the id in the document. */
  readonly except?: readonly string[];
  readonly onProgress?: (line: string) => void;
}

export interface Failure {
  readonly problem: string;
  /** The request and its answer, as text. */
  readonly exchange: string;
}

export interface FuzzReport {
  readonly sent: number;
  /** One of each sort. */
  readonly failures: readonly Failure[];
  readonly byPurpose: ReadonlyMap<Purpose, number>;
  /** By operation, how often each status came. */
  readonly byOperation: ReadonlyMap<string, ReadonlyMap<number, number>>;
}

const IN_FLIGHT = 32;
/** A reply that takes longer counts as none, on a machine that may be busy. */
const DEADLINE_MS = 120_000;
const WEBHOOKS = { ENGINE_WEBHOOK_URLS: 'http://hooks.invalid/' };
/** A third of all requests goes to the quiet engine, with a look at the rows after so many. */
const QUIET_PART = 1 / 3;
const QUIET_BATCH = 1_500;
const PROGRESS_EVERY = 5_000;
const LOG_READ_EVERY = 500;
const TEXT_QUOTED_MAX = 1_200;

type Weights = Readonly<Partial<Record<Purpose, number>>>;

/** How often each purpose is drawn; what is prepared comes in place of valid ones. */
const QUIET: Weights = {
  ...{ negative: 12, malformed: 2, method: 2, unauthenticated: 2, 'no-tenant': 1, foreign: 3 },
};
const LIVELY: Weights = { valid: 11, hostile: 8, negative: 2, foreign: 1, gone: 8 };

/** @param api a server of its own, whose log says when a prototype was changed */
export async function fuzz(api: Api, options: FuzzOptions): Promise<FuzzReport> {
  const run = new Run(api, options);
  try {
    await run.quiet(Math.ceil(options.requests * QUIET_PART));
    // From here on instances end, and what ends is told to an address that does not exist.
    await api.restart('SIGTERM', { env: { ...FUZZED_ENV, ...WEBHOOKS } });
    await run.lively();
    await run.finish();
  } finally {
    await run.close();
  }
  return run;
}

class Run implements FuzzReport {
  readonly byPurpose = new Map<Purpose, number>();
  readonly byOperation = new Map<string, Map<number, number>>();
  sent = 0;
  readonly #failures = new Map<string, Failure>();
  readonly #api: Api;
  readonly #options: FuzzOptions;
  readonly #random: Random;
  readonly #known = new KnownIds();
  readonly #parties: Parties;
  readonly #requests: Requests;
  readonly #operations: readonly Operation[];
  readonly #client: Client;

  constructor(api: Api, options: FuzzOptions) {
    this.#api = api;
    this.#options = options;
    this.#random = createRandom(options.seed);
    const { url, apiKey } = api.engine;
    this.#parties = {
      apiKey: apiKey ?? '',
      strangerKey: apiKey ?? '',
      tenant: `fuzz-${randomUUID()}`,
      stranger: `stranger-${randomUUID()}`,
    };
    this.#requests = new Requests(options.seed, this.#random, this.#known, this.#parties);
    this.#operations = OPERATIONS.filter(({ id }) => !options.except?.includes(id));
    const patience = { connections: IN_FLIGHT, timeoutMs: DEADLINE_MS };
    this.#client = createClient({ url, ...patience, isChecked: false });
  }

  get failures(): readonly Failure[] {
    return [...this.#failures.values()];
  }

  /** Only what must be refused; then every row is as it was. */
  async quiet(count: number): Promise<void> {
    await furnish(this.#api.tenant(this.#parties.tenant), this.#known);
    const { stranger } = this.#parties;
    const minted = await this.#api.root.post<{ secret: string }>('/api-keys', {
      tenant_id: stranger,
      capabilities: ['operator'],
    });
    this.#parties.strangerKey = expectStatus(minted, 201).secret;
    const { connectionString } = this.#api.database;
    let before = await snapshotOf(connectionString);
    for (let left = count; left > 0; left -= QUIET_BATCH) {
      await this.#send(QUIET, Math.min(left, QUIET_BATCH));
      const after = await snapshotOf(connectionString);
      const changed = changedTables(before, after);
      if (changed.length > 0) this.#fail(`refused requests changed ${changed.join(', ')}`, '');
      before = after;
    }
  }

  async lively(): Promise<void> {
    const { connectionString } = this.#api.database;
    this.#requests.prepare(await prepared(this.#api.tenant(this.#parties.tenant)));
    const before = await snapshotOf(connectionString);
    await this.#send(LIVELY, this.#options.requests - this.sent);
    const changed = changedTables(before, await snapshotOf(connectionString));
    if (changed.length === 0) this.#fail('requests that were accepted changed nothing', '');
  }

  /** The server lives, has met no defect, and shows nothing alien in what is new. */
  async finish(): Promise<void> {
    const tenant = this.#api.tenant();
    const id = await tenant.run([
      { type: 'step', id: 'a', handler: 'transform', params: { x: 1 } },
    ]);
    const seen = JSON.stringify([await tenant.until(id, 'completed'), await tenant.outputs(id)]);
    if (seen.includes(POLLUTION)) this.#fail('a new instance shows what others were sent', seen);
    this.#readLog();
    if (!this.#api.engine.isRunning()) this.#fail('the server ended', this.#api.engine.output());
  }

  #readLog(): void {
    for (const line of this.#api.engine.logs()) {
      const isBad = line.msg === 'defect' || line.msg === 'a prototype was changed';
      if (isBad || (line.level ?? 0) >= 60) this.#fail(String(line.msg), JSON.stringify(line));
    }
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #send(weights: Weights, count: number): Promise<void> {
    let left = count;
    const sendSome = async () => {
      while (left > 0) {
        const purpose = this.#random.weighted(weights as Record<Purpose, number>);
        const request = this.#requests.next(purpose, this.#operationsFor(purpose));
        if (request === undefined) continue;
        left -= 1;
        await this.#exchange(request);
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, sendSome));
  }

  /** Half of the valid requests go to operations that none has succeeded at: chance alone leaves too many out. */
  #operationsFor(purpose: Purpose): readonly Operation[] {
    if (purpose !== 'valid' || this.#random.chance(0.5)) return this.#operations;
    const left = this.#operations.filter(({ id }) => !hasSucceeded(this.byOperation.get(id)));
    return left.length > 0 ? left : this.#operations;
  }

  async #exchange(request: Request): Promise<void> {
    this.sent += 1;
    // The server's last lines are kept, not all.
    if (this.sent % LOG_READ_EVERY === 0) this.#readLog();
    if (this.sent % PROGRESS_EVERY === 0) this.#options.onProgress?.(`${this.sent} requests`);
    this.byPurpose.set(request.purpose, (this.byPurpose.get(request.purpose) ?? 0) + 1);
    try {
      const answer = await this.#ask(request);
      this.#count(request, answer.status);
      if (request.operation !== undefined) {
        this.#known.learn(request.operation, request.params, answer);
      }
      const problem = problemOf({ ...request, answer });
      if (problem !== undefined)
        this.#fail(`${nameOf(request)}: ${problem}`, told(request, answer));
    } catch (error) {
      if (!(error instanceof NoReplyError)) throw error;
      this.#fail(`${nameOf(request)}: no reply`, `${told(request)}\n${error.message}`);
    }
  }

  async #ask(request: Request): Promise<Answer> {
    const { method, prefix, path, headers, body, operation } = request;
    const given = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    };
    if (operation !== undefined && isStream(operation)) return this.#askStream(request, given);
    const options = { headers: given, ...(body === undefined ? {} : { raw: body }) };
    return this.#client.with({ prefix }).request(method, path, options);
  }

  /** Only the head of a stream is waited for; then it is left. */
  async #askStream(
    { method, prefix, path }: Request,
    headers: Request['headers'],
  ): Promise<Answer> {
    const url = this.#api.engine.url + prefix + path;
    const reader = await inTime(
      openEvents({ url, headers, method: method === 'HEAD' ? method : 'GET' }),
      path,
    );
    try {
      if (reader.status !== 200) await inTime(reader.ended, path);
      return { status: reader.status, headers: reader.headers, text: reader.text };
    } finally {
      reader.close();
    }
  }

  #count({ operation }: Request, status: number): void {
    if (operation === undefined) return;
    const statuses = this.byOperation.get(operation.id) ?? new Map<number, number>();
    this.byOperation.set(operation.id, statuses.set(status, (statuses.get(status) ?? 0) + 1));
  }

  /** The first of a sort is kept: numbers and ids do not make a new one. */
  #fail(problem: string, exchange: string): void {
    const sort = problem.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, '#').slice(0, 160);
    if (!this.#failures.has(sort)) this.#failures.set(sort, { problem, exchange });
  }
}

export function hasSucceeded(statuses: ReadonlyMap<number, number> | undefined): boolean {
  return [...(statuses?.keys() ?? [])].some((status) => status < 300);
}

/** Whatever becomes of it, there is an answer or there is none. */
async function inTime<T>(answer: Promise<T>, path: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the deadline is over')), DEADLINE_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } catch (error) {
    throw new NoReplyError(path, error);
  } finally {
    clearTimeout(timer);
  }
}

function isStream({ responses }: Operation): boolean {
  const success = responses[200];
  return success !== undefined && 'text/event-stream' in (deref<Response>(success).content ?? {});
}

function nameOf({ purpose, operation, method, path, fault }: Request): string {
  const place = fault?.replace(/\/\d+/g, '/#') ?? '';
  return `${purpose} ${operation?.id ?? `${method} ${path}`} ${place}`;
}

function told({ method, path, headers, body }: Request, answer?: Answer): string {
  const text = body instanceof Buffer ? body.toString('latin1') : (body ?? '');
  const shown = Object.entries(headers).filter(([name]) => name !== 'x-api-key');
  return [
    `${method} ${path.slice(0, TEXT_QUOTED_MAX)}`,
    `${JSON.stringify(Object.fromEntries(shown))} ${text.slice(0, TEXT_QUOTED_MAX)}`,
    answer === undefined ? '' : `→ ${answer.status} ${answer.text.slice(0, TEXT_QUOTED_MAX)}`,
  ].join('\n');
}
