/**
 * The watermark of the change feed in virtual time: clocks that go back, units that are settled in
 * any order or lost, shards and owners that are replaced.
 */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ChangeFeed } from '../../actors/feed/changes.js';
import { CommitLog, type PendingUnit, type Settlement } from '../../actors/runtime/commit-log.js';
import type { Ack } from '../../actors/runtime/protocol.js';
import { type Effect, Turn } from '../../actors/runtime/turn.js';
import type { Clock } from '../../src/core/clock.js';
import { createLogger } from '../../src/log.js';
import { createRandom, type Random } from '../chaos/random.js';

const T0 = Date.parse('2026-03-01T12:00:00Z');
const TENANT = 't';

/** One shard's feed, its commits, and a clock of its own. */
class World {
  now = T0;
  readonly commits = new CommitLog();
  readonly feed: ChangeFeed;
  /** By request: a body, or the code of an error. */
  readonly answers = new Map<number, string>();
  isWriterAway = false;
  #onWriterKnown: (() => void)[] = [];
  #seq = 0;
  #requests = 0;
  #timers: (() => void)[] = [];

  constructor(shard = 0, stampsFrom = 0) {
    const clock: Clock = {
      now: () => this.now,
      monotonic: () => 0,
      setTimeout: (fn) => this.#timers.push(fn),
      clearTimeout: () => undefined,
    };
    this.feed = new ChangeFeed({
      shard,
      clock,
      random: () => 0.5,
      now: () => this.now,
      commits: this.commits,
      log: createLogger('silent', 'test'),
      whenWriterKnown: (then) => {
        if (this.isWriterAway) this.#onWriterKnown.push(then);
        else then();
      },
      release: (effects) => this.#release(effects),
      schedule: (work) => work(),
    });
    this.feed.stampFrom(stampsFrom);
  }

  /** Makes a unit with an entry; returns its number and time. */
  entry(settled?: (ack: Settlement) => void): { readonly seq: number; readonly at: number } {
    const at = this.feed.stamp();
    const turn = new Turn();
    turn.put('audit.insert', 'key', {});
    const owner = {
      key: 'a',
      incarnation: 1,
      settled: (_unit: PendingUnit, ack: Settlement) => {
        settled?.(ack);
        if (ack.outcome === 'committed') this.feed.watchers.changed(TENANT);
      },
    };
    this.commits.append(owner, turn);
    return { seq: this.taken(), at };
  }

  /** The number of the unit that was made last. */
  taken(): number {
    this.#seq = this.commits.take().at(-1)?.seq ?? this.#seq;
    return this.#seq;
  }

  /** The rows of the mark that wait for the writer. */
  marks(): { readonly seq: number; readonly stampsFrom: number }[] {
    return this.commits
      .take()
      .filter(({ actor }) => actor === 'change-mark')
      .map(({ seq, mutations }) => ({
        seq,
        stampsFrom: Date.parse(JSON.parse(String(mutations[2])).stamps_from),
      }));
  }

  commit(...seqs: number[]): void {
    this.commits.settle(seqs.map((seq) => ({ seq, outcome: 'committed' })));
  }

  ask(past = 0): number {
    this.#requests += 1;
    this.feed.watermark(this.#requests, past);
    return this.#requests;
  }

  watch(known?: number): number {
    this.#requests += 1;
    this.feed.watchers.watch(TENANT, { request: this.#requests, tenant: TENANT }, known);
    return this.#requests;
  }

  loseWriter(): void {
    this.isWriterAway = true;
    this.commits.lose();
  }

  regainWriter(): void {
    this.isWriterAway = false;
    for (const then of this.#onWriterKnown.splice(0)) then();
    this.feed.watchers.changedAll();
  }

  #release(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === 'reply') this.answers.set(effect.request, effect.body);
      if (effect.kind === 'error') this.answers.set(effect.request, effect.error.code);
    }
  }
}

/** The time in an answer that was given. */
const numberOf = (body: string | undefined): number => {
  const { at, ahead } = JSON.parse(String(body));
  assert.ok(Number.isInteger(at) && ahead < at, body);
  return at;
};

let world: World;
beforeEach(() => {
  world = new World(1);
});

describe('the times of entries', () => {
  test('never go back, although the clock does', () => {
    world = new World();
    const times = [0, 5, -3_600_000, -10, 6, 7].map((offset) => {
      world.now = T0 + offset;
      return world.feed.stamp();
    });
    assert.deepEqual(times, [T0, T0 + 5, T0 + 5, T0 + 5, T0 + 6, T0 + 7]);
  });

  test('are not below a watermark that was answered, although the clock is', () => {
    const at = numberOf(world.answers.get(world.ask()));
    world.now = T0 - 86_400_000;
    const entry = world.entry();
    assert.ok(entry.at >= at);
    const request = world.ask(T0 + 50);
    world.commit(entry.seq);
    assert.ok(numberOf(world.answers.get(request)) > T0 + 50);
    assert.ok(world.entry().at > T0 + 50);
  });
});

describe('the answer', () => {
  test('comes when the units that were made before are settled, and waits for no later one', () => {
    const [first, second] = [world.entry(), world.entry()];
    const request = world.ask();
    const later = world.entry();
    world.commit(second.seq);
    assert.equal(world.answers.get(request), undefined);
    world.commit(first.seq);
    const at = numberOf(world.answers.get(request));
    assert.ok(later.at >= at);
  });

  test('is above what the reader names, and above every entry that was made before', () => {
    const entry = world.entry();
    const request = world.ask(entry.at);
    world.commit(entry.seq);
    assert.ok(numberOf(world.answers.get(request)) > entry.at);
  });

  test('waits for a new writer when the old one died: its units may have been committed', () => {
    world.entry();
    const request = world.ask();
    world.loseWriter();
    const meanwhile = world.ask();
    assert.deepEqual([...world.answers], []);
    world.regainWriter();
    numberOf(world.answers.get(request));
    numberOf(world.answers.get(meanwhile));
  });
});

describe('the mark on the first shard', () => {
  test('is durable before a watermark is answered, and ahead of it', () => {
    world = new World(0);
    const request = world.ask();
    const [mark] = world.marks();
    assert.ok(mark);
    assert.equal(world.answers.get(request), undefined);
    world.commit(mark.seq);
    const at = numberOf(world.answers.get(request));
    assert.ok(mark.stampsFrom > at);
    const again = world.ask(at + 10);
    assert.deepEqual(world.marks(), []);
    numberOf(world.answers.get(again));
    world.ask(mark.stampsFrom);
    assert.equal(world.marks().length, 1);
  });

  test('an answer whose mark was lost is an error, and the next one sets it anew', () => {
    world = new World(0);
    const request = world.ask();
    world.marks();
    world.loseWriter();
    world.regainWriter();
    assert.equal(world.answers.get(request), 'ENG_DATABASE_DOWN');
    const again = world.ask();
    world.commit(...world.marks().map(({ seq }) => seq));
    numberOf(world.answers.get(again));
  });

  test('an owner that begins with it stamps above all answers, an hour behind by its clock', () => {
    world = new World(0);
    const request = world.ask();
    const [mark] = world.marks();
    world.commit(mark?.seq ?? 0);
    const at = numberOf(world.answers.get(request));
    const successor = new World(0, mark?.stampsFrom);
    successor.now = T0 - 3_600_000;
    assert.ok(successor.feed.stamp() >= at);
  });
});

describe('a watch', () => {
  test('is answered when entries of its tenant were committed, with a time that is not below', () => {
    const first = JSON.parse(String(world.answers.get(world.watch())));
    const request = world.watch(first.version);
    assert.equal(world.answers.get(request), undefined);
    const entry = world.entry();
    assert.equal(world.answers.get(request), undefined);
    world.commit(entry.seq);
    const { version, latest } = JSON.parse(String(world.answers.get(request)));
    assert.notEqual(version, first.version);
    assert.ok(latest >= entry.at);
  });

  test('with a version that is not the present one is answered at once', () => {
    const { version } = JSON.parse(String(world.answers.get(world.watch())));
    const entry = world.entry();
    world.commit(entry.seq);
    for (const known of [undefined, 1, version]) {
      assert.ok(world.answers.has(world.watch(known)), String(known));
    }
  });

  test('is answered when a writer died: nobody was told of what it had committed', () => {
    const { version } = JSON.parse(String(world.answers.get(world.watch())));
    world.entry();
    const request = world.watch(version);
    world.loseWriter();
    world.regainWriter();
    assert.ok(world.answers.has(request));
  });
});

// ---------------------------------------------------------------- many histories

interface Entry {
  readonly at: number;
  readonly number: number;
}

/** Three shards, a reader, and everything in an order that the seed decides. */
class History {
  readonly #random: Random;
  readonly #worlds: World[];
  readonly #open: { readonly world: World; readonly entry: Entry; readonly seq: number }[] = [];
  readonly #rows: Entry[] = [];
  readonly seen: Entry[] = [];
  #entries = 0;
  #highest = 0;
  /** What the reader asked; shards that have not answered are missing from `at`. */
  #round: { readonly world: World; readonly request: number; at: number | undefined }[] = [];
  #readBelow = 0;
  /** The latest time in the rows. */
  #latest = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#worlds = [1, 2, 3].map((shard) => new World(shard));
  }

  step(): void {
    const index = this.#random.integer(0, 2);
    const world = this.#worlds[index] as World;
    world.now += this.#random.integer(-20, 25);
    const what = this.#random.weighted({ stamp: 30, settle: 50, ask: 20, replace: 1 });
    if (what === 'stamp') this.#stamp(world);
    if (what === 'settle') this.#settleOne();
    // Who was told of news names their time; a clock that is far behind does not hold them back.
    const past = this.#random.chance(0.5) ? this.#latest : 0;
    if (what === 'ask' && this.#round.length === 0) this.ask(past);
    if (what === 'replace') this.#replace(index);
    this.read();
  }

  get rows(): readonly Entry[] {
    return [...this.#rows].sort((a, b) => a.at - b.at || a.number - b.number);
  }

  settleAll(): void {
    while (this.#open.length > 0) this.#settleOne();
    this.read();
  }

  /** @param past what the watermark has to be above */
  ask(past = 0): void {
    this.#round = this.#worlds.map((world) => ({ world, request: world.ask(past), at: undefined }));
  }

  /** Reads once all have answered. */
  read(): void {
    for (const asked of this.#round) {
      const answer = asked.world.answers.get(asked.request);
      if (answer === undefined) continue;
      asked.at = numberOf(answer);
      this.#highest = Math.max(this.#highest, asked.at);
    }
    if (this.#round.length === 0 || this.#round.some(({ at }) => at === undefined)) return;
    const below = Math.min(...this.#round.map(({ at }) => at as number));
    this.#round = [];
    const news = this.rows.filter(({ at }) => at >= this.#readBelow && at < below);
    this.seen.push(...news);
    this.#readBelow = Math.max(below, this.#readBelow);
  }

  #stamp(world: World): void {
    const number = this.#entries++;
    const { seq, at } = world.entry();
    this.#open.push({ world, seq, entry: { at, number } });
  }

  #commit(entry: Entry): void {
    this.#rows.push(entry);
    this.#latest = Math.max(this.#latest, entry.at);
  }

  #settleOne(): void {
    if (this.#open.length === 0) return;
    const index = this.#random.integer(0, this.#open.length - 1);
    const [unit] = this.#open.splice(index, 1);
    if (unit === undefined) return;
    const isCommitted = this.#random.chance(0.9);
    if (isCommitted) this.#commit(unit.entry);
    const { seq } = unit;
    const refused: Ack = { seq, outcome: 'refused', sqlState: '22000', reason: 'no' };
    unit.world.commits.settle([isCommitted ? { seq, outcome: 'committed' } : refused]);
  }

  /** A thread dies: what it had under way is decided first; who waits for it is told. */
  #replace(index: number): void {
    const old = this.#worlds[index] as World;
    this.read();
    for (const unit of this.#open.filter(({ world }) => world === old)) {
      this.#open.splice(this.#open.indexOf(unit), 1);
      if (this.#random.chance(0.5)) this.#commit(unit.entry);
    }
    if (this.#round.some(({ world, at }) => world === old && at === undefined)) this.#round = [];
    const next = new World(index + 1, this.#highest);
    next.now = old.now - this.#random.integer(0, 5_000);
    this.#worlds[index] = next;
  }
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`a reader sees every entry once and in order, whatever the order of commits: history ${seed}`, () => {
    const history = new History(createRandom(seed));
    for (let i = 0; i < 4_000; i++) history.step();
    history.settleAll();
    const seenBefore = history.seen.length;
    history.ask(history.rows.at(-1)?.at);
    history.read();
    assert.ok(seenBefore > 500, String(seenBefore));
    assert.deepEqual(history.seen, history.rows);
  });
}
