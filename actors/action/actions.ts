/**
 * Records what requests change: the unit of a request that its route marks as an action gets a row about it, so that
 * both are committed or neither. A request that changes nothing has no unit, and no row.
 */

import { ROUTES, type RouteId } from '../../schema/routes.js';
import type { JsonObject } from '../../src/base/json.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { type RequestedAction, requestedAction } from '../../src/http/requested-action.js';
import type { CommitLog } from '../runtime/commit-log.js';
import type { Request } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import { ACTION } from './tables.js';

export interface ActionsDeps {
  readonly commits: Pick<CommitLog, 'record'>;
  readonly now: () => UnixMs;
  readonly newId: () => string;
}

type Open = RequestedAction & { readonly tenant: string };

export class Actions {
  readonly #deps: ActionsDeps;
  /** Of requests that are not answered yet, by their numbers. */
  readonly #open = new Map<number, Open>();

  constructor(deps: ActionsDeps) {
    this.#deps = deps;
    deps.commits.record = (turn) => this.#record(turn);
  }

  get open(): number {
    return this.#open.size;
  }

  /** The request may make units from now on. */
  begin({ id, operation, tenant, target, by, key, action }: Request, body: unknown): void {
    if (by === undefined && action === undefined) return;
    const requester = { by: by ?? '', key };
    const { newId } = this.#deps;
    const requested =
      action ?? requestedAction(operation as RouteId, requester, target, body, newId);
    if (requested !== undefined) this.#open.set(id, { ...requested, tenant });
  }

  /** The request is answered. */
  end(request: number): void {
    if (this.#open.size > 0) this.#open.delete(request);
  }

  #record(turn: Turn): void {
    if (this.#open.size === 0) return;
    if (turn.request !== undefined) this.#put(turn, turn.request);
    for (const effect of turn.effects) {
      if (effect.kind === 'reply') this.#put(turn, effect.request);
    }
  }

  #put(turn: Turn, request: number): void {
    const action = this.#open.get(request);
    if (action === undefined) return;
    const { id, by, key, operation, details } = action;
    const kind = ROUTES[operation].action?.kind;
    const tenant_id = action.tenant || turn.tenant || tenantIn(turn);
    if (kind === undefined || tenant_id === undefined) return;
    turn.put(ACTION.insert, id, {
      id,
      tenant_id,
      at: isoTime(this.#deps.now()),
      by,
      key_id: key ?? null,
      operation,
      kind,
      // The first row of a unit that creates an object is the object's.
      target: action.target ?? String(turn.mutations[1]),
      details: { ...details, ...turn.actionDetails },
    });
  }
}

/** The rows of most tables name their tenant. */
function tenantIn({ mutations }: Turn): string | undefined {
  for (let i = 2; i < mutations.length; i += 3) {
    const { tenant_id } = JSON.parse(mutations[i] as string) as JsonObject;
    if (typeof tenant_id === 'string') return tenant_id;
  }
  return undefined;
}
