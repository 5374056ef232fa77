/**
 * The owner of the releases by itself, in virtual time: tables in memory, a writer that may die before
 * or after it commits, shards that answer or not, and a database that may be away.
 */

import assert from 'node:assert/strict';
import type { SequenceRow } from '../../actors/catalog/loads.js';
import { Plans } from '../../actors/catalog/plans.js';
import type { Outcomes } from '../../actors/release/core/gates.js';
import type { ReleaseRow } from '../../actors/release/core/record.js';
import { Releases } from '../../actors/release/releases.js';
import type { Operation } from '../../actors/runtime/operation.js';
import type { Room } from '../../actors/runtime/room.js';
import type { Effect } from '../../actors/runtime/turn.js';
import type { Loads } from '../../actors/shard/loads.js';
import { parserOf } from '../../actors/shard/requests.js';
import type { Release, ReleaseDecision } from '../../schema/release.js';
import { EngineError } from '../../src/base/errors.js';
import { withParts } from '../../src/base/rooms.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import { ActorWorld, committed, refused } from './actor-world.js';
import type { Json } from './api.js';
import { HandClock } from './hand-clock.js';

export const TENANT = 'tenant';
const START = Date.parse('2026-03-01T12:00:00Z');
type ReleaseOperation = keyof Releases['operations'];

/** What becomes of the next units. */
export type WriterMood = 'commits' | 'refuses' | 'dies before' | 'dies after' | 'is slow';

export type Answer = { readonly status: number; readonly body: Json };

export class ReleaseWorld extends ActorWorld {
  readonly clock = new HandClock(START);
  readonly sequences = new Map<string, SequenceRow>();
  readonly releases = new Map<string, ReleaseRow>();
  readonly decisions: ReleaseDecision[] = [];
  /** By release. */
  readonly outcomes = new Map<string, (Outcomes & { readonly at: number })[]>();
  /** By request. */
  readonly answers = new Map<number, Answer>();
  /** What shards were told, as `shard@version`, since the last call of `take`. */
  readonly #told: string[] = [];
  /** How often gates were looked at. */
  looks = 0;
  /** How long a look takes. */
  lookMs = 0;
  mood: WriterMood = 'commits';
  isDatabaseAway = false;
  /** Called when the row of a sequence is read. */
  onSequenceRead: () => void = () => undefined;
  /** Shards that answer what they are told. */
  readonly answering: Set<number>;
  readonly shards: number;
  readonly plans: Plans;
  #actor: Releases;
  #slow: UnitEnvelope[] = [];
  #requests = 0;
  #ids = 0;

  constructor(shards = 3) {
    super();
    this.shards = shards;
    this.answering = new Set(Array.from({ length: shards }, (_, shard) => shard));
    this.plans = new Plans(this.#rows());
    this.#actor = this.#born();
  }

  // ---------------------------------------------------------------- what the test does

  /** Two versions of a name of its own. */
  pair(): { baseline_sequence_id: string; candidate_sequence_id: string } {
    const name = `s-${this.sequences.size}`;
    const version = (number: number) => {
      const id = this.newId();
      const row = { id, tenant_id: TENANT, namespace: 'n', name, version: number };
      this.sequences.set(id, { ...row, deprecated: false, definition: '{"blocks":[]}' });
      return id;
    };
    return { baseline_sequence_id: version(1), candidate_sequence_id: version(2) };
  }

  settled(version: number, shard: number): void {
    this.#actor.messages['routes.settled']({ kind: 'routes.settled', version, shard });
  }

  hint(release: string): void {
    this.#actor.messages['release.ended']({ kind: 'release.ended', release });
  }

  /** Only asks; resolves with the number under which the answer will be. */
  send(operation: ReleaseOperation, target: string, body: Json = {}, tenant = TENANT): number {
    this.#requests += 1;
    const request = this.#requests;
    const row: Operation = this.#actor.operations[operation];
    const checked = parserOf(operation).parse(JSON.stringify(body), {}) as never;
    const call = { request, tenant, target, body: checked, traceparent: undefined };
    row.serve(call, {} as never);
    return request;
  }

  /** @throws AssertionError when there is no answer when everything is quiet */
  async ask(operation: ReleaseOperation, target: string, body?: Json): Promise<Answer> {
    const request = this.send(operation, target, body);
    await this.quiet();
    const answer = this.answers.get(request);
    assert.ok(answer !== undefined, `${operation} was not answered`);
    return answer;
  }

  async do(operation: ReleaseOperation, target: string, body?: Json): Promise<Json> {
    const { status, body: answer } = await this.ask(operation, target, body);
    assert.ok(status < 300, `${operation}: ${status} ${JSON.stringify(answer)}`);
    return answer;
  }

  async draft(more: Json = {}): Promise<Release> {
    const body = { ...this.pair(), ...more };
    return (await this.do('releases.create', '', body)) as unknown as Release;
  }

  async ready(more: Json = {}): Promise<Release> {
    const release = await this.draft(more);
    await this.do('releases.beginValidation', release.id, { skip: true });
    return release;
  }

  async canary(more: Json = {}): Promise<Release> {
    const release = await this.ready(more);
    await this.do('releases.canary', release.id, { percent: 50 });
    this.take();
    return release;
  }

  /** Instances that the release routed have ended. */
  ended(release: Release, side: 'baseline' | 'candidate', state: string, instances = 1): void {
    const sequence_id = release[`${side}_sequence_id`];
    const outcome = { sequence_id, state, instances, is_earlier: false, at: this.clock.ms };
    this.outcomes.set(release.id, [...(this.outcomes.get(release.id) ?? []), outcome]);
  }

  stateOf({ id }: Pick<Release, 'id'>): string | undefined {
    return this.releases.get(id)?.state;
  }

  /** As `from→to actor`, oldest first. */
  chainOf({ id }: Pick<Release, 'id'>): string[] {
    return this.decisions
      .filter(({ release_id }) => release_id === id)
      .map(({ from_state, to_state, actor }) => `${from_state}→${to_state} ${actor}`);
  }

  /** What the shards were told since the last call, as `shard@version`. */
  take(): string[] {
    return this.#told.splice(0);
  }

  /** The shards that were told something since the last call. */
  takeShards(): number[] {
    return [...new Set(this.take().map((text) => Number(text.split('@')[0])))].sort();
  }

  /** A new writer has settled what the old one left. */
  async writerReady(): Promise<void> {
    this.mood = 'commits';
    this.writerKnown();
    await this.quiet();
  }

  /** What a slow writer has is committed. */
  async flush(): Promise<void> {
    this.mood = 'commits';
    this.write(this.#slow.splice(0));
    await this.quiet();
  }

  /** The thread is replaced: only the tables are left. */
  async restart(): Promise<void> {
    for (const part of this.#parts) part.stop?.();
    this.forget();
    this.#slow = [];
    this.#actor = this.#born();
    for (const part of this.#parts) part.start?.();
    await this.quiet();
  }

  get #parts(): Room[] {
    return withParts<Room>([this.#actor]);
  }

  /** Time passes, and everything happens that is due by then. */
  async pass(ms: number): Promise<void> {
    const until = this.clock.ms + ms;
    await this.quiet();
    while (this.clock.step(until)) await this.quiet();
    this.clock.ms = until;
  }

  newId(): string {
    this.#ids += 1;
    return `01950000-0000-7000-8000-${String(this.#ids).padStart(12, '0')}`;
  }

  // ---------------------------------------------------------------- what the actor is given

  #born(): Releases {
    return new Releases({
      ...this.host(),
      loader: this.#rows(),
      clock: this.clock,
      now: () => this.clock.now(),
      newId: () => this.newId(),
      shards: this.shards,
      plans: this.plans,
    });
  }

  protected override endTurn(): void {}

  protected override perform(effect: Effect): void {
    if (effect.kind === 'reply') {
      const body = JSON.parse(effect.body) as Json;
      this.#answer(effect.request, { status: effect.status, body });
    } else if (effect.kind === 'error') {
      assert.ok(effect.error instanceof EngineError);
      const { status, message } = effect.error;
      this.#answer(effect.request, { status, body: { error: message } });
    } else if (effect.kind === 'peer' && effect.message.kind === 'routes.read') {
      const { shard } = effect;
      const { version } = effect.message;
      this.#told.push(`${shard}@${version}`);
      if (!this.answering.has(shard)) return;
      this.work.push(() => this.settled(version, shard));
    }
  }

  #answer(request: number, answer: Answer): void {
    assert.equal(this.answers.get(request), undefined, `request ${request} was answered twice`);
    this.answers.set(request, answer);
  }

  /** As the catalog does it. */
  deprecate(sequence: string): void {
    const row = this.sequences.get(sequence);
    if (row !== undefined) this.sequences.set(sequence, { ...row, deprecated: true });
  }

  #isDeprecated({ candidate_sequence_id }: ReleaseRow): boolean {
    return this.sequences.get(candidate_sequence_id)?.deprecated === true;
  }

  #rows(): Loads {
    const read = async <T>(give: () => T): Promise<T> => {
      if (this.isDatabaseAway) throw new Error('the database is away');
      return give();
    };
    const all = () => [...this.releases.values()];
    const rows: Partial<Loads> = {
      sequence: (id) =>
        read(() => {
          this.onSequenceRead();
          return this.sequences.get(id);
        }),
      release: (id) => read(() => this.releases.get(id)),
      routingRelease: (baseline) =>
        read(() =>
          all().find(
            ({ baseline_sequence_id, state }) =>
              baseline_sequence_id === baseline && (state === 'canary' || state === 'promoted'),
          ),
        ),
      openReleases: () =>
        read(() =>
          all()
            .map((row) => ({ ...row, is_deprecated: this.#isDeprecated(row) }))
            .filter(
              ({ state, gates, is_deprecated }) =>
                state === 'validating' ||
                (state === 'canary' && (gates.length > 0 || is_deprecated)),
            ),
        ),
      leadingReleases: (candidate) =>
        read(() =>
          all().filter(
            ({ candidate_sequence_id, state }) =>
              candidate_sequence_id === candidate && (state === 'canary' || state === 'promoted'),
          ),
        ),
      releaseOutcomes: (id, { since }) =>
        read(() => {
          this.looks += 1;
          this.clock.ms += this.lookMs;
          const from = Date.parse(since);
          return (this.outcomes.get(id) ?? []).filter(({ at }) => at >= from);
        }),
    };
    return rows as Loads;
  }

  // ---------------------------------------------------------------- the writer

  protected override write(units: readonly UnitEnvelope[]): void {
    switch (this.mood) {
      case 'is slow':
        this.#slow.push(...units);
        return;
      case 'dies before':
      case 'dies after':
        if (this.mood === 'dies after') for (const unit of units) this.#commit(unit);
        this.isWriterAway = true;
        this.commits.lose();
        return;
      case 'refuses':
        this.commits.settle(units.map((unit) => refused(unit, '23514')));
        return;
      case 'commits':
        this.commits.settle(units.map((unit) => this.#commit(unit)));
    }
  }

  #commit(unit: UnitEnvelope): Ack {
    return committed(unit, (kind, row: ReleaseRow & ReleaseDecision) => {
      if (kind === 'release.set') this.releases.set(row.id, row);
      else if (kind === 'releaseDecision.insert') this.decisions.push(row);
      else if (kind !== 'sequence.hold') assert.fail(`a mutation ${kind}`);
    });
  }
}
