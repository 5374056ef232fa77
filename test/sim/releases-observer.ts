/**
 * Watches the releases of a run, commit by commit: their decisions are one legal chain, creations go
 * where the releases send them, what has ended is written down, and gates decide by it alone.
 *
 * The routes have had many versions. Which of them a creation may go by is told by the answers of
 * transitions: from the answer on, no older version is in use anywhere, and nothing that an older one
 * sent is still on its way to the rows.
 */

import type { InstanceState } from '../../schema/states.js';
import { isEnded } from '../../schema/states.js';
import { entryOf } from '../helpers/entry.js';
import { words } from '../helpers/table.js';
import type { Change, Row } from './memory-tables.js';
import type { Routed } from './release-oracle.js';
import { isHistoryOf, isRouting, MOVES, Routes, verdictsOf } from './release-oracle.js';
import { Violation } from './violation.js';
import { Watcher } from './watcher.js';

/** A failing gate ends its canary within this, in virtual time, once nothing is broken any more. */
const GATE_MS_MAX = 120_000;

/** Where no release that names a sequence may stand when it is deleted. */
const NEEDS_BOTH: ReadonlySet<unknown> = new Set(words('validating ready canary paused promoted'));

export class ReleasesObserver extends Watcher {
  /** Release → its decisions, in the order of their commits. */
  readonly #decisions = new Map<string, Row[]>();
  /** Release, state and time of every committed row → the version of the routes that it belongs to. */
  readonly #committed = new Map<string, number>();
  readonly #versions: Routes[] = [new Routes([])];
  /** The oldest version that is in use anywhere. */
  #floor = 0;
  /** Release → the version that its last change of the routes made. */
  readonly #routedSince = new Map<string, number>();
  /** Release → how often its evidence, or what counts of it, has changed. */
  readonly #evidence = new Map<string, number>();
  /** Release and start of its canary → the metrics that failed at some time of it. */
  readonly #failed = new Map<string, Set<string>>();
  /** Release and start of its canary, if all of its gates passed at some time of it. */
  readonly #passed = new Set<string>();
  #lastEvidenceAt = 0;
  /** When a release has changed last. */
  movedAt = 0;
  /** Told when a gate of a canary comes to fail. */
  onFailing: (release: Row) => void = () => undefined;
  #births: Row[] = [];
  readonly #touched = new Set<string>();
  readonly #judged = new Set<string>();
  #isRouteChanged = false;

  decisionsOf(release: string): readonly Row[] {
    return this.#decisions.get(release) ?? [];
  }

  evidenceChanges(release: string): number {
    return this.#evidence.get(release) ?? 0;
  }

  // ---------------------------------------------------------------- at each commit

  look(change: Change): void {
    switch (change.table) {
      case 'releases':
        this.#release(change);
        return;
      case 'release_decisions':
        this.#decision(change);
        return;
      case 'release_outcomes': {
        const { release_id } = (change.after ?? change.before)!;
        this.#judged.add(String(release_id));
        this.#touched.add(change.key);
        return;
      }
      case 'instances':
        this.#instance(change);
        return;
      case 'sequences':
        if (change.after === undefined) this.#sequenceGone(change.key);
        else if (change.after.deprecated === true) this.#isRouteChanged = true;
        return;
      default:
    }
  }

  #release({ key, before, after }: Change): void {
    this.movedAt = this.now();
    if (after === undefined) throw new Violation(`release ${key} was deleted`);
    this.#judged.add(key);
    const isRouted = isRouting(after) || (before !== undefined && isRouting(before));
    if (isRouted) {
      this.#isRouteChanged = true;
      this.#routedSince.set(key, this.#versions.length);
    }
    this.#committed.set(versionOf(after), this.#routedSince.get(key) ?? 0);
    for (const side of ['baseline_sequence_id', 'candidate_sequence_id']) {
      if (isRouting(after) && this.tables.row('sequences', String(after[side])) === undefined) {
        throw new Violation(`release ${key} is in ${after.state} without its ${side}`);
      }
    }
  }

  #decision({ key, before, after }: Change): void {
    if (before !== undefined || after === undefined) {
      throw new Violation(`decision ${key} did not stay as it was`);
    }
    const id = String(after.release_id);
    const chain = entryOf(this.#decisions, id, (): Row[] => []);
    const last = chain.at(-1);
    chain.push(after);
    const { from_state: from, to_state: to } = after;
    const [actor] = String(after.actor).split(':');
    const move = `release ${id} went from ${from} to ${to} by ${actor}`;
    this.counts.add(`release ${from} to ${to} by ${actor}`);
    if (last === undefined) {
      if (from !== 'draft' || to !== 'draft') throw new Violation(`${move}, first of all`);
      return;
    }
    if (from !== last.to_state) throw new Violation(`${move}, but was in ${last.to_state}`);
    if (MOVES[`${from} ${to}`]?.includes(actor!) !== true) throw new Violation(move);
    const isLater = `${after.decided_at} ${key}` > `${last.decided_at} ${last.id}`;
    if (!isLater) throw new Violation(`${move} before it came there`);
    this.#checkEvidence(after, move);
  }

  /** A gate decides by what has failed, and nobody promotes without evidence. */
  #checkEvidence({ release_id, to_state, actor }: Row, move: string): void {
    const release = this.tables.row('releases', String(release_id));
    if (release === undefined) throw new Violation(`${move}, which is not there`);
    const canary = canaryOf(release);
    const metric = /^gate:(.*)$/.exec(String(actor))?.[1];
    const isFounded = metric === undefined || this.#failed.get(canary)?.has(metric) === true;
    const isPassed = to_state !== 'promoted' || this.#passed.has(canary);
    if (!isFounded || !isPassed) throw new Violation(`${move} without evidence`);
  }

  #instance({ key, before, after }: Change): void {
    this.#touched.add(key);
    this.#history([before, after]);
    if (after === undefined) return;
    if (before === undefined) {
      this.#births.push(after);
      return;
    }
    for (const column of ['sequence_id', 'release_id', 'release_variant']) {
      if (before[column] !== after[column]) {
        throw new Violation(`a living instance got another ${column}`, key);
      }
    }
    if (JSON.stringify(before.metadata) !== JSON.stringify(after.metadata)) {
      throw new Violation('a living instance got other metadata', key);
    }
  }

  #sequenceGone(id: string): void {
    for (const { id: release, ...row } of this.tables.rows('releases').values()) {
      const isBaseline = row.baseline_sequence_id === id;
      if (!isBaseline && row.candidate_sequence_id !== id) continue;
      if (NEEDS_BOTH.has(row.state) || (isBaseline && row.state === 'draft')) {
        throw new Violation(`sequence ${id} was deleted, which release ${release} needs`);
      }
    }
  }

  /** When all changes of a commit are known. @throws Violation */
  check(): void {
    if (this.#isRouteChanged) this.#newVersion();
    for (const id of this.#judged) this.#judge(id);
    for (const row of this.#births) this.#born(row);
    for (const id of this.#touched) this.#checkOutcome(id);
    this.#isRouteChanged = false;
    this.#births = [];
    this.#judged.clear();
    this.#touched.clear();
  }

  #newVersion(): void {
    const releases = [...this.tables.rows('releases').values()];
    const baselines = new Set<unknown>();
    for (const row of releases.filter(isRouting)) {
      const { baseline_sequence_id: baseline } = row;
      if (baselines.has(baseline)) throw new Violation(`two releases route ${baseline}`);
      baselines.add(baseline);
    }
    const sequences = [...this.tables.rows('sequences').values()];
    const deprecated = sequences.filter((row) => row.deprecated === true).map(({ id }) => id);
    this.#versions.push(new Routes(releases, new Set(deprecated)));
  }

  /** @throws Violation when the row is not what its decisions made of it */
  #judge(id: string): void {
    const row = this.tables.row('releases', id);
    const last = this.decisionsOf(id).at(-1);
    if (row === undefined || row.state !== last?.to_state) {
      throw new Violation(`release ${id} is in ${row?.state}, decided was ${last?.to_state}`);
    }
    this.#evidence.set(id, this.evidenceChanges(id) + 1);
    this.#lastEvidenceAt = this.now();
    if (row.state !== 'canary') return;
    const verdicts = this.#verdictsOf(row);
    const canary = canaryOf(row);
    const failed = entryOf(this.#failed, canary, () => new Set<string>());
    for (const { metric, verdict } of verdicts) {
      if (verdict === 'fail' && !failed.has(metric)) this.onFailing(row);
      if (verdict === 'fail' || verdict === 'unsure') failed.add(metric);
    }
    const isPassed = verdicts.every(({ verdict }) => verdict === 'pass' || verdict === 'unsure');
    if (isPassed) this.#passed.add(canary);
  }

  #verdictsOf(release: Row): ReturnType<typeof verdictsOf> {
    const rowsOf = (table: string) => this.tables.rows(table).values();
    return verdictsOf(release, rowsOf('release_outcomes'), rowsOf('instances'));
  }

  /** Older runs of its baseline count where a canary lacks newer ones. */
  #history(rows: readonly (Row | undefined)[]): void {
    for (const [id, release] of this.tables.rows('releases')) {
      if (release.state !== 'canary') continue;
      if (rows.some((row) => row !== undefined && isHistoryOf(release, row))) this.#judged.add(id);
    }
  }

  // ---------------------------------------------------------------- instances

  /** Creations say in their metadata what they asked for; those that do not are not looked at. */
  #born(row: Row): void {
    const { asked, cohort_key, release: stamp } = row.metadata as Metadata;
    if (asked === undefined) return;
    const id = String(row.id);
    // The key of what a schedule made is not a caller's.
    const key = row.cron_schedule_id === null ? row.idempotency_key : null;
    const cohort = (key ?? cohort_key) as string | undefined;
    const is: Routed = {
      sequence: String(row.sequence_id),
      release: row.release_id as string | null,
      variant: row.release_variant as Routed['variant'],
    };
    const told = stamp === undefined ? 'null null' : `${stamp.release_id} ${stamp.variant}`;
    if (told !== `${is.release} ${is.variant}`) {
      throw new Violation(`an instance of ${is.release} ${is.variant} is stamped ${told}`, id);
    }
    const wanted = this.#versions
      .slice(this.#floor)
      .flatMap((routes) => routes.possible(String(row.tenant_id), asked, cohort));
    this.counts.add(`creation routed to ${is.variant}`);
    if (wanted.some((one) => textOf(one) === textOf(is))) return;
    throw new Violation(
      `a creation went to ${textOf(is)}, not to ${wanted.map(textOf).join(' or ')}`,
      id,
    );
  }

  /** Exactly the ended instances that a release routed have a row, which says what they say. */
  #checkOutcome(id: string): void {
    const instance = this.tables.row('instances', id);
    const outcome = this.tables.row('release_outcomes', id);
    const isWanted =
      instance !== undefined &&
      instance.release_id !== null &&
      isEnded(instance.state as InstanceState);
    if (isWanted !== (outcome !== undefined)) {
      const what = `${instance?.state} instance of release ${instance?.release_id}`;
      throw new Violation(`${what}, with an outcome: ${outcome !== undefined}`, id);
    }
    if (instance === undefined || outcome === undefined) return;
    for (const column of ['release_id', 'sequence_id', 'state', 'created_at']) {
      if (instance[column] === outcome[column]) continue;
      throw new Violation(`the outcome says ${column} ${outcome[column]}`, id);
    }
  }

  // ---------------------------------------------------------------- answers

  /**
   * The record was shown by the answer of a transition.
   * @throws Violation when it never was a row
   */
  promised(release: Row): void {
    const version = this.#committed.get(versionOf(release));
    if (version === undefined) {
      throw new Violation(`an answer showed release ${versionOf(release)}, never committed`);
    }
    this.#floor = Math.max(this.#floor, version);
  }

  /** From now on every creation has to go by the newest routes. */
  settle(): void {
    this.#floor = this.#versions.length - 1;
  }

  /**
   * A canary that a gate is about to end, if there is one.
   * @param calmSince since when nothing goes wrong any more
   * @throws Violation when it ought to have ended by now
   */
  failing(calmSince: number): Violation | undefined {
    const isLate = this.now() > Math.max(calmSince, this.#lastEvidenceAt) + GATE_MS_MAX;
    for (const [id, row] of this.tables.rows('releases')) {
      if (row.state !== 'canary') continue;
      const failed = this.#verdictsOf(row).find(({ verdict }) => verdict === 'fail');
      if (failed === undefined) continue;
      const violation = new Violation(
        `release ${id} stays in canary, though ${failed.metric} fails`,
      );
      if (isLate) throw violation;
      return violation;
    }
    return undefined;
  }
}

interface Metadata {
  readonly asked?: string;
  readonly cohort_key?: string;
  readonly release?: { readonly release_id: string; readonly variant: string };
}

const versionOf = ({ id, state, updated_at }: Row) => `${id} ${state} ${updated_at}`;
const canaryOf = ({ id, canary_started_at }: Row) => `${id} ${canary_started_at}`;
const textOf = ({ sequence, release, variant }: Routed) =>
  release === null ? sequence : `${sequence} as ${variant} of ${release}`;
