/**
 * The tenants served in the cell of this engine (docs/operate/cells.md). A request for a tenant of another cell gets
 * 421 before any work, so that a wrong map of a proxy never splits a tenant; a tenant that is served here costs one
 * lookup in a set. Unknown tenants are looked up in the directory; while it is unavailable, known tenants are served.
 */

import type { Clock } from '../base/clock.js';
import { EngineError, invalid, unavailable } from '../base/errors.js';
import { lastUsed } from '../base/quota/last-used.js';
import { isSchemaName } from '../db/database-url.js';
import type { Placement } from '../http/ports.js';
import type { CellRow, Directory, Settled } from './directory.js';
import { bucketOf, cellOfBucket } from './routing.js';

interface QuestionOptions<Answer> {
  /** Asks one batch; a tenant without an answer gets undefined. */
  readonly ask: (tenants: readonly string[]) => Promise<ReadonlyMap<string, Answer>>;
  readonly togetherMax: number;
  readonly waitingMax: number;
  readonly tooMany: () => Error;
}

/** Batches lookups: questions that arrive while a batch is asked form the next one; equal ones share an answer. */
class CollectedQuestions<Answer> {
  readonly #options: QuestionOptions<Answer>;
  readonly #answers = new Map<string, Promise<Answer | undefined>>();
  /** In order of arrival, without the batch that is being asked. */
  readonly #waiting = new Map<
    string,
    { resolve(answer: Answer | undefined): void; reject(error: unknown): void }
  >();
  #isAsking = false;

  constructor(options: QuestionOptions<Answer>) {
    this.#options = options;
  }

  /** Rejects with the error of the batch. @throws the error of `tooMany` */
  about(tenant: string): Promise<Answer | undefined> {
    const pending = this.#answers.get(tenant);
    if (pending !== undefined) return pending;
    const { waitingMax, tooMany } = this.#options;
    if (this.#waiting.size >= waitingMax) throw tooMany();
    const answer = new Promise<Answer | undefined>((resolve, reject) => {
      this.#waiting.set(tenant, { resolve, reject });
    });
    this.#answers.set(tenant, answer);
    if (!this.#isAsking && this.#waiting.size === 1) queueMicrotask(() => this.#ask());
    return answer;
  }

  async #ask(): Promise<void> {
    const { ask, togetherMax } = this.#options;
    this.#isAsking = true;
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, togetherMax);
      for (const [tenant] of batch) this.#waiting.delete(tenant);
      try {
        const answers = await ask(batch.map(([tenant]) => tenant));
        for (const [tenant, { resolve }] of batch) resolve(answers.get(tenant));
      } catch (error) {
        for (const [, { reject }] of batch) reject(error);
      }
      for (const [tenant] of batch) this.#answers.delete(tenant);
    }
    this.#isAsking = false;
  }
}

/** The place of a tenant, seen from this cell. `new`: its bucket leads here, and it is not settled yet. */
export type TenantPlace =
  | { readonly is: 'here' | 'new' | 'suspended' | 'unplaced' }
  | { readonly is: 'elsewhere'; readonly cell: string };

/** Pure. @param settled the tenant's cell; undefined: its bucket decides. @param open cells that take new tenants */
export function placeOf(
  own: string,
  tenant: string,
  settled: string | undefined,
  open: readonly string[],
): TenantPlace {
  const cell = settled ?? cellOfBucket(bucketOf(tenant), open);
  if (cell === undefined) return { is: 'unplaced' };
  if (cell !== own) return { is: 'elsewhere', cell };
  return { is: settled === undefined ? 'new' : 'here' };
}

export type CellKnown = Pick<CellRow, 'name' | 'state'> &
  Partial<Pick<CellRow, 'joined_at' | 'found_at'>>;

export interface PlacementOptions {
  readonly cell: string;
  readonly directory: Pick<Directory, 'settle'> & {
    placementsOf(tenants: readonly string[]): Promise<readonly Settled[]>;
  };
  readonly onUnavailable: (error: unknown) => void;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** About 50 MB. */
const HERE_MAX = 500_000;
/** Recently looked up tenants that are settled elsewhere or nowhere. */
const OTHERS_MAX = 50_000;
/** Tenants in one question to the directory, and tenants that wait for the next one. */
const TOGETHER_MAX = 500;
const WAITING_MAX = 10_000;
/** For callers with unknown keys. */
const STRANGERS_TOGETHER_MAX = 100;
const STRANGERS_WAITING_MAX = 1_000;
const SUSPENDED_RETRY_MS = 1_000;

const HERE: TenantPlace = { is: 'here' };
const SUSPENDED: TenantPlace = { is: 'suspended' };

const SUSPENDED_REFUSAL = unavailable(
  'ENG_TENANT_MOVING',
  'the tenant is being moved to another cell',
  SUSPENDED_RETRY_MS,
);

const UNPLACED = unavailable('ENG_NO_CELL', 'no cell of the cluster takes new tenants');
const TOO_MANY = unavailable('ENG_OVERLOADED', 'too many tenants wait for the directory');

export const DIRECTORY_UNAVAILABLE = unavailable(
  'ENG_DIRECTORY_DOWN',
  'the directory of the cluster is unavailable',
);

export function wrongCell(cell: string, own: string): EngineError {
  const message = `misdirected request: it is for the cell ${cell}, and this is an engine of ${own}`;
  return new EngineError('ENG_WRONG_CELL', message, undefined, undefined, { cell });
}

/** While this holds, a tenant with rows in the cell could be settled in another one. */
const isUnsearched = ({ joined_at = null, found_at = null }: CellKnown) =>
  joined_at !== null && found_at === null;

const unsearched = (cell: string) =>
  unavailable(
    'ENG_NO_CELL',
    `cell ${cell} has not been searched for its tenants yet: new tenants wait`,
  );

/** A poll or stream that ends when its tenant is no longer served here. */
interface Bound {
  readonly isPoll: boolean;
  readonly end: (why: EngineError) => void;
}

export class CellPlacement implements Placement {
  readonly cell: string;
  readonly #onUnavailable: PlacementOptions['onUnavailable'];
  /** The oldest first. */
  readonly #here = new Set<string>();
  /** With the monotonic time of each suspension; the oldest first. */
  readonly #suspended = new Map<string, number>();
  /** Suspended tenants that move here. */
  readonly #arriving = new Set<string>();
  readonly #clock: PlacementOptions['clock'];
  /** Cells of other tenants; undefined: settled nowhere. */
  readonly #others = lastUsed<string, { readonly cell: string | undefined }>(OTHERS_MAX);
  readonly #questions: CollectedQuestions<string>;
  /** A separate queue, so that callers with unknown keys do not delay others. */
  readonly #strangers: CollectedQuestions<string>;
  readonly #settlings: CollectedQuestions<string>;
  readonly #bound = new Map<string, Set<Bound>>();
  #open: readonly string[] = [];
  /** A cell that is not searched for its tenants yet: until then no tenant is settled by hash. */
  #unsearched: string | undefined;
  /** Requests answered with 421. */
  refused = 0;

  constructor({ cell, directory, onUnavailable, clock }: PlacementOptions) {
    this.cell = cell;
    this.#clock = clock;
    this.#onUnavailable = onUnavailable;
    const bounds = { togetherMax: TOGETHER_MAX, waitingMax: WAITING_MAX, tooMany: () => TOO_MANY };
    const ask = async (tenants: readonly string[]) => {
      const placed = await directory.placementsOf(tenants);
      return new Map(placed.map(({ tenant_id, cell }) => [tenant_id, cell]));
    };
    this.#questions = new CollectedQuestions({ ...bounds, ask });
    this.#strangers = new CollectedQuestions({
      ...bounds,
      ask,
      togetherMax: STRANGERS_TOGETHER_MAX,
      waitingMax: STRANGERS_WAITING_MAX,
    });
    this.#settlings = new CollectedQuestions({
      ...bounds,
      ask: (tenants) => directory.settle(tenants, cell, 'hash'),
    });
  }

  get size(): number {
    return this.#here.size + this.#suspended.size;
  }

  get suspendedCount(): number {
    return this.#suspended.size;
  }

  /** Age of the oldest suspension; 0 without one. */
  get suspendedMs(): number {
    const [since] = this.#suspended.values();
    return since === undefined ? 0 : this.#clock.monotonic() - since;
  }

  tenants(): string[] {
    return [...this.#here, ...this.#suspended.keys()];
  }

  /** Undefined: to be looked up in the directory. */
  of(tenant: string): TenantPlace | undefined {
    if (this.#here.has(tenant)) return HERE;
    if (this.#suspended.has(tenant)) return SUSPENDED;
    const other = this.#others.get(tenant);
    return other && placeOf(this.cell, tenant, other.cell, this.#open);
  }

  /** With `mustSettle`, a new tenant is settled here before its first write. */
  admit(tenant: string, mustSettle: boolean): Promise<void> | undefined {
    if (this.#here.has(tenant)) return undefined;
    const known = this.of(tenant);
    if (known === undefined) return this.#ask(tenant, mustSettle);
    this.#expectHere(known);
    return known.is === 'new' && mustSettle ? this.#settle(tenant) : undefined;
  }

  /** Caches only settled tenants: a caller with an unknown key could invent any number of names. */
  admitNamed(tenant: string, isKnown: () => boolean): Promise<void> | undefined {
    if (this.#here.has(tenant)) return undefined;
    if (this.of(tenant) !== undefined || isKnown()) return this.admit(tenant, false);
    return this.#askForStranger(tenant);
  }

  admitCell(named: string): void {
    if (named === this.cell) return;
    // The refusal repeats the name in a header.
    if (!isSchemaName(named)) throw invalid('x-cell is no name of a cell');
    this.#expectHere({ is: 'elsewhere', cell: named });
  }

  #expectHere(place: TenantPlace): void {
    if (place.is === 'suspended') throw SUSPENDED_REFUSAL;
    if (place.is === 'unplaced') throw UNPLACED;
    if (place.is !== 'elsewhere') return;
    this.refused += 1;
    throw wrongCell(place.cell, this.cell);
  }

  async #ask(tenant: string, mustSettle: boolean): Promise<void> {
    await this.#learn(tenant, this.#questions.about(tenant));
    await this.admit(tenant, mustSettle);
  }

  async #askForStranger(tenant: string): Promise<void> {
    const settled = await this.#answer(this.#strangers.about(tenant));
    if (settled !== undefined && this.of(tenant) === undefined) this.#note(tenant, settled);
    this.#expectHere(this.of(tenant) ?? placeOf(this.cell, tenant, settled, this.#open));
  }

  async #settle(tenant: string): Promise<void> {
    if (this.#unsearched !== undefined) throw unsearched(this.#unsearched);
    const settled = await this.#learn(tenant, this.#settlings.about(tenant));
    // A cell was opened or closed meanwhile; `setCells` follows.
    if (settled === undefined) throw UNPLACED;
    await this.admit(tenant, true);
  }

  /** Caches the answer, unless a newer one arrived meanwhile. */
  async #learn(tenant: string, question: Promise<string | undefined>): Promise<string | undefined> {
    const before = this.#others.get(tenant);
    const settled = await this.#answer(question);
    const isOwn = this.#here.has(tenant) || this.#suspended.has(tenant);
    if (!isOwn && this.#others.get(tenant) === before) this.#note(tenant, settled);
    return settled;
  }

  async #answer(question: Promise<string | undefined>): Promise<string | undefined> {
    try {
      return await question;
    } catch (error) {
      this.#onUnavailable(error);
      throw DIRECTORY_UNAVAILABLE;
    }
  }

  /** A poll ends as soon as its tenant is suspended, a stream when the tenant is settled elsewhere. */
  whenGone(tenant: string, isPoll: boolean, end: (why: EngineError) => void): () => void {
    const gone = this.#whyGone(tenant, isPoll);
    if (gone !== undefined) {
      end(gone);
      return () => {};
    }
    const bound = { isPoll, end };
    const others = this.#bound.get(tenant);
    if (others === undefined) this.#bound.set(tenant, new Set([bound]));
    else others.add(bound);
    return () => {
      const all = this.#bound.get(tenant);
      all?.delete(bound);
      if (all?.size === 0) this.#bound.delete(tenant);
    };
  }

  #whyGone(tenant: string, isPoll: boolean): EngineError | undefined {
    const known = this.of(tenant);
    if (known?.is === 'elsewhere') return wrongCell(known.cell, this.cell);
    return known?.is === 'suspended' && isPoll ? SUSPENDED_REFUSAL : undefined;
  }

  #endBound(tenant: string): void {
    for (const bound of [...(this.#bound.get(tenant) ?? [])]) {
      const why = this.#whyGone(tenant, bound.isPoll);
      if (why === undefined) continue;
      this.#bound.get(tenant)?.delete(bound);
      bound.end(why);
    }
  }

  /** Requests of the tenant get 503 until `resume` or `redirect`; placements of the directory do not end an arrival. */
  suspend(tenant: string, isArriving: boolean): void {
    this.#here.delete(tenant);
    if (!this.#suspended.has(tenant)) this.#suspended.set(tenant, this.#clock.monotonic());
    if (isArriving) this.#arriving.add(tenant);
    else this.#arriving.delete(tenant);
  }

  /** Ends polls that the shards have not answered. */
  endPolls(tenant: string): void {
    this.#endBound(tenant);
  }

  resume(tenant: string): void {
    this.#arriving.delete(tenant);
    if (this.#suspended.delete(tenant)) this.#here.add(tenant);
  }

  /** Requests of the tenant get 421 from now on, and its streams end. */
  redirect(tenant: string, cell: string): void {
    this.#arriving.delete(tenant);
    this.#suspended.delete(tenant);
    this.#note(tenant, cell);
  }

  setCells(cells: readonly CellKnown[]): void {
    this.#open = cells.filter(({ state }) => state === 'open').map(({ name }) => name);
    this.#unsearched = cells.find(isUnsearched)?.name;
  }

  /** A tenant suspended here stays so until its move ends. */
  setPlacements(placements: readonly Settled[]): void {
    for (const { tenant_id: tenant, cell } of placements) {
      if (this.#arriving.has(tenant)) continue;
      if (cell !== this.cell || !this.#suspended.has(tenant)) this.redirect(tenant, cell);
    }
  }

  #note(tenant: string, settled: string | undefined): void {
    if (settled === this.cell) {
      this.#here.add(tenant);
      this.#others.delete(tenant);
      if (this.#here.size > HERE_MAX) this.#here.delete(this.#here.values().next().value as string);
      return;
    }
    const wasHere = this.#here.delete(tenant);
    this.#others.set(tenant, { cell: settled });
    if (wasHere || this.#bound.has(tenant)) this.#endBound(tenant);
  }
}
