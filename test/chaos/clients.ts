/**
 * The clients of a chaos run that create, read and steer instances. Each owns the instances that it
 * made, so that what is sent to one of them is sent in order, and each enters in the ledger what it
 * sends and what it is told. A client repeats nothing by itself; it goes on with something else.
 */

import { setTimeout as wait } from 'node:timers/promises';
import type { EventReceipt } from '../../schema/event.js';
import type { InstanceResult, TaskInstance } from '../../schema/instance.js';
import type { SignalAccepted, SignalAnswer } from '../../schema/signal.js';
import { type Client, NoReplyError, type Reply } from '../helpers/client.js';
import type { Gate } from './gate.js';
import { type ControlKind, type InstanceRecord, type Ledger, type Op, orderOf } from './ledger.js';
import type { Outside } from './outside.js';
import type { Random } from './random.js';
import { ASKING, LIMIT_KEYS, type Shape, type ShapeName, SLOTS, WITHDRAWAL } from './shapes.js';

export interface World {
  readonly ledger: Ledger;
  /** Of the server of the moment. */
  client: Client;
  /** Closed while the server is known to be down. */
  readonly gate: Gate;
  readonly tenant: string;
  readonly shapes: Readonly<Record<ShapeName, Shape>>;
  readonly sequenceIds: Readonly<Record<ShapeName, string>>;
  /** Absent: shapes that need it are not created. */
  readonly outside?: Outside;
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
  withdraw: 3,
  deliver: 10,
  ask: 6,
} as const;

type Operation = keyof typeof OPERATIONS;

/** The shape of the instances that an operation is about. */
const SHAPE_OF: Partial<Record<Operation, ShapeName>> = {
  withdraw: 'withdrawn',
  deliver: 'paid',
  ask: 'asking',
};

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
  keyed: 36,
  skipping: 36,
  throttled: 10,
  paced: 10,
  batched: 16,
  debounced: 10,
  withdrawn: 10,
  paid: 14,
  asking: 10,
  pushed: 16,
  limited: 6,
};

const COLLECTED: ReadonlySet<ShapeName> = new Set(['batched', 'debounced']);
const NEEDS_OUTSIDE: ReadonlySet<ShapeName> = new Set(['paid', 'pushed']);

/** How many creations wait for the end of their instance, and how long; senders of signals to a step always do. */
const WAIT_CHANCE = 0.15;
const WAIT_MS_MAX = 800;
/** How many deliveries are sent once more. */
const REPEAT_CHANCE = 0.4;

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
/** Beside those that are served. */
const STEERED: ReadonlySet<ShapeName> = new Set(['parked', 'later', 'withdrawn']);
const FAR_FUTURE = '2999-01-01T00:00:00Z';

const CONTROL_WEIGHTS: Readonly<Record<ControlKind, number>> = {
  pause: 5,
  resume: 5,
  cancel: 2,
  withdraw: 0,
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
    const shape = SHAPE_OF[operation];
    const own = this.#own.filter((record) => shape === undefined || record.shape === shape);
    if (own.length === 0) return this.#read(this.#random.pick(this.#own));
    const record = this.#random.pick(own);
    switch (operation) {
      case 'withdraw':
        return this.#withdraw(record);
      case 'deliver':
        return this.#deliver(record);
      case 'ask':
        return this.#ask(record);
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
    const creation = ledger.create(this.#token(), shape, key);
    const query = this.#random.chance(WAIT_CHANCE) ? `?${this.#wait()}` : '';
    const reply = await this.#send([creation], [200, 201, 202], () =>
      client.post<InstanceResult>(`/instances${query}`, this.#body(shape, creation.token, key)),
    );
    if (reply === undefined) return;
    const { status, body } = reply;
    if (body.skipped) return ledger.skipped(creation, body);
    // Nobody steers them: their data is what was collected.
    if (COLLECTED.has(shape)) return ledger.collected(creation, body);
    const isFirst = !ledger.instances.has(body.id);
    const record = ledger.created(creation, body);
    if (status === 200) ledger.resulted(record, body);
    if (!isFirst) return;
    // The first client that learns of an instance owns it.
    this.#own.push(record);
    if (this.#own.length > OWN_MAX) this.#own.shift();
    if (this.#world.shapes[shape].isServed) ledger.openWork += 1;
  }

  /** The key names the shape, so that all creations with one key ask for the same. */
  #createKeyed(): Promise<void> {
    const shape = this.#random.chance(0.75) ? this.#chooseShape() : 'pure';
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
    await this.#send([batch], [201], () => client.post('/instances/batch', { instances }));
  }

  async #read(record: InstanceRecord): Promise<void> {
    const { ledger, client } = this.#world;
    const path = `/instances/${record.id}`;
    const reply = await this.#send([], [200], () => client.get<TaskInstance>(path));
    if (reply !== undefined) ledger.seen(record, reply.body.state, { ...reply.body });
  }

  /** An instance gets PATCHes or update_context signals, never both: their order is then known. */
  async #patchContext(record: InstanceRecord): Promise<void> {
    if (record.notes.length > 0) return this.#read(record);
    const { ledger, client } = this.#world;
    const write = ledger.patch(record, this.#next());
    const context = { data: { patch: write.number, mark: 'patched' } };
    await this.#send([write], [200], () =>
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
    const reply = await this.#send([signal, ...ops], [201], () =>
      client.post<SignalAccepted>(path, { signal_type: type, payload }),
    );
    if (reply !== undefined) signal.id = reply.body.signal_id;
  }

  /** Waits for what the step replies. */
  async #ask(record: InstanceRecord): Promise<void> {
    const { ledger, client } = this.#world;
    const number = this.#next();
    const signal_type = `custom:${ASKING}`;
    const signal = ledger.signal(record, signal_type, number);
    const path = `/instances/${record.id}/signals?${this.#wait()}`;
    const reply = await this.#send([signal], [200, 202], () =>
      client.post<SignalAnswer>(path, { signal_type, payload: { number } }),
    );
    if (reply === undefined) return;
    signal.id = reply.body.signal_id;
    if (reply.status === 200) signal.answer = reply.body;
  }

  /** By an event, which is the same one each time. */
  async #withdraw(record: InstanceRecord): Promise<void> {
    const { ledger, client } = this.#world;
    const control = ledger.control(record, 'withdraw');
    const correlation_key = orderOf(record);
    const event = { event_name: WITHDRAWAL, correlation_key, producer_event_id: correlation_key };
    await this.#send([control], [200, 201], () => client.post<EventReceipt>('/events', event));
  }

  async #deliver(record: InstanceRecord): Promise<void> {
    const { ledger, outside } = this.#world;
    const isRepeated = record.deliveries.length > 0 && this.#random.chance(REPEAT_CHANCE);
    const delivery = isRepeated
      ? this.#random.pick(record.deliveries)
      : ledger.deliver(record, this.#token());
    const attempt = ledger.attempt(delivery);
    const reply = await this.#send([attempt], [202], () =>
      outside!.deliver(this.#world.client, orderOf(record), delivery.id),
    );
    if (reply === undefined) return;
    const { event_id, duplicate } = reply.body;
    ledger.delivered(delivery, event_id, duplicate !== true);
  }

  /** Only where the resting state says whether the control was kept. */
  async #control(record: InstanceRecord): Promise<void> {
    const { ledger, client, shapes } = this.#world;
    const isSteered = shapes[record.shape].isServed || STEERED.has(record.shape);
    if (!isSteered) return this.#read(record);
    const kind = this.#random.weighted(CONTROL_WEIGHTS);
    const control = ledger.control(record, kind);
    const [signal, state] = kind.split('.');
    if (state === undefined) return this.#signal(record, String(signal), {}, [control]);
    const path = `/instances/${record.id}/state`;
    await this.#send([control], [200], () => client.patch(path, { state }));
  }

  /** A doomed instance fails again; every other one refuses unless a worker failed it. */
  async #retry(record: InstanceRecord): Promise<void> {
    if (record.shape !== 'doomed') return this.#read(record);
    const { client } = this.#world;
    await this.#send([], [200], () => client.post(`/instances/${record.id}/retry`));
  }

  /** Settles the ops by the status: acknowledged when it is a wanted one, refused by a 4xx. */
  async #send<T>(
    ops: readonly Op[],
    wanted: readonly number[],
    request: () => Promise<Reply<T>>,
  ): Promise<Reply<T> | undefined> {
    const { ledger } = this.#world;
    try {
      const reply = await request();
      if (wanted.includes(reply.status)) {
        for (const op of ops) ledger.settle(op, 'acknowledged');
        return reply;
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
    const { ledger, shapes, outside } = this.#world;
    if (outside === undefined && NEEDS_OUTSIDE.has(shape)) return 'pure';
    return shapes[shape].isServed && ledger.openWork > OPEN_WORK_MAX ? 'pure' : shape;
  }

  #body(shape: ShapeName, token: string, key?: string): object {
    const limitKey = this.#random.integer(1, LIMIT_KEYS);
    const slot = { concurrency_key: `slot-${limitKey}`, max_concurrency: SLOTS };
    return {
      sequence_id: this.#world.sequenceIds[shape],
      tenant_id: this.#world.tenant,
      namespace: 'chaos',
      priority: this.#random.pick(['low', 'normal', 'high', 'critical']),
      metadata: { token, key: limitKey },
      context: {
        data: { mark: 'none', token },
        config: { token, key: limitKey, order: orderOf({ key, token }) },
      },
      ...(key === undefined ? {} : { idempotency_key: key }),
      ...(shape === 'later' ? { next_fire_at: FAR_FUTURE } : {}),
      ...(shape === 'slotted' ? slot : {}),
    };
  }

  #wait(): string {
    return `wait_ms=${this.#random.integer(0, WAIT_MS_MAX)}`;
  }

  #token(): string {
    return `${this.#name}-${this.#next()}`;
  }

  #next(): number {
    this.#counter += 1;
    return this.#counter;
  }
}
