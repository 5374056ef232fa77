/**
 * Which tenants live in the cell of this engine, asked for every request before anything of it is done: what another
 * cell has is refused with 421, so that a wrong map of a proxy never splits a tenant (docs/operate/cells.md).
 * The answer for a tenant that lives here is one look into a set. What is not known is asked of the directory, once
 * for all requests that wait for it; while that is away, those that are known go on.
 */

import type { Clock } from '../base/clock.js';
import {
  DIRECTORY_AWAY,
  type EngineError,
  invalid,
  unavailable,
  wrongCell,
} from '../base/errors.js';
import { lastUsed } from '../base/quota/last-used.js';
import { isSchemaName } from '../db/schema-name.js';
import type { Placement } from '../http/placement.js';
import type { CellRow, Directory, Settled } from './directory.js';
import { Gathered } from './gathered.js';
import { bucketOf, cellOfBucket } from './routing.js';

/** Of a tenant, for this cell. `new`: it would live here, and nothing says so yet. */
export type Residency =
  | { readonly is: 'here' | 'new' | 'held' | 'homeless' }
  | { readonly is: 'elsewhere'; readonly cell: string };

/**
 * Pure: where a tenant lives, by what the directory says.
 *
 * @param settled its cell; undefined: nowhere, then its bucket decides
 * @param open the cells that take new tenants
 */
export function residencyOf(
  own: string,
  tenant: string,
  settled: string | undefined,
  open: readonly string[],
): Residency {
  const cell = settled ?? cellOfBucket(bucketOf(tenant), open);
  if (cell === undefined) return { is: 'homeless' };
  if (cell !== own) return { is: 'elsewhere', cell };
  return { is: settled === undefined ? 'new' : 'here' };
}

/** What is to be known of a cell. */
export type CellTold = Pick<CellRow, 'name' | 'state'> &
  Partial<Pick<CellRow, 'joined_at' | 'found_at'>>;

export interface ResidenceOptions {
  /** The cell of this engine. */
  readonly cell: string;
  readonly directory: Pick<Directory, 'placementsOf' | 'settle'>;
  /** The directory could not be asked; and again, each time. */
  readonly onAway: (error: unknown) => void;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** Tenants that are known to live here: some 50 MB. */
const HERE_MAX = 500_000;

/** Tenants that do not live here, or are settled nowhere: those that were asked for last. */
const OTHERS_MAX = 50_000;

/** Of one question to the directory, and waiting for the next ones. */
const TOGETHER_MAX = 500;
const WAITING_MAX = 10_000;
/** The same, where nobody knows who asks. */
const STRANGERS_TOGETHER_MAX = 100;
const STRANGERS_WAITING_MAX = 1_000;

/** How soon a tenant that is being moved may be served again. */
const HELD_RETRY_MS = 1_000;

const HERE: Residency = { is: 'here' };
const HELD: Residency = { is: 'held' };

const HELD_REFUSAL = unavailable(
  'ENG_TENANT_MOVING',
  'the tenant is being moved to another cell',
  HELD_RETRY_MS,
);

const HOMELESS = unavailable('ENG_NO_CELL', 'no cell of the cluster takes new tenants');

/** One of its tenants could be settled in another cell. */
const isUnsearched = ({ joined_at = null, found_at = null }: CellTold) =>
  joined_at !== null && found_at === null;

const unsearched = (cell: string) =>
  unavailable(
    'ENG_NO_CELL',
    `the cell ${cell} was not looked through yet for tenants that it has: new ones wait`,
  );

const TOO_MANY = unavailable('ENG_OVERLOADED', 'too many tenants wait for the directory');

/** What lasts only as long as its tenant is served here. */
interface Bound {
  readonly isPoll: boolean;
  readonly end: (why: EngineError) => void;
}

export class CellResidence implements Placement {
  readonly cell: string;
  readonly #onAway: ResidenceOptions['onAway'];
  /** Settled here, and served; the oldest first. */
  readonly #here = new Set<string>();
  /** With the time since which each is, by the monotonic clock; the oldest first. */
  readonly #held = new Map<string, number>();
  /** Those of them that come from another cell. */
  readonly #arriving = new Set<string>();
  readonly #clock: ResidenceOptions['clock'];
  /** Where others are settled; without a cell: nowhere. */
  readonly #others = lastUsed<string, { readonly cell: string | undefined }>(OTHERS_MAX);
  readonly #questions: Gathered<string>;
  /** Of callers whose key is not known here: they do not stand in the way of those whose is. */
  readonly #strangers: Gathered<string>;
  readonly #settlings: Gathered<string>;
  readonly #bound = new Map<string, Set<Bound>>();
  #open: readonly string[] = [];
  /** A cell that was not looked through yet: until it is, nobody is settled by a hash. */
  #unsearched: string | undefined;
  /** Requests that were refused because their tenant, or the cell they named, is another one. */
  refused = 0;

  constructor({ cell, directory, onAway, clock }: ResidenceOptions) {
    this.cell = cell;
    this.#clock = clock;
    this.#onAway = onAway;
    const bounds = { togetherMax: TOGETHER_MAX, waitingMax: WAITING_MAX, tooMany: () => TOO_MANY };
    const ask = async (tenants: readonly string[]) =>
      byTenant(await directory.placementsOf(tenants));
    this.#questions = new Gathered({ ...bounds, ask });
    this.#strangers = new Gathered({
      ...bounds,
      ask,
      togetherMax: STRANGERS_TOGETHER_MAX,
      waitingMax: STRANGERS_WAITING_MAX,
    });
    this.#settlings = new Gathered({
      ...bounds,
      ask: (tenants) => directory.settle(tenants, cell, 'hash'),
    });
  }

  /** Tenants that are known to live here. */
  get size(): number {
    return this.#here.size + this.#held.size;
  }

  /** Tenants that wait for the end of their move. */
  get heldCount(): number {
    return this.#held.size;
  }

  /** How long the first of them has, as far as this engine knows; 0: none does. */
  get heldMs(): number {
    const [since] = this.#held.values();
    return since === undefined ? 0 : this.#clock.monotonic() - since;
  }

  /** Those that are known to live here. */
  tenants(): string[] {
    return [...this.#here, ...this.#held.keys()];
  }

  // ---------------------------------------------------------------- requests

  /** What is known; undefined: the directory has to be asked. */
  of(tenant: string): Residency | undefined {
    if (this.#here.has(tenant)) return HERE;
    if (this.#held.has(tenant)) return HELD;
    const other = this.#others.get(tenant);
    return other && residencyOf(this.cell, tenant, other.cell, this.#open);
  }

  /**
   * Lets requests of the tenant pass, or refuses them. A tenant that lives here takes no promise.
   *
   * @param mustSettle it is about to be written for: a new tenant is settled here first
   * @throws EngineError 421 or 503, as the promise rejects with
   */
  admit(tenant: string, mustSettle: boolean): Promise<void> | undefined {
    if (this.#here.has(tenant)) return undefined;
    const known = this.of(tenant);
    if (known === undefined) return this.#ask(tenant, mustSettle);
    this.#expectHere(known);
    return known.is === 'new' && mustSettle ? this.#settle(tenant) : undefined;
  }

  /**
   * The same for a name that a request came with, before its key was looked at. Of a caller whose key is not known
   * here only names that are settled somewhere are noted: others could be made up without end.
   *
   * @param isKnown whether it is; asked only when the directory has to be
   * @throws EngineError 421 or 503, as the promise rejects with
   */
  admitNamed(tenant: string, isKnown: () => boolean): Promise<void> | undefined {
    if (this.#here.has(tenant)) return undefined;
    if (this.of(tenant) !== undefined || isKnown()) return this.admit(tenant, false);
    return this.#askForStranger(tenant);
  }

  /** A request that names no tenant may name the cell. @throws EngineError 421; 400 for what none can be called */
  admitCell(named: string): void {
    if (named === this.cell) return;
    // It is anybody's text, and the refusal has the cell in a header.
    if (!isSchemaName(named)) throw invalid('x-cell is no name of a cell');
    this.#expectHere({ is: 'elsewhere', cell: named });
  }

  /** @throws EngineError */
  #expectHere(residency: Residency): void {
    switch (residency.is) {
      case 'here':
      case 'new':
        return;
      case 'held':
        throw HELD_REFUSAL;
      case 'homeless':
        throw HOMELESS;
      case 'elsewhere':
        this.refused += 1;
        throw wrongCell(residency.cell, this.cell);
    }
  }

  async #ask(tenant: string, mustSettle: boolean): Promise<void> {
    await this.#learn(tenant, this.#questions.about(tenant));
    await this.admit(tenant, mustSettle);
  }

  async #askForStranger(tenant: string): Promise<void> {
    const settled = await this.#answer(this.#strangers.about(tenant));
    if (settled !== undefined && this.of(tenant) === undefined) this.#note(tenant, settled);
    this.#expectHere(this.of(tenant) ?? residencyOf(this.cell, tenant, settled, this.#open));
  }

  async #settle(tenant: string): Promise<void> {
    if (this.#unsearched !== undefined) throw unsearched(this.#unsearched);
    const settled = await this.#learn(tenant, this.#settlings.about(tenant));
    // A cell has been closed or has come meanwhile, which is about to be told here, too.
    if (settled === undefined) throw HOMELESS;
    await this.admit(tenant, true);
  }

  /** The answer, which is noted unless something was told while it came: that is newer. */
  async #learn(tenant: string, question: Promise<string | undefined>): Promise<string | undefined> {
    const before = this.#others.get(tenant);
    const settled = await this.#answer(question);
    const isServed = this.#here.has(tenant) || this.#held.has(tenant);
    if (!isServed && this.#others.get(tenant) === before) this.#note(tenant, settled);
    return settled;
  }

  async #answer(question: Promise<string | undefined>): Promise<string | undefined> {
    try {
      return await question;
    } catch (error) {
      this.#onAway(error);
      throw DIRECTORY_AWAY;
    }
  }

  /**
   * Calls `end` when the tenant is no longer served here: a poll's as soon as it is held, a stream's when it has
   * gone; at once when that is so already.
   *
   * @returns what makes it forget
   */
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
    return known?.is === 'held' && isPoll ? HELD_REFUSAL : undefined;
  }

  #endBound(tenant: string): void {
    for (const bound of [...(this.#bound.get(tenant) ?? [])]) {
      const why = this.#whyGone(tenant, bound.isPoll);
      if (why === undefined) continue;
      this.#bound.get(tenant)?.delete(bound);
      bound.end(why);
    }
  }

  // ---------------------------------------------------------------- moves

  /**
   * From now on requests of the tenant are refused with 503, until it is released or departs.
   *
   * @param isArriving what the directory tells does not end it: the switch comes before the tenant is let in
   */
  hold(tenant: string, isArriving: boolean): void {
    this.#here.delete(tenant);
    if (!this.#held.has(tenant)) this.#held.set(tenant, this.#clock.monotonic());
    if (isArriving) this.#arriving.add(tenant);
    else this.#arriving.delete(tenant);
  }

  /** Ends polls of one that is held: those that the shards have not answered with what they had. */
  endPolls(tenant: string): void {
    this.#endBound(tenant);
  }

  /** It stays, and is served again. */
  release(tenant: string): void {
    this.#arriving.delete(tenant);
    if (this.#held.delete(tenant)) this.#here.add(tenant);
  }

  /** It lives in the other cell: its requests are refused with 421, and its streams end. */
  depart(tenant: string, cell: string): void {
    this.#arriving.delete(tenant);
    this.#held.delete(tenant);
    this.#note(tenant, cell);
  }

  // ---------------------------------------------------------------- what the directory tells

  /** The cells as they are now. */
  tellCells(cells: readonly CellTold[]): void {
    this.#open = cells.filter(({ state }) => state === 'open').map(({ name }) => name);
    this.#unsearched = cells.find(isUnsearched)?.name;
  }

  /** Where tenants are settled now. One that is held here stays so until the move says what has become of it. */
  tellPlacements(placements: readonly Settled[]): void {
    for (const { tenant_id: tenant, cell } of placements) {
      if (this.#arriving.has(tenant)) continue;
      if (cell !== this.cell || !this.#held.has(tenant)) this.depart(tenant, cell);
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

const byTenant = (rows: readonly Settled[]) =>
  new Map(rows.map(({ tenant_id, cell }) => [tenant_id, cell]));
