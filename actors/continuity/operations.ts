/**
 * The operations on executions: each goes to the service that the execution's id leads to, and
 * is served in its line.
 */

import type { BodyOf } from '../../schema/routes.js';
import { routeOf } from '../../src/core/ids.js';
import type { Call, Operation, RouteOperations } from '../runtime/operation.js';
import { ATTACHMENT_OPERATIONS } from './attachments.js';
import { CLAIM_OPERATIONS } from './claims.js';
import { EFFECT_OPERATIONS } from './effects.js';
import { ExecutionService, type ExecutionServiceDeps } from './execution-service.js';
import { EXECUTION_OPERATIONS } from './executions.js';
import { EXPORT_OPERATIONS } from './exports.js';
import { HANDOFF_OPERATIONS } from './handoffs.js';
import { IMPORT_OPERATIONS } from './imports.js';
import { MIGRATION_OPERATIONS } from './migrations.js';
import {
  type ContinuityOperation,
  type ExecutionOperation,
  type ExecutionOperations,
  tenantOf,
} from './operation.js';
import { PLACEMENT_OPERATIONS } from './placements.js';
import { answerFence } from './reconciliation.js';
import { RUNTIME_OPERATIONS } from './runtimes.js';

const OPERATIONS = {
  ...EXECUTION_OPERATIONS,
  ...EFFECT_OPERATIONS,
  ...RUNTIME_OPERATIONS,
  ...PLACEMENT_OPERATIONS,
  ...HANDOFF_OPERATIONS,
  ...MIGRATION_OPERATIONS,
  ...EXPORT_OPERATIONS,
  ...IMPORT_OPERATIONS,
  ...CLAIM_OPERATIONS,
  ...ATTACHMENT_OPERATIONS,
} satisfies ExecutionOperations;

export class Continuity {
  readonly service: ExecutionService;

  constructor(deps: ExecutionServiceDeps) {
    this.service = new ExecutionService(deps);
  }

  /** @throws EngineError 403 when the body names another tenant than the header */
  serve<Id extends ContinuityOperation>(
    operation: ExecutionOperation<Id>,
    call: Call<BodyOf<Id>>,
  ): void {
    const { service } = this;
    const { request, body } = call;
    const named = body as { readonly tenant_id?: string | null } | undefined;
    const tenant = tenantOf(call.tenant, named?.tenant_id);
    const id = operation.ledBy?.(body) ?? call.target;
    const asked = { tenant, id, body };
    const line = () => operation.lineOf?.(service, asked) ?? Promise.resolve(id);
    service.serve(request, line, () => operation.serve(service, asked));
  }

  /** A fenced instance asks whether its fence still stands. */
  asked(execution: string, instance: string): void {
    const { service } = this;
    service.runInBackground(execution, () => answerFence(service, execution, instance));
  }
}

export interface ContinuityParts {
  readonly continuity: Continuity;
}

/** Where the body leads, its shard answers; where it does not, the one that the path leads to. */
export const CONTINUITY_OPERATIONS = Object.fromEntries(
  Object.entries(OPERATIONS as Record<string, ExecutionOperation<never>>).map(([id, operation]) => {
    const { ledBy } = operation;
    const row: Operation<never, ContinuityParts> = {
      ...(ledBy && { leadsTo: (body: never) => routeOf(ledBy(body)) }),
      serve: ({ continuity }, call) => continuity.serve(operation, call),
    };
    return [id, row];
  }),
) as Pick<RouteOperations<ContinuityParts>, ContinuityOperation>;
