/**
 * The operators of a run: they make releases between the versions of a sequence and move them, mostly
 * as the state of a release allows, and several of them at once.
 */

import type { ReleaseState } from '../../schema/release.js';
import type { Row } from './memory-tables.js';
import type { Parts } from './parts.js';

type OperatorDeps = Pick<Parts, 'world' | 'api' | 'random' | 'tables' | 'versions'>;

type Move = 'rest' | 'skip' | 'validate' | 'canary' | 'evaluate' | 'pause' | 'promote' | 'rollback';

/** What is asked for, by the state that the release seems to be in. */
const MOVES: Readonly<Record<ReleaseState, Readonly<Partial<Record<Move, number>>>>> = {
  draft: { skip: 6, validate: 3 },
  validating: { skip: 1, rollback: 1 },
  ready: { canary: 8, validate: 1, promote: 1 },
  canary: { rest: 5, evaluate: 2, pause: 2, promote: 2, rollback: 1, canary: 1 },
  paused: { canary: 4, rollback: 2, promote: 1 },
  promoted: { rollback: 1, pause: 1, evaluate: 1 },
  rolled_back: { rollback: 2, canary: 1, evaluate: 1 },
  failed: { skip: 1, canary: 1 },
};

/** Who has no answer by then goes on. */
const PATIENCE_MS = 2_000;

const ENDS: ReadonlySet<unknown> = new Set(['promoted', 'rolled_back', 'failed']);

const PERCENTS = [1, 40, 50, 50, 60, 100] as const;

export class Operator {
  readonly #deps: OperatorDeps;
  /** Promotes what it can, in any direction, and leaves nothing to gates. */
  readonly #isHasty: boolean;

  constructor(deps: OperatorDeps) {
    this.#deps = deps;
    this.#isHasty = deps.random.chance(0.12);
  }

  async run(operations: number, pauseMs: number): Promise<void> {
    const { world, random } = this.#deps;
    for (let i = 0; i < operations; i++) {
      const isCanary = this.#open().some(({ state }) => state === 'canary');
      await world.sleep(world.latency(1, isCanary ? pauseMs : 150));
      const done = this.#operation();
      if (random.chance(0.7)) await Promise.race([done, world.sleep(PATIENCE_MS)]);
    }
  }

  #operation(): Promise<unknown> {
    const { random, tables } = this.#deps;
    const releases = [...tables.rows('releases').values()];
    const open = this.#open();
    if (open.length < 2 && random.chance(open.length === 0 ? 1 : 0.3)) return this.#create();
    const release = random.pick(random.chance(0.9) && open.length > 0 ? open : releases);
    return this.move(release);
  }

  /** Those that are on their way. */
  #open(): Row[] {
    const releases = [...this.#deps.tables.rows('releases').values()];
    return releases.filter(({ state }) => !ENDS.has(state));
  }

  /** Asks for something that the release may be asked for. */
  move({ id, state }: Row): Promise<unknown> {
    const { random } = this.#deps;
    const release = String(id);
    const isHasty = this.#isHasty && state === 'canary';
    const weights = MOVES[state as ReleaseState] as Record<Move, number>;
    const move = isHasty ? 'promote' : random.weighted(weights);
    const moves: Record<Move, () => Promise<unknown>> = {
      rest: () => Promise.resolve(),
      skip: () => this.#ask('releases.beginValidation', release, { skip: true }),
      validate: () => this.#validate(release),
      canary: () => this.#ask('releases.canary', release, { percent: random.pick(PERCENTS) }),
      promote: () =>
        this.#ask('releases.promote', release, random.chance(0.3) ? { force: true } : {}),
      rollback: () => this.#rollBack(release),
      evaluate: () => this.#ask('releases.evaluate', release),
      pause: () => this.#ask('releases.pause', release),
    };
    return moves[move]();
  }

  /** Who has no answer soon asks again. */
  async #rollBack(release: string): Promise<void> {
    const { world, random } = this.#deps;
    const first = this.#ask('releases.rollback', release);
    if (random.chance(0.5)) {
      await world.sleep(world.latency(1, 500));
      await this.#ask('releases.rollback', release);
    }
    await first;
  }

  #create(): Promise<unknown> {
    const { random, versions } = this.#deps;
    const from = random.integer(0, versions.length - 2);
    const sides = [versions[from]!.id, versions[from + 1]!.id];
    if (random.chance(this.#isHasty ? 0.5 : 0.15)) sides.reverse();
    const count = this.#isHasty ? 0 : random.pick([0, 1, 1, 2]);
    const gates = Array.from({ length: count }, () => ({
      metric: random.pick(['error_rate', 'error_rate', 'cancel_rate']),
      max_regression: random.pick([0, 0.25, 0.5]),
      min_sample: random.integer(0, 2),
    }));
    const [baseline_sequence_id, candidate_sequence_id] = sides;
    return this.#ask('releases.create', '', { baseline_sequence_id, candidate_sequence_id, gates });
  }

  /** As the front does it, which may die meanwhile. */
  async #validate(release: string): Promise<void> {
    const { world, random } = this.#deps;
    const { status } = await this.#ask('releases.beginValidation', release, {});
    if (status !== 200) return;
    await world.sleep(world.latency(1, 1_000));
    const outcome = random.weighted({ ready: 8, draft: 2, failed: 1, nothing: 1 });
    if (outcome === 'nothing') return;
    const evidence = { replayed: 1, matches: 1, diverged: 0, inconclusive: 0, divergences: [] };
    const body = outcome === 'ready' ? { outcome, evidence } : { outcome, reason: 'simulated' };
    await this.#ask('releases.endValidation', release, body);
  }

  #ask(operation: string, target: string, body?: object) {
    const { api, versions } = this.#deps;
    return api.call(operation, versions[0]!.tenant, target, body);
  }
}
