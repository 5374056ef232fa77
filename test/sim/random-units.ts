/**
 * Units of random rows for every kind of mutation, over so few ids that they meet: what is inserted
 * is updated, deleted and inserted again, and some of it no database can store.
 */

import type { LOAD_SQL } from '../../actors/shard/loads.js';
import type { JsonValue } from '../../src/base/json.js';
import type { UnitGate } from '../../src/core/unit.js';
import { rowText } from '../../src/db/lines.js';
import { fieldsOf } from '../../src/db/mutation.js';
import type { BaseType } from '../../src/db/table.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import type { Random } from '../chaos/random.js';
import { MUTATION_KINDS, MUTATIONS, TABLES } from '../helpers/store.js';
import { words } from '../helpers/table.js';

const IDS = 5;
const START_MS = Date.parse('2031-01-01T00:00:00.000Z');

const FIELDS = new Map(MUTATION_KINDS.map((kind) => [kind, fieldsOf(MUTATIONS[kind]!)]));

/** Names of columns that some table does not let be null. */
const REQUIRED: ReadonlySet<string> = new Set(
  Object.values(TABLES).flatMap(({ columns }) =>
    Object.entries<string>(columns).flatMap(([name, type]) => (type.endsWith('?') ? [] : [name])),
  ),
);

/** Of tasks. */
const HISTORIES: readonly JsonValue[] = [
  [],
  [{ event: 'claimed' }, { event: 'failed' }],
  [{ event: 'reclaimed', reason: 'no heartbeat' }],
  [{ event: 'reclaimed', reason: 'the poll was abandoned' }, { event: 'claimed' }],
];

/** Fields that several tables have in common, so that rows find one another. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  state: ['scheduled', 'waiting', 'paused', 'completed', 'failed'],
  task_state: ['pending', 'claimed', 'failed'],
  release_state: ['draft', 'validating', 'ready', 'canary', 'paused', 'promoted'],
  output_ref: ['__error__', 'elsewhere'],
  handler_name: ['alpha', 'beta'],
  queue_name: ['fast', 'north'],
  tenant_id: ['north', 'south'],
  limit_key: ['north', 'nor*'],
  url: ['north', 'south'],
  content: ['', 'AAEC', '/+8='],
  effect_state: ['unknown', 'committed', 'verified'],
  block_id: ['a', 'b', 'c'],
  iteration: ['', '0', '1.2', '0!note'],
  status: ['pending', 'consumed', 'kept', 'taken'],
};

/** Rows are looked for in which these are null. */
const OFTEN_NULL: ReadonlySet<string> = new Set(['targets', 'fires', 'claimed_at']);

/** Columns of small numbers, for which a large one would only be refused. */
const INTEGER_MAX = 3;

const OFTEN_JOINED = /^(task|permitRequest|tombstone|sequence|release|trigger|effect)/;

/** What takes rows away comes less often, all rows of an instance least, so that some are left. */
const OFTEN = MUTATION_KINDS.toSorted().flatMap((kind) => {
  if (kind === 'instance.delete' || kind === 'sequence.delete') return [kind];
  // They find no rows.
  if (kind.startsWith('taskBefore')) return [kind];
  if (/delete|clear|drop|prune/.test(kind)) return new Array<string>(3).fill(kind);
  // Statements ask for several of these rows at once, or for one without another.
  return new Array<string>(
    /^(task\.insert|permitRequest\.set)$/.test(kind) ? 24 : OFTEN_JOINED.test(kind) ? 20 : 9,
  ).fill(kind);
});

export class RandomUnits {
  readonly #random: Random;
  #seq = 0;
  /** The unit has a value that is refused: of two, either database may complain about another one. */
  #isSpoilt = false;

  constructor(random: Random) {
    this.#random = random;
  }

  next(): UnitEnvelope {
    const random = this.#random;
    this.#seq += 1;
    this.#isSpoilt = false;
    const gate = random.weighted<UnitGate>({ none: 8, exists: 1, batch: 1 });
    const kinds = this.#kinds(gate);
    const mutations = kinds.flatMap((kind) => {
      const row = this.#row(kind);
      return [MUTATION_KINDS.indexOf(kind), this.#key(kind, row), rowText(MUTATIONS[kind]!, row)];
    });
    // One incarnation for each, so that a refusal does not concern the next one.
    return { seq: this.#seq, actor: 'actor', incarnation: this.#seq, gate, mutations };
  }

  #kinds(gate: UnitGate): string[] {
    const random = this.#random;
    if (gate === 'batch') return ['instance.insert', 'timer.set', 'instance.insert'];
    // A barrier stands alone in its batch, and may stand alone in its unit.
    const kinds = Array.from({ length: random.integer(1, 3) }, () => random.pick(OFTEN));
    if (gate === 'none') return kinds;
    return [random.pick(['sequence.insert', 'instance.insert']), ...kinds];
  }

  /** Of one group and key only the last row of a batch is written: the key is that of the row. */
  #key(kind: string, row: Readonly<Record<string, JsonValue>>): string {
    const { id, instance_id, task_id, key } = row;
    if (kind === 'worker.seen') return JSON.stringify([row.tenant_id, row.worker_id]);
    if (kind === 'activity.set') return JSON.stringify([row.tenant_id, row.at, row.shard]);
    if (kind === 'stepActivity.set') {
      return JSON.stringify([row.tenant_id, row.sequence_id, row.at, row.shard]);
    }
    if (kind === 'queueMinute.set') {
      const { tenant_id, handler_name, queue_name, at, shard } = row;
      return JSON.stringify([tenant_id, handler_name, queue_name, at, shard]);
    }
    if (kind === 'familyMessage.set') return `${row.to_id}:${row.from_id}`;
    if (kind === 'rateGrant.prune') return String(row.limit_id);
    if (/^bulk(Change|Retry)/.test(kind)) return `${row.job_id}:${instance_id}`;
    if (kind.startsWith('credential')) return `${row.tenant_id}:${id}`;
    if (kind.startsWith('trigger')) return String(row.slug);
    if (kind.startsWith('cancelWait')) return `${instance_id}:${row.key_id}`;
    if (kind.startsWith('eventCancel')) return `${row.event_id}:${row.key_id ?? instance_id}`;
    if (kind.startsWith('snapshot')) return `${instance_id}:${key}`;
    return String(id ?? task_id ?? instance_id);
  }

  #row(kind: string): Record<string, JsonValue> {
    const row: Record<string, JsonValue> = {};
    const wasSpoilt = this.#isSpoilt;
    // Where no row is in such a state Postgres does not look at the values.
    const { where = {} } = MUTATIONS[kind]! as { readonly where?: object };
    const isConditional = Object.keys(where).length > 0;
    if (isConditional) this.#isSpoilt = true;
    for (const [name, type] of FIELDS.get(kind)!) {
      row[name] = this.#value(name === 'state' ? stateOf(kind) : name, type);
    }
    if (isConditional) this.#isSpoilt = wasSpoilt;
    // These are ordered by their ids, which no constraint makes unique.
    if (kind === 'output.insert') row.id = this.#uniqueId();
    return row;
  }

  #uniqueId(): string {
    return `00000000-0000-7000-8001-${String(this.#seq).padStart(8, '0')}${this.#random.integer(1_000, 9_999)}`;
  }

  #value(name: string, type: BaseType): JsonValue {
    // The memory keeps these in rows of their own, which would be compared.
    if (name === 'end_outputs') return null;
    const random = this.#random;
    const isRequired = REQUIRED.has(name);
    if (!this.#isSpoilt) {
      this.#isSpoilt = random.chance(0.002) || (isRequired && random.chance(0.001));
      if (this.#isSpoilt) return isRequired && random.chance(0.3) ? null : this.#refused(type);
    }
    if (!isRequired && random.chance(OFTEN_NULL.has(name) ? 0.6 : 0.2)) return null;
    const known = WORDS[name];
    if (known !== undefined) return random.pick(known);
    switch (type) {
      case 'uuid':
        return randomId(random);
      case 'text':
        return random.pick(['north', 'south', 'ä "quoted" \\ text', '']);
      case 'boolean':
        return random.chance(0.5);
      case 'timestamptz':
        return randomTime(random);
      case 'json':
        if (name === 'gates') return random.pick([[], [{}]]);
        if (name === 'effect') return this.#receipt();
        if (name === 'history') return random.pick(HISTORIES);
        return name === 'block_ids' ? [random.pick(WORDS.block_id!)] : this.#json(0);
      default:
        return random.integer(0, INTEGER_MAX);
    }
  }

  /** A receipt as it is stored with an output, all of it. */
  #receipt(): JsonValue {
    const place = { instance_id: randomId(this.#random), continuity_id: randomId(this.#random) };
    const times = { created_at: randomTime(this.#random), updated_at: randomTime(this.#random) };
    return {
      id: this.#uniqueId(),
      ...place,
      tenant_id: 'north',
      epoch: this.#random.integer(0, INTEGER_MAX),
      block_id: 'a',
      attempt: 0,
      kind: 'http',
      state: 'committed',
      destination_fingerprint: 'f',
      idempotency_key: null,
      request_sha256: 'r',
      provider_receipt_id: null,
      ...times,
      iteration: '0',
    };
  }

  #json(depth: number): JsonValue {
    const random = this.#random;
    const leaf = () => random.pick<JsonValue>([1, -0.5, true, 'ß', '', 1e21, 'null']);
    if (depth > 1) return leaf();
    if (random.chance(0.3)) return [this.#json(depth + 1), null];
    return { b: this.#json(depth + 1), a: leaf(), 'ü ': null };
  }

  /** What the type, or the whole database, does not take. */
  #refused(type: BaseType): JsonValue {
    switch (type) {
      case 'uuid':
        return 'no uuid';
      case 'smallint':
      case 'integer':
        return this.#random.pick([4_000_000_000, 1.5]);
      case 'timestamptz':
        return 'no time';
      case 'boolean':
        return 'no truth';
      default:
        return 'no \u0000 in text';
    }
  }
}

/** Among which words the rows of the mutation have their states. */
function stateOf(kind: string): string {
  if (kind.startsWith('task')) return 'task_state';
  if (kind.startsWith('effect')) return 'effect_state';
  return kind === 'release.set' ? 'release_state' : 'state';
}

/** What a parameter of a statement of the loader may be; anything else stands for itself. */
const PARAMETERS: Readonly<Record<string, (random: Random) => unknown>> = {
  id: randomId,
  ids: (random) => [...new Set([randomId(random), randomId(random), randomId(random)])].sort(),
  time: randomTime,
  from: (random) => random.pick(['-infinity', randomTime(random)]),
  until: (random) => random.pick(['2031-01-02T00:00:00.000Z', randomTime(random)]),
  shard: (random) => random.integer(0, 1),
  rank: (random) => random.integer(-1, 1),
  handler: (random) => random.pick(WORDS.handler_name!),
  tenant: (random) => random.pick(WORDS.tenant_id!),
  queue: (random) => random.pick(WORDS.queue_name!),
};

/** Those that take a list of ids. */
const OF_IDS: ReadonlySet<string> = new Set(
  words(`
    instances taskOwners schedules activeRuns allOutputs endedBlocks checkpoints childEnds
    childOutputs orphanedInstances openEvents eventWaits eventTakes keyedInstances startOfInstance
    startsOfKey creationOfStart itemsOfStart ordersOfStart lateOrders
  `),
);

/** The parameters of others that take more, or less, than one id. */
const STATEMENTS: Partial<Record<keyof typeof LOAD_SQL, readonly unknown[]>> = {
  tasksToMove: ['id', 100],
  familyMessages: ['id', 'id', '00000000-0000-7000-8000-000000000003', 3, 'shard', 2],
  dueEventKeys: ['id', 'time', 2, 'shard', 2],
  eventListeners: [
    ['north', 'south', 'north', 'south'],
    ['north', 'north', 'south', 'south'],
    new Array(4).fill('00000000-0000-7000-8000-000000000001'),
    new Array(4).fill('00000000-0000-7000-8000-000000000002'),
  ],
  pendingCancels: ['id', 'id', 3, 'shard', 2],
  orderedStarts: ['id', 3, 'shard', 2],
  ratePatterns: [['north', 'south']],
  allRatePatterns: ['tenant', 'id', 3],
  grantedLimits: ['id', 'time', 2],
  oldestEndedEvent: [],
  endedInstances: ['ids', 'until'],
  outputRows: ['id', ['a', 'b', 'c']],
  dueSchedules: ['from', 'id', 'time', 3, 'shard', 2],
  dueStarts: ['from', 'id', 'time', 3, 'shard', 2],
  dueTimers: ['from', 'time', 'shard', 2],
  overdueTimers: ['from', 'time', 'shard', 2],
  recover: ['shard', 2],
  claimedTasks: ['shard', 2],
  // All names, each with no version and with four of them.
  namedSequence: [0, 1, 2, 3].map((column) =>
    [null, 0, 1, 2, 3].flatMap((version) =>
      [0, 1, 2, 3, 4, 5, 6, 7].map((name) =>
        column === 3 ? version : ['north', 'south'][(name >> column) & 1],
      ),
    ),
  ),
  routingReleases: [],
  openReleases: [],
  oldestAction: [],
  oldestActivity: [],
  oldestSteps: [],
  oldestQueueMinutes: [],
  oldestRetry: [],
  oldestDelivery: [],
  bulkJob: ['id'],
  openBulkJobs: ['tenant'],
  oldBulkJobs: ['tenant', 'time', 2],
  credentials: [
    ['north', 'north', 'south'],
    ['north', 'south', 'south'],
  ],
  credentialCount: ['tenant'],
  trigger: ['tenant'],
  permitKeys: ['id', 2, 'shard', 2],
  permitKeysWithWork: ['ids'],
  permitHolders: ['ids'],
  permitWaiters: ['ids', 2],
  startKeys: ['id', 2, 'shard', 2],
  startWaiters: ['ids', 2],
  rateGrants: ['id', 'time'],
  releaseOutcomes: ['id', 'time', 'id', 'from', 2],
  webhookUrls: ['', 2, 'shard', 2],
  subscriptions: [['north', 'west']],
  allSubscriptions: ['id', 2],
  endpoints: [['north', 'west']],
  allEndpoints: ['north', '', 2],
  endpointAt: [0],
  dueWebhooks: ['north', 'from', 'id', 3, 'shard', 2],
  readyTasks: ['alpha', 'rank', 'time', 'id', 3],
  readyTasksOfTenant: ['alpha', -1, 'time', 'id', 3, 'tenant'],
  readyTasksOfQueue: ['alpha', -1, 'time', 'id', 3, 'queue'],
  readyTasksOfTenantQueue: ['handler', -1, 'time', 'id', 3, 'tenant', 'queue'],
};

/** Values for the parameters of a statement of the loader. */
export function randomValues(random: Random, name: keyof typeof LOAD_SQL): readonly unknown[] {
  if (name === 'outputs' || name === 'outputTotals') return askedBlocks(random);
  if (name === 'itemOutputs') return askedItems(random);
  if (name === 'startGrants') {
    const ids = [1, 2, 3].map(() => randomId(random));
    return [ids, ids.map(() => randomTime(random))];
  }
  const parameters = STATEMENTS[name]! ?? [OF_IDS.has(name) ? 'ids' : 'id'];
  return parameters.map((one) => {
    const draw = PARAMETERS[String(one)];
    return draw === undefined ? one : draw(random);
  });
}

/** Items of for_each blocks of some instances: the rows of six arrays. */
function askedItems(random: Random): readonly unknown[] {
  const asked = [1, 2, 3, 4].map((at) => {
    const prefix = random.pick(['', '0.', '1.']);
    const items = random.pick([null, '[0]', '[1,0]']);
    return [at, randomId(random), prefix, prefix === '' ? 1 : 2, '["a","b"]', items];
  });
  return [0, 1, 2, 3, 4, 5].map((column) => asked.map((row) => row[column]));
}

/** Blocks of some instances: the rows of three arrays. */
function askedBlocks(random: Random): readonly unknown[] {
  const asked = [1, 2, 3].flatMap((at) => {
    const instance = randomId(random);
    return ['a', 'b'].map((block) => [at, instance, block]);
  });
  return [0, 1, 2].map((column) => asked.map((row) => row[column]));
}

function randomId(random: Random): string {
  return `00000000-0000-7000-8000-00000000000${random.integer(0, IDS - 1)}`;
}

function randomTime(random: Random): string {
  return new Date(START_MS + random.integer(0, 5) * 1_001).toISOString();
}
