/**
 * The operations on executions, as they come to one shard: each is parsed, goes to the desk that the
 * execution's id leads to (handed on once, where only the body names it), and is served in its line.
 */

import type { BodyOf, BodyRouteId } from '../../schema/routes.js';
import type { Keyring } from '../../src/core/continuity/keys.js';
import { routeOf, shardOf } from '../../src/core/ids.js';
import { forbidden, notFound } from '../../src/errors.js';
import type { Plans } from '../plans.js';
import type { HandedOnOperation, ShardOperation } from '../protocol.js';
import { Desk, type DeskDeps, type DeskReply } from './desk.js';
import { createExecution } from './executions.js';

export type ContinuityOperation = Extract<
  ShardOperation,
  | `continuity.${string}`
  | `migrations.${string}`
  | `handoffs.${string}`
  | `capsules.${string}`
  | 'runtimes.register'
>;

export interface ContinuityDeps extends DeskDeps {
  readonly plans: Plans;
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
}

/** A request on its way to its desk. */
export interface ContinuityCall {
  readonly request: number;
  readonly operation: ContinuityOperation;
  /** Of the header; '' when there is none. */
  readonly tenant: string;
  /** The id in the path, if there is one. */
  readonly target: string;
  readonly text: string;
  /** Checks the body. @throws EngineError 400 */
  readonly parse: <Id extends BodyRouteId>(operation: Id, text: string) => BodyOf<Id>;
}

/** What the work of an operation is given beside its body. */
export interface Office {
  readonly desk: Desk;
  readonly plans: Plans;
  readonly keyring: Keyring | undefined;
}

export class Continuity {
  readonly desk: Desk;
  readonly #office: Office;
  readonly #deps: ContinuityDeps;

  constructor(deps: ContinuityDeps) {
    this.#deps = deps;
    this.desk = new Desk(deps);
    this.#office = { desk: this.desk, plans: deps.plans, keyring: deps.keyring };
  }

  /** @throws EngineError when the body is wrong */
  handle(call: ContinuityCall): void {
    switch (call.operation) {
      case 'continuity.create': {
        const body = call.parse(call.operation, call.text);
        const tenant = tenantOf(call.tenant, body.tenant_id);
        this.#serveAt(body.instance_id, call, () => createExecution(this.#office, tenant, body));
        return;
      }
      default:
        throw notFound(call.operation);
    }
  }

  /** A fenced instance asks whether its fence still stands. */
  asked(_execution: string, _instance: string, _tenant: string): void {}

  /** Here, or on the shard that the id leads to, which then parses the body again. */
  #serveAt(id: string, call: ContinuityCall, work: () => Promise<DeskReply>): void {
    const { shard, shards, release } = this.#deps;
    const owner = shardOf(routeOf(id), shards);
    if (owner === shard) {
      this.desk.serve(call.request, id, work);
      return;
    }
    const { request, tenant, text } = call;
    const operation = call.operation as HandedOnOperation;
    release([{ kind: 'peer', shard: owner, message: ['poll', request, tenant, text, operation] }]);
  }
}

/**
 * Whose the object is that a body speaks of (05 §0).
 *
 * @throws EngineError 403 when the body names another tenant than the header
 */
export function tenantOf(header: string, body: string | null | undefined): string {
  if (body == null || body === '') return header;
  if (header !== '' && body !== header) {
    throw forbidden('tenant_id is not the tenant of x-tenant-id');
  }
  return body;
}
