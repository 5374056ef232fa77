/** From drafts to what is sent: one request for each purpose, with the fault that it asks for. */

import fc from 'fast-check';
import type { Random } from '../chaos/random.js';
import { OPERATIONS, type Operation } from '../helpers/contract.js';
import { words } from '../helpers/table.js';
import { type Draft, draftOf, kindOfPath } from './arbitrary.js';
import type { Purpose } from './checks.js';
import {
  HOSTILE_ENCODED,
  HOSTILE_QUERIES,
  HOSTILE_TEXTS,
  hostileBody,
  MALFORMED_BODIES,
  violationsOf,
  wrongTexts,
} from './hostile.js';
import type { KnownIds } from './known.js';
import type { Prepared } from './prepared.js';

export interface Request {
  readonly purpose: Purpose;
  /** Undefined: the path has none for this method. */
  readonly operation: Operation | undefined;
  readonly method: string;
  /** Empty for the bare alias. */
  readonly prefix: '' | '/api/v1';
  /** After the prefix, encoded. */
  readonly path: string;
  readonly params: Draft['params'];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | undefined;
  /** What is wrong on purpose. */
  readonly fault: string | undefined;
}

export interface Parties {
  readonly apiKey: string;
  readonly tenant: string;
  /** Has nothing of what is known. */
  readonly stranger: string;
  /** A key of the stranger, which opens all of its own; the root key until there is one. */
  strangerKey: string;
}

/** Drawn at once: a draft costs less so. */
const DRAFTS_AT_ONCE = 50;
const METHODS = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE', 'OPTIONS'];
const WRONG_KEYS: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'x-api-key': '' },
  { 'x-api-key': 'wrong' },
  { 'x-api-key': 'sk_0000000000000000000000000000000000000000000000000000000000000000' },
  { 'x-api-key': 'null' },
  { authorization: 'Bearer wrong' },
  { authorization: 'Bearer' },
  { authorization: 'Basic cm9vdDpyb290' },
];

/** Operations that have nothing to tell of what is another tenant's, and say so with success. */
const EMPTY_OF_OTHERS = new Set(
  words('continuityEffects continuityProvenance continuityVerifyProvenance'),
);

/** Where a mistake is told in the answer to the others, which is a success. */
const JUDGED_ONE_BY_ONE: Readonly<Record<string, string>> = { workersExchange: '/results/' };

export class Requests {
  readonly #seed: number;
  readonly #random: Random;
  readonly #known: KnownIds;
  readonly #parties: Parties;
  readonly #prepared: Prepared[] = [];
  readonly #drafts = new Map<Operation, Draft[]>();
  readonly #arbitraries = new Map<Operation, fc.Arbitrary<Draft>>();
  #weighted: readonly Operation[] | undefined;
  #draws = 0;

  constructor(seed: number, random: Random, known: KnownIds, parties: Parties) {
    this.#seed = seed;
    this.#random = random;
    this.#known = known;
    this.#parties = parties;
  }

  /** A request of one of the operations; undefined when the purpose does not fit the one drawn. */
  next(purpose: Purpose, operations: readonly Operation[]): Request | undefined {
    const prepared = purpose === 'valid' ? this.#prepared.shift() : undefined;
    if (prepared !== undefined) return this.#ready(prepared, operations);
    const isLively = purpose === 'valid' || purpose === 'hostile';
    const draft = this.#draft(this.#random.pick(isLively ? this.#often(operations) : operations));
    const makers: Record<Purpose, () => Request | undefined> = {
      prepared: () => this.#valid(draft),
      valid: () => this.#valid(draft),
      hostile: () => this.#hostile(draft),
      negative: () => this.#negative(draft),
      malformed: () => this.#malformed(draft),
      method: () => this.#method(draft),
      unauthenticated: () => this.#unauthenticated(draft),
      'no-tenant': () => this.#withoutTenant(draft),
      foreign: () => this.#absent('foreign', draft),
      gone: () => this.#absent('gone', draft),
    };
    return makers[purpose]();
  }

  /** The next valid ones: later ones may change what these need. */
  prepare(requests: readonly Prepared[]): void {
    this.#prepared.push(...requests);
  }

  #ready(prepared: Prepared, operations: readonly Operation[]): Request | undefined {
    const operation = operations.find(({ id }) => id === prepared.operation);
    if (operation === undefined) return undefined;
    const { params = {}, query = [], body, headers = {} } = prepared;
    const { headers: own, ...request } = this.#request('prepared', {
      operation,
      params,
      query,
      body,
    });
    return { ...request, headers: { ...own, ...headers } };
  }

  /** What makes things, and what works with one of them, comes more often than what deletes it. */
  #often(operations: readonly Operation[]): readonly Operation[] {
    this.#weighted ??= operations.flatMap((operation) => {
      const { method, path, responses } = operation;
      const isMaking = method === 'POST' && (201 in responses || path.includes('/poll'));
      const isOfOne = path.includes('{') && method !== 'DELETE';
      return new Array<Operation>(isMaking && !isOfOne ? 5 : isOfOne ? 2 : 1).fill(operation);
    });
    return this.#weighted;
  }

  #draft(operation: Operation): Draft {
    const waiting = this.#drafts.get(operation) ?? [];
    if (waiting.length === 0) {
      this.#draws += 1;
      const seed = Math.imul(this.#seed + this.#draws, 0x9e37_79b1) | 0;
      waiting.push(...fc.sample(this.#arbitrary(operation), { numRuns: DRAFTS_AT_ONCE, seed }));
      this.#drafts.set(operation, waiting);
    }
    return this.#known.fill(waiting.pop() as Draft, this.#parties.tenant);
  }

  #arbitrary(operation: Operation): fc.Arbitrary<Draft> {
    const made = this.#arbitraries.get(operation) ?? draftOf(operation);
    this.#arbitraries.set(operation, made);
    return made;
  }

  #request(purpose: Purpose, draft: Draft, changes: Partial<Request> = {}): Request {
    const { operation, params, query, body } = draft;
    return {
      purpose,
      operation,
      method: operation.method,
      prefix: this.#random.chance(0.1) ? '' : '/api/v1',
      path: pathOf(operation, params) + queryOf(query),
      params,
      headers: this.#headers(operation),
      body: body === undefined ? undefined : JSON.stringify(body),
      fault: undefined,
      ...changes,
    };
  }

  /** HEAD is served wherever GET is. */
  #valid(draft: Draft): Request {
    const isHead = draft.operation.method === 'GET' && this.#random.chance(0.05);
    return this.#request('valid', draft, isHead ? { method: 'HEAD' } : {});
  }

  /** What lets the request in: the key as either header, and the tenant where there is one. */
  #headers(
    { security }: Operation,
    tenant = this.#parties.tenant,
    apiKey = this.#parties.apiKey,
  ): Record<string, string> {
    const key = this.#random.pick([
      { 'x-api-key': apiKey },
      { 'x-api-key': apiKey },
      { authorization: `Bearer ${apiKey}` },
    ]);
    const hasTenant = security.some((way) => way.includes('tenant'));
    return { ...key, ...(hasTenant ? { 'x-tenant-id': tenant } : {}) };
  }

  // -------------------------------------------------------------- wrong

  #negative(draft: Draft): Request | undefined {
    const { operation, body } = draft;
    const faults: (() => Partial<Request> & { fault: string })[] = [];
    for (const parameter of operation.parameters) {
      for (const text of wrongTexts(parameter)) {
        faults.push(() => this.#wrongParameter(draft, parameter.in, parameter.name, text));
      }
      if (parameter.in === 'query' && parameter.required === true) {
        const query = draft.query.filter(([name]) => name !== parameter.name);
        const path = pathOf(operation, draft.params) + queryOf(query);
        faults.push(() => ({ path, fault: `${parameter.name} missing` }));
      }
    }
    if (operation.body !== undefined && body !== undefined) {
      const judged = JUDGED_ONE_BY_ONE[operation.id];
      for (const { what, value } of violationsOf(operation.body.schema, body)) {
        if (judged !== undefined && what.startsWith(judged)) continue;
        faults.push(() => ({ body: JSON.stringify(value), fault: what }));
      }
    }
    if (faults.length === 0) return undefined;
    return this.#request('negative', draft, this.#random.pick(faults)());
  }

  #wrongParameter(draft: Draft, place: string, name: string, text: string) {
    const { operation, params, query } = draft;
    const fault = `${name} is ${text.slice(0, 40)}`;
    if (place === 'path') return { path: pathOf(operation, { ...params, [name]: text }), fault };
    const others = query.filter(([other]) => other !== name);
    return { path: pathOf(operation, params) + queryOf([...others, [name, text]]), fault };
  }

  #malformed(draft: Draft): Request | undefined {
    if (draft.operation.body === undefined) return undefined;
    const body = this.#random.pick(MALFORMED_BODIES);
    return this.#request('malformed', draft, { body, fault: 'malformed' });
  }

  #method(draft: Draft): Request | undefined {
    const { path } = draft.operation;
    const served = OPERATIONS.filter((other) => other.path === path).map(({ method }) => method);
    const method = this.#random.pick(METHODS.filter((name) => !served.includes(name)));
    const request = this.#request('method', draft, { method, operation: undefined });
    // Clients send no body with GET.
    return method === 'GET' ? { ...request, body: undefined } : request;
  }

  #unauthenticated(draft: Draft): Request | undefined {
    const { security } = draft.operation;
    if (security.length === 0 || security.some((way) => way.length === 0)) return undefined;
    const headers = { 'x-tenant-id': this.#parties.tenant, ...this.#random.pick(WRONG_KEYS) };
    return this.#request('unauthenticated', draft, { headers });
  }

  #withoutTenant(draft: Draft): Request | undefined {
    const { security } = draft.operation;
    const needsTenant = security.length > 0 && security.every((way) => way.includes('tenant'));
    if (!needsTenant) return undefined;
    const { 'x-tenant-id': _, ...headers } = this.#headers(draft.operation);
    return this.#request('no-tenant', draft, { headers });
  }

  /** What exists and is another tenant's, or existed. */
  #absent(purpose: 'foreign' | 'gone', draft: Draft): Request | undefined {
    const { operation } = draft;
    const isForeign = purpose === 'foreign';
    if (!operation.path.includes('{id}') || (!isForeign && operation.method !== 'GET')) {
      return undefined;
    }
    if (!operation.security.some((way) => way.includes('tenant'))) return undefined;
    if (EMPTY_OF_OTHERS.has(operation.id)) return undefined;
    const kind = kindOfPath(operation.path);
    const id = this.#known[isForeign ? 'existing' : 'gone'](kind, this.#random.integer(0, 999));
    if (id === undefined) return undefined;
    const params = { ...draft.params, id };
    const { tenant, apiKey, stranger, strangerKey } = this.#parties;
    const key = this.#random.pick([apiKey, strangerKey]);
    const path = pathOf(operation, params) + queryOf(draft.query);
    if (!isForeign) {
      return this.#request(purpose, draft, { path, params, headers: this.#headers(operation) });
    }
    const { body: own } = this.#request(purpose, draft);
    // A body that named the other tenant would be refused for that.
    const body = typeof own === 'string' ? own.replaceAll(tenant, stranger) : own;
    const headers = this.#headers(operation, stranger, key);
    return this.#request(purpose, draft, { path, params, headers, body });
  }

  // -------------------------------------------------------------- hostile

  #hostile(draft: Draft): Request {
    const { operation, body } = draft;
    const random = this.#random;
    const pick = <T>(list: readonly T[]) => random.pick(list);
    const base = pathOf(operation, draft.params);
    if (body !== undefined && random.chance(0.75)) {
      const poisoned = hostileBody(body, pick);
      return this.#request('hostile', draft, { body: poisoned, fault: 'hostile body' });
    }
    if (operation.path.includes('{') && random.chance(0.5)) {
      const part = pick([...HOSTILE_ENCODED, ...HOSTILE_TEXTS.map(encoded)]);
      const path = operation.path.replace(/\{\w+\}/g, () => part);
      return this.#request('hostile', draft, { path, fault: 'hostile path' });
    }
    if (random.chance(0.2)) {
      const headers = { ...this.#headers(operation), ...hostileHeader(pick) };
      return this.#request('hostile', draft, { headers, fault: 'hostile header' });
    }
    const query = random.chance(0.5) ? pick(HOSTILE_QUERIES) : hostileQuery(operation, pick);
    return this.#request('hostile', draft, { path: `${base}?${query}`, fault: 'hostile query' });
  }
}

/** Of what an HTTP client can send at all. */
function hostileHeader(pick: <T>(list: readonly T[]) => T): Record<string, string> {
  const odd = words('__proto__ %00 é\u00ff */*');
  const text = pick(['', ' ', "' or 1=1 --", 'x'.repeat(300), ...odd]);
  const names = 'x-tenant-id x-request-id content-type accept last-event-id traceparent origin';
  return { [pick(words(names))]: text };
}

function hostileQuery({ parameters }: Operation, pick: <T>(list: readonly T[]) => T): string {
  const names = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
  const name = pick([...names, 'unknown', '__proto__', 'metadata.a']);
  const text = pick([...HOSTILE_ENCODED, ...HOSTILE_TEXTS.map(encoded)]);
  return pick([`${name}=${text}`, `${name}=${text}&${name}=${text}`, `${name}`]);
}

const LONE_SURROGATE = /\p{Surrogate}/gu;

/** Texts that no URI can hold are sent as what takes their place. */
const encoded = (text: string): string =>
  encodeURIComponent(text.replace(LONE_SURROGATE, '\ufffd'));

const pathOf = ({ path }: Operation, params: Draft['params']): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => encoded(params[name] ?? ''));

function queryOf(pairs: Draft['query']): string {
  if (pairs.length === 0) return '';
  const text = pairs.map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  return `?${text.join('&')}`;
}
