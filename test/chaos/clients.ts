/**
 * The clients of a chaos run that create, read and steer instances. Each owns the instances that it
 * made, so that what is sent to one of them is sent in order, and each enters in the ledger what it
 * sends and what it is told. A client repeats nothing by itself; it goes on with something else.
 */

import { setTimeout as wait } from 'node:timers/promises';
import type { InstanceCreated, TaskInstance } from '../../schema/instance.js';
import type { SignalAccepted } from '../../schema/signal.js';
import { type Client, NoReplyError, type Reply } from '../helpers/client.js';
import type { Gate } from './gate.js';
import type { ControlKind, Creation, InstanceRecord, Ledger, Op } from './ledger.js';
import type { Random } from './random.js';
import { type Shape, type ShapeName, SLOT_KEYS, SLOTS } from './shapes.js';

export interface World {
  readonly ledger: Ledger;
  /** Of the server of the moment. */
  client: Client;
  /** Closed while the server is known to be down. */
  readonly gate: Gate;
  readonly tenant: string;
  readonly shapes: Readonly<Record<ShapeName, Shape>>;
  readonly sequenceIds: Readonly<Record<ShapeName, string>>;
  /** No more instances than about this are made; the clients then only read and steer. */
  readonly instancesMax: number;
  isOver(): boolean;
}

/** How often each operation is chosen. */
const OPERATIONS = {
  create: 30,
  createKeyed: 22,
  createBatch: 4,
  read: 18,
  patchContext: 9,
  updateContext: 8,
  customSignal: 3,
  control: 5,
  retry: 1,
} as const;

const SHAPE_WEIGHTS: Readonly<Record<ShapeName, number>> = {
  pure: 30,
  external: 24,
  flaky: 10,
  timed: 10,
  web: 8,
  doomed: 4,
  parked: 6,
  later: 4,
  slotted: 10,
  limited: 6,
};

/** Instances that wait for the workers at most, so that they are done soon after the run. */
const OPEN_WORK_MAX = 400;
/** Instances that a client goes on to read and steer; the older ones are left alone. */
const OWN_MAX = 60;
/** Clients compete for a few keys at a time and move on to others together. */
const SHARED_KEYS = 4;
const INSTANCES_PER_ERA = 100;
const BATCH_ITEMS_MAX = 8;
/** The pause after a 5xx, so that a server in trouble is not asked in a tight loop. */
const BACK_OFF_MS = 20;
const FAR_FUTURE = '2999-01-01T00:00:00Z';

const CONTROL_WEIGHTS: Readonly<Record<ControlKind, number>> = {
  pause: 5,
  resume: 5,
  cancel: 2,
  'patch.paused': 2,
  'patch.scheduled': 2,
  'patch.cancelled': 1,
};

export class ChaosClient {
  readonly #world: World;
  readonly #name: string;
  readonly #random: Random;
  readonly #own: InstanceRecord[] = [];
  #counter = 0;

  constructor(world: World, name: string, random: Random) {
    this.#world = world;
    this.#name = name;
    this.#random = random;
  }

  /** Resolves when the run is over and the last request has been answered or lost. */
  async run(): Promise<void> {
    while (!this.#world.isOver()) {
      await this.#world.gate.passed();
      await this.#operate();
    }
  }

  #operate(): Promise<void> {
    const isFull = this.#world.ledger.creations.size >= this.#world.instancesMax;
    const operation = this.#random.weighted(OPERATIONS);
    if (operation === 'create' && !isFull) return this.#create(this.#chooseShape());
    if (operation === 'createKeyed' && !isFull) return this.#createKeyed();
    if (operation === 'createBatch' && !isFull) return this.#createBatch();
    // An instance without an acknowledged creation of ours is nobody's to steer.
    if (this.#own.length === 0) return this.#create('pure');
    const record = this.#random.pick(this.#own);
    switch (operation) {
      case 'patchContext':
        return this.#patchContext(record);
      case 'updateContext':
        return this.#updateContext(record);
      case 'customSignal':
        return this.#signal(record, 'custom:ping', { at: this.#next() }, []);
      case 'control':
        return this.#control(record);
      case 'retry':
        return this.#retry(record);
      default:
        return this.#read(record);
    }
  }

  async #create(shape: ShapeName, key?: string): Promise<void> {
    const { ledger, client } = this.#world;
    const creation: Creation = ledger.create(this.#token(), shape, key);
    const reply = await this.#send([creation], 201, () =>
      client.post<InstanceCreated>('/instances', this.#body(shape, creation.token, key)),
    );
    if (reply === undefined) return;
    const isFirst = !ledger.instances.has(reply.id);
    const record = ledger.created(creation, reply);
    if (!isFirst) return;
    // The first client that learns of an instance owns it.
    this.#own.push(record);
    if (this.#own.length > OWN_MAX) this.#own.shift();
    if (this.#world.shapes[shape].isServed) ledger.openWork += 1;
  }

  /** The key names the shape, so that all creations with one key ask for the same. */
  #createKeyed(): Promise<void> {
    const shape = this.#random.chance(0.5) ? this.#chooseShape() : 'pure';
    if (this.#random.chance(0.4)) {
      // Every third creation has a key of its own; the two after it repeat it.
      return this.#create(shape, `${this.#name}/${shape}/${Math.floor(this.#counter / 3)}`);
    }
    const era = Math.floor(this.#world.ledger.instances.size / INSTANCES_PER_ERA);
    return this.#create(shape, `${shape}/${era}/${this.#random.integer(1, SHARED_KEYS)}`);
  }

  async #createBatch(): Promise<void> {
    const { ledger, client } = this.#world;
    const shape = this.#random.pick<ShapeName>(['pure', 'parked']);
    const count = this.#random.integer(1, BATCH_ITEMS_MAX);
    const tokens = Array.from({ length: count }, () => this.#token());
    const batch = ledger.createBatch(tokens, shape);
    const instances = tokens.map((token) => this.#body(shape, token));
    await this.#send([batch], 201, () => client.post('/instances/batch', { instances }));
  }

  async #read(record: InstanceRecord): Promise<void> {
    const { ledger, client } = this.#world;
    const path = `/instances/${record.id}`;
    const body = await this.#send([], 200, () => client.get<TaskInstance>(path));
    if (body !== undefined) ledger.seen(record, body.state, { ...body });
  }

  /** An instance gets PATCHes or update_context signals, never both: their order is then known. */
  async #patchContext(record: InstanceRecord): Promise<void> {
    if (record.notes.length > 0) return this.#read(record);
    const { ledger, client } = this.#world;
    const write = ledger.patch(record, this.#next());
    const context = { data: { patch: write.number, mark: 'patched' } };
    await this.#send([write], 200, () =>
      client.patch(`/instances/${record.id}/context`, { context }),
    );
  }

  async #updateContext(record: InstanceRecord): Promise<void> {
    if (record.patches.length > 0) return this.#read(record);
    const write = this.#world.ledger.note(record, this.#next());
    await this.#signal(record, 'update_context', { note: write.number }, [write]);
  }

  /** @param ops what else the acknowledged signal promises */
  async #signal(
    record: InstanceRecord,
    type: string,
    payload: object,
    ops: readonly Op[],
  ): Promise<void> {
    const { ledger, client } = this.#world;
    const signal = ledger.signal(record, type);
    const path = `/instances/${record.id}/signals`;
    const reply = await this.#send([signal, ...ops], 201, () =>
      client.post<SignalAccepted>(path, { signal_type: type, payload }),
    );
    if (reply !== undefined) signal.id = reply.signal_id;
  }

  /** Only where the resting state says whether the control was kept. */
  async #control(record: InstanceRecord): Promise<void> {
    const { ledger, client, shapes } = this.#world;
    const isSteered = shapes[record.shape].isServed || ['parked', 'later'].includes(record.shape);
    if (!isSteered) return this.#read(record);
    const kind = this.#random.weighted(CONTROL_WEIGHTS);
    const control = ledger.control(record, kind);
    const [signal, state] = kind.split('.');
    if (state === undefined) return this.#signal(record, String(signal), {}, [control]);
    const path = `/instances/${record.id}/state`;
    await this.#send([control], 200, () => client.patch(path, { state }));
  }

  /** A doomed instance fails again; every other one refuses unless a worker failed it. */
  async #retry(record: InstanceRecord): Promise<void> {
    if (record.shape !== 'doomed') return this.#read(record);
    const { client } = this.#world;
    await this.#send([], 200, () => client.post(`/instances/${record.id}/retry`));
  }

  /** Settles the ops by the status: acknowledged when it is the wanted one, refused by a 4xx. */
  async #send<T>(
    ops: readonly Op[],
    status: number,
    request: () => Promise<Reply<T>>,
  ): Promise<T | undefined> {
    const { ledger } = this.#world;
    try {
      const reply = await request();
      if (reply.status === status) {
        for (const op of ops) ledger.settle(op, 'acknowledged');
        return reply.body;
      }
      // After a 5xx the request may have had its effect, or have it yet.
      if (reply.status < 500) for (const op of ops) ledger.settle(op, 'refused');
      else await this.#backOff(reply);
    } catch (error) {
      if (!(error instanceof NoReplyError)) throw error;
      if (error.isTimeout) ledger.complain(`a request hung: ${error.message}`);
      if (!error.isSent) for (const op of ops) ledger.settle(op, 'refused');
    }
    return undefined;
  }

  async #backOff(reply: Reply<unknown>): Promise<void> {
    const isDefect = reply.status !== 503;
    if (isDefect) this.#world.ledger.complain(`a client got ${reply.status}: ${reply.text}`);
    await wait(BACK_OFF_MS);
  }

  #chooseShape(): ShapeName {
    const shape = this.#random.weighted(SHAPE_WEIGHTS);
    const { ledger, shapes } = this.#world;
    return shapes[shape].isServed && ledger.openWork > OPEN_WORK_MAX ? 'pure' : shape;
  }

  #body(shape: ShapeName, token: string, key?: string): object {
    return {
      sequence_id: this.#world.sequenceIds[shape],
      tenant_id: this.#world.tenant,
      namespace: 'chaos',
      priority: this.#random.pick(['low', 'normal', 'high', 'critical']),
      metadata: { token },
      context: { data: { mark: 'none' }, config: { token } },
      ...(key === undefined ? {} : { idempotency_key: key }),
      ...(shape === 'later' ? { next_fire_at: FAR_FUTURE } : {}),
      ...(shape === 'slotted' ? this.#slot() : {}),
    };
  }

  #slot(): object {
    const key = `slot-${this.#random.integer(1, SLOT_KEYS)}`;
    return { concurrency_key: key, max_concurrency: SLOTS };
  }

  #token(): string {
    return `${this.#name}-${this.#next()}`;
  }

  #next(): number {
    this.#counter += 1;
    return this.#counter;
  }
}
