/**
 * One concurrency key by itself: its actor over tables in memory, which are written as a writer
 * would, a unit at a time and acknowledged afterwards, and instances that do what they are told.
 */

import assert from 'node:assert/strict';
import { INSTANCE } from '../../actors/instance/tables.js';
import { Keys } from '../../actors/limits/keys.js';
import type { PermitHolderRow, PermitWaiterRow } from '../../actors/limits/loads.js';
import { WAITERS_MAX } from '../../actors/limits/waiting-line.js';
import { ownerOf } from '../../actors/runtime/service.js';
import { type Effect, Turn } from '../../actors/runtime/turn.js';
import type { Loads } from '../../actors/shard/loads.js';
import { realClock } from '../../src/base/real-clock.js';
import { isoTime } from '../../src/base/time.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { ActorWorld, committed, refused } from './actor-world.js';

const KEY = '00000000-0000-8000-8000-000000000000';

type Asked = {
  readonly number: number;
  readonly max: number;
  readonly createdAt: number;
  readonly whenFull: PermitWaiterRow['when_full'];
  /** The request is the slot. */
  readonly hasSlot?: true;
};

type Wanting = Partial<Omit<Asked, 'number' | 'hasSlot'>>;

/** Something that is said to the actor; a word that is never said is lost. */
export type Word = () => void;

export class KeyWorld extends ActorWorld {
  /** The table `permit_requests`, by instance. */
  readonly wishes = new Map<string, Asked>();
  /** The table `permits`, by instance: the number of the wish. */
  readonly slots = new Map<string, number>();
  /** Instances that run, by their rows. */
  readonly running = new Set<string>();
  /** Every slot that an instance was told of, as `instance#number`. */
  readonly told: string[] = [];
  /** Every instance for which there was no slot, as `instance: why`. */
  readonly denied: string[] = [];
  /** The kinds of the mutations of each unit. */
  readonly units: string[][] = [];
  reads = 0;
  now = 0;
  /** The next unit is refused. */
  refuses = false;
  readonly #numbers = new Map<string, number>();
  #keys: Keys;

  constructor() {
    super();
    this.#keys = this.#born();
  }

  /** The instance writes down that it wants a slot. */
  want(instance: string, { createdAt = 0, max = 1, whenFull = null }: Wanting = {}): Word {
    const number = (this.#numbers.get(instance) ?? 0) + 1;
    this.#numbers.set(instance, number);
    this.wishes.set(instance, { number, max, createdAt, whenFull });
    const tenant = 'acme';
    const request = { key: KEY, instance, tenant, number, max, createdAt, whenFull };
    return () => this.#keys.messages['permit.wanted']({ kind: 'permit.wanted', ...request });
  }

  /** A creation asks for a slot, and commits its instance with the slot. @param answers gets the answer */
  create(instance: string, answers: string[], { createdAt = 0, max = 1 } = {}): Word {
    const asked = { key: KEY, tenant: 'acme', instance, max, createdAt, request: 1 };
    return () =>
      this.#keys.take(asked, (answer) => {
        answers.push(answer.kind === 'full' ? `full: ${answer.holder}` : answer.kind);
        if (answer.kind !== 'free') return;
        const turn = new Turn('acme');
        answer.slot.record(turn);
        this.#numbers.set(instance, 1);
        const committed = () => {
          this.wishes.set(instance, { number: 1, max, createdAt, whenFull: null, hasSlot: true });
          this.running.add(instance);
        };
        turn.put(INSTANCE.insert, instance, '{}');
        this.commits.append(ownerOf(this.host(), { key: instance, committed }), turn);
      });
  }

  /** The instance writes down that it needs none any more. */
  leave(instance: string): Word {
    this.running.delete(instance);
    this.wishes.delete(instance);
    const number = this.#numbers.get(instance) ?? 0;
    const withdrawal = { key: KEY, instance, number };
    return () => this.#keys.messages['permit.left']({ kind: 'permit.left', ...withdrawal });
  }

  /** The actor hears these words in one turn; resolves when all that follows has happened. */
  async turn(...words: Word[]): Promise<void> {
    for (const word of words) word();
    this.endTurn();
    await this.quiet();
  }

  async rescan(): Promise<void> {
    await this.turn(() => this.#keys.peerBack());
  }

  /** Only the tables are left. */
  async restart(): Promise<void> {
    this.forget();
    this.#keys = this.#born();
    await this.rescan();
  }

  get isPassive(): boolean {
    return this.#keys.isPassive(KEY);
  }

  #born(): Keys {
    const rows: Pick<Loads, `permit${'Holders' | 'Keys' | 'KeysWithWork' | 'Waiters'}`> = {
      permitKeys: async () => [KEY],
      permitKeysWithWork: async () => (this.#hasWork() ? [KEY] : []),
      permitHolders: async () => {
        this.reads += 1;
        return this.#holders();
      },
      permitWaiters: async () => this.#waiters().slice(0, WAITERS_MAX),
    };
    const clock = { ...realClock, setTimeout: () => undefined };
    return new Keys({
      ...this.host(),
      loader: rows as Loads,
      clock,
      now: () => this.now,
      shards: 1,
    });
  }

  protected override endTurn(): void {
    this.#keys.endTurn();
  }

  protected override perform(effect: Effect): void {
    if (effect.kind === 'slot.settled') this.#keys.effects['slot.settled'](effect);
    if (effect.kind !== 'peer') return;
    if (effect.message.kind === 'permit.denied') {
      this.denied.push(`${effect.message.instance}: ${effect.message.why}`);
    }
    if (effect.message.kind !== 'permit.granted') return;
    const { instance, number } = effect.message;
    this.told.push(`${instance}#${number}`);
    assert.equal(this.slots.get(instance), number, 'told before it was committed');
    if (this.wishes.get(instance)?.number === number) this.running.add(instance);
  }

  #holders(): PermitHolderRow[] {
    const permits = [...this.slots].map(([instance, number]) => this.#holder(instance, number));
    const requests = [...this.wishes].filter(([, { hasSlot }]) => hasSlot === true);
    const own = requests.map(([instance, { number }]) => this.#holder(instance, number));
    return [...permits, ...own.map((row) => ({ ...row, has_permit: false, is_awaited: false }))];
  }

  #hasWork(): boolean {
    const isLost = ({ wanted, number, is_awaited }: PermitHolderRow) =>
      wanted !== number || is_awaited;
    return this.#waiters().length > 0 || this.#holders().some(isLost);
  }

  #holder(instance_id: string, number: number): PermitHolderRow {
    const wanted = this.wishes.get(instance_id)?.number ?? null;
    const is_awaited = !this.running.has(instance_id);
    const createdAt = this.wishes.get(instance_id)?.createdAt;
    const created_at = createdAt === undefined ? null : isoTime(createdAt);
    return {
      instance_id,
      number,
      wanted,
      has_permit: true,
      is_awaited,
      created_at,
      tenant_id: 'acme',
    };
  }

  #waiters(): PermitWaiterRow[] {
    return [...this.wishes]
      .filter(([instance, { hasSlot }]) => hasSlot !== true && !this.slots.has(instance))
      .sort(([a, x], [b, y]) => x.createdAt - y.createdAt || (a < b ? -1 : 1))
      .map(([instance_id, { number, max, createdAt, whenFull }]) => {
        const created_at = isoTime(createdAt);
        const row = { instance_id, number, max_concurrency: max, created_at, when_full: whenFull };
        return { ...row, tenant_id: 'acme' };
      });
  }

  protected override write(units: readonly UnitEnvelope[]): void {
    this.commits.settle(
      units.map((unit) => {
        if (this.refuses) {
          this.refuses = false;
          return refused(unit, '23514');
        }
        const kinds: string[] = [];
        this.units.push(kinds);
        return committed(unit, (kind, row: PermitHolderRow) => {
          if (kind === 'permit.set') this.slots.set(row.instance_id, row.number);
          else if (kind === 'permit.clear') this.slots.delete(row.instance_id);
          kinds.push(kind);
        });
      }),
    );
    // What was refused makes it read the rows again.
    this.endTurn();
  }
}
