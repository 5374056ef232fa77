/**
 * The operations on executions, as they come to one shard: each is parsed, goes to the desk that the
 * execution's id leads to (handed on once, where only the body names it), and is served in its line.
 */

import type { BodyOf, BodyRouteId } from '../../schema/routes.js';
import { routeOf, shardOf } from '../../src/core/ids.js';
import { notFound } from '../../src/errors.js';
import type { HandedOnOperation } from '../protocol.js';
import { ATTACHMENT_SERVICES } from './attachments.js';
import { CLAIM_SERVICES } from './claims.js';
import { Desk, type DeskDeps } from './desk.js';
import { EFFECT_SERVICES } from './effects.js';
import { EXECUTION_SERVICES } from './executions.js';
import { EXPORT_SERVICES } from './exports.js';
import { HANDOFF_SERVICES } from './handoffs.js';
import { answerFence } from './healing.js';
import { IMPORT_SERVICES } from './imports.js';
import { MIGRATION_SERVICES } from './migrations.js';
import type { Asked, ContinuityOperation, Office, Service, Services } from './office.js';
import { tenantOf } from './office.js';
import { PLACEMENT_SERVICES } from './placements.js';
import { RUNTIME_SERVICES } from './runtimes.js';

const SERVICES: Services = {
  ...EXECUTION_SERVICES,
  ...EFFECT_SERVICES,
  ...RUNTIME_SERVICES,
  ...PLACEMENT_SERVICES,
  ...HANDOFF_SERVICES,
  ...MIGRATION_SERVICES,
  ...EXPORT_SERVICES,
  ...IMPORT_SERVICES,
  ...CLAIM_SERVICES,
  ...ATTACHMENT_SERVICES,
};

export interface ContinuityDeps extends DeskDeps, Omit<Office, 'desk'> {}

/** A request on its way to its desk. */
export interface ContinuityCall<Id extends ContinuityOperation = ContinuityOperation> {
  readonly request: number;
  readonly operation: Id;
  /** Of the header; '' when there is none. */
  readonly tenant: string;
  /** The id in the path, if there is one. */
  readonly target: string;
  readonly text: string;
  /** Checks the body. @throws EngineError 400 */
  readonly parse: <Any extends BodyRouteId>(operation: Any, text: string) => BodyOf<Any>;
}

export class Continuity {
  readonly desk: Desk;
  readonly #office: Office;
  readonly #deps: ContinuityDeps;

  constructor(deps: ContinuityDeps) {
    this.#deps = deps;
    this.desk = new Desk(deps);
    const { plans, keyring, judge, unpoliciedRetry } = deps;
    this.#office = { desk: this.desk, plans, keyring, judge, unpoliciedRetry };
  }

  /** @throws EngineError when the body is wrong */
  handle<Id extends ContinuityOperation>(call: ContinuityCall<Id>): void {
    const service: Service<Id> | undefined = SERVICES[call.operation];
    if (service === undefined) throw notFound(call.operation);
    const body = call.parse(call.operation, call.text);
    const tenant = tenantOf(call.tenant, (body as { tenant_id?: string | null }).tenant_id);
    const id = service.ledBy?.(body) ?? call.target;
    const { shard, shards } = this.#deps;
    const owner = shardOf(routeOf(id), shards);
    if (owner === shard || service.isServedAnywhere) {
      this.#serve(call.request, service, { tenant, id, body });
    } else this.#handOn(owner, call);
  }

  /** A fenced instance asks whether its fence still stands. */
  asked(execution: string, instance: string): void {
    this.desk.care(execution, () => answerFence(this.#office, execution, instance));
  }

  #serve<Id extends ContinuityOperation>(
    request: number,
    service: Service<Id>,
    asked: Asked<Id>,
  ): void {
    const office = this.#office;
    const line = () => service.lineOf?.(office, asked) ?? Promise.resolve(asked.id);
    this.desk.serve(request, line, () => service.serve(office, asked));
  }

  /** The other shard parses the body again. */
  #handOn(owner: number, { request, tenant, text, operation }: ContinuityCall): void {
    const handedOn = operation as HandedOnOperation;
    const message = ['poll', request, tenant, text, handedOn] as const;
    this.#deps.release([{ kind: 'peer', shard: owner, message }]);
  }
}
