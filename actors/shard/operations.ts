/**
 * The table of what shards answer: a row for every route that the front thread leaves to them, and
 * rows for what that thread asks by itself. A route without its row does not compile, nor does a row
 * without its route.
 */

import { type BodyRouteId, ROUTES, type ShardRouteId } from '../../schema/routes.js';
import { hasLists } from '../../schema/sequence.js';
import { createValidators } from '../../schema/validators.js';
import {
  type BodyInPieces,
  type BodyJudgement,
  type DoubtfulBody,
  parseAsJudged,
  parseBody,
  parseInPieces,
} from '../../src/http/body.js';
import { BULK_ENGINE_OPERATIONS, BULK_OPERATIONS, type BulkParts } from '../bulk/operations.js';
import {
  CATALOG_ENGINE_OPERATIONS,
  type CatalogParts,
  KEY_ENGINE_OPERATIONS,
  SEQUENCE_OPERATIONS,
  TENANT_ENGINE_OPERATIONS,
} from '../catalog/operations.js';
import { CONTINUITY_OPERATIONS, type ContinuityParts } from '../continuity/operations.js';
import { CREDENTIAL_OPERATIONS, type CredentialParts } from '../credential/operations.js';
import { EVENT_ENGINE_OPERATIONS, EVENT_OPERATIONS, type EventParts } from '../event/operations.js';
import { FEED_ENGINE_OPERATIONS, type FeedParts } from '../feed/operations.js';
import {
  INSTANCE_ENGINE_OPERATIONS,
  INSTANCE_OPERATIONS,
  type InstanceParts,
} from '../instance/operations.js';
import { LIMIT_OPERATIONS, type LimitParts } from '../limits/operations.js';
import { QUEUE_ENGINE_OPERATIONS, QUEUE_OPERATIONS, type QueueParts } from '../queue/operations.js';
import {
  RELEASE_ENGINE_OPERATIONS,
  RELEASE_OPERATIONS,
  type ReleaseParts,
} from '../release/operations.js';
import type { EngineOperations, Operation, RouteOperations } from '../runtime/operation.js';
import { SCHEDULE_OPERATIONS, type ScheduleParts } from '../schedule/operations.js';
import { TRIGGER_OPERATIONS, type TriggerParts } from '../trigger/operations.js';
import { WEBHOOK_OPERATIONS, type WebhookParts } from '../webhook/operations.js';

/** What the functions of the rows work on. */
export interface OperationParts
  extends BulkParts,
    CatalogParts,
    ContinuityParts,
    CredentialParts,
    EventParts,
    FeedParts,
    InstanceParts,
    LimitParts,
    QueueParts,
    ReleaseParts,
    ScheduleParts,
    TriggerParts,
    WebhookParts {}

const ROUTE_OPERATIONS = {
  ...INSTANCE_OPERATIONS,
  ...QUEUE_OPERATIONS,
  ...LIMIT_OPERATIONS,
  ...SCHEDULE_OPERATIONS,
  ...SEQUENCE_OPERATIONS,
  ...RELEASE_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...TRIGGER_OPERATIONS,
  ...BULK_OPERATIONS,
  ...CREDENTIAL_OPERATIONS,
  ...CONTINUITY_OPERATIONS,
  ...EVENT_OPERATIONS,
} satisfies RouteOperations<OperationParts>;

const ENGINE_OPERATIONS = {
  ...INSTANCE_ENGINE_OPERATIONS,
  ...FEED_ENGINE_OPERATIONS,
  ...CATALOG_ENGINE_OPERATIONS,
  ...KEY_ENGINE_OPERATIONS,
  ...TENANT_ENGINE_OPERATIONS,
  ...RELEASE_ENGINE_OPERATIONS,
  ...EVENT_ENGINE_OPERATIONS,
  ...BULK_ENGINE_OPERATIONS,
  ...QUEUE_ENGINE_OPERATIONS,
} satisfies EngineOperations<OperationParts>;

type EngineTable = typeof ENGINE_OPERATIONS;
type EngineOperation = keyof EngineTable;
export type ShardOperation = ShardRouteId | EngineOperation;

type Query = Readonly<Record<string, unknown>>;

/** A row, and how the text of a body becomes what its function takes. */
export type AnyOperation = Operation<never, OperationParts, never> & {
  /** @throws EngineError 400 */
  readonly parse: (text: string, query: Query) => unknown;
  /** For texts that are large; undefined where none is. */
  readonly large?: LargeBodies | undefined;
};

export interface LargeBodies {
  /** @throws EngineError */
  readonly parse: (text: string) => BodyInPieces<unknown>;
  /** What the job `judgeBody` takes when there was nothing to serve. */
  readonly doubt: (text: string, query: Query) => DoubtfulBody;
  /** @throws EngineError */
  readonly parseAs: (text: string, judgement: BodyJudgement) => BodyInPieces<unknown>;
}

/** Of the thread, since compiling takes a while: a simulation has many shards in one. */
const VALIDATORS = createValidators();

/** By the name that a request gives. */
export const OPERATIONS: ReadonlyMap<string, AnyOperation> = new Map<string, AnyOperation>([
  ...Object.entries(ROUTE_OPERATIONS).map(
    ([id, row]) => [id, { ...row, ...parsersOf(id as ShardRouteId) }] as const,
  ),
  ...Object.entries(ENGINE_OPERATIONS).map(([id, row]) => [id, { ...row, parse }] as const),
]);

function parsersOf(id: ShardRouteId): Pick<AnyOperation, 'parse' | 'large'> {
  if (ROUTES[id].body === undefined) return { parse: () => undefined };
  const operation = id as BodyRouteId;
  return {
    parse: (text, query) => parseBody(VALIDATORS, operation, text, hasLists(id, query)),
    large: {
      parse: (text) => parseInPieces(VALIDATORS, operation, text),
      doubt: (text, query) => ({ operation, text, isListed: hasLists(id, query) }),
      parseAs: (text, judgement) => parseAsJudged(VALIDATORS, operation, text, judgement),
    },
  };
}

function parse(text: string): unknown {
  return text === '' ? undefined : JSON.parse(text);
}
