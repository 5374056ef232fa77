/** What the answers about releases promise, held against the rows as they leave the engine. */

import type { Call } from './api.js';
import type { MemoryTables, Row } from './memory-tables.js';
import { evidenceOf } from './release-oracle.js';
import type { ReleasesObserver } from './releases-observer.js';
import { Violation } from './violation.js';

/** Taken down when a request comes in. */
export interface ReleaseMark {
  readonly row: Row | undefined;
  readonly evidence: number;
}

/** Moves that nothing but the state of the release decides about: they are not refused from there. */
const ALLOWED: Readonly<Record<string, readonly unknown[]>> = {
  'releases.pause': ['canary'],
  'releases.rollback': ['canary', 'paused', 'rolled_back'],
};

export class ReleasePromises {
  readonly #tables: MemoryTables;
  readonly #observer: ReleasesObserver;
  /** Release, actor and state → how many moves there were acknowledged. */
  readonly #acknowledged = new Map<string, number>();

  constructor(tables: MemoryTables, observer: ReleasesObserver) {
    this.#tables = tables;
    this.#observer = observer;
  }

  before(target: string): ReleaseMark {
    const row = this.#tables.row('releases', target);
    return { row, evidence: this.#observer.evidenceChanges(target) };
  }

  /** @throws Violation */
  refused({ operation, target }: Call, status: number, { row }: ReleaseMark): void {
    if (row === undefined || row !== this.#tables.row('releases', target)) return;
    if (status === 404 && operation !== 'releases.canary') {
      throw new Violation(`${operation} did not find release ${target}`);
    }
    if (status === 409 && ALLOWED[operation]?.includes(row.state) === true) {
      throw new Violation(`${operation} was refused in ${row.state}`);
    }
  }

  /** @throws Violation */
  answered({ operation, target }: Call, body: unknown, mark: ReleaseMark): void {
    switch (operation) {
      case 'releases.create':
        this.#moved(body as Row, 'draft');
        return;
      case 'releases.beginValidation': {
        const { release } = body as { release?: Row };
        if (release === undefined) this.#expectDecision(target, 'operator', 'ready');
        else this.#moved(release, 'validating');
        return;
      }
      case 'releases.endValidation':
        this.#observer.promised(body as Row);
        this.#expectDecision(target, 'validation', String((body as Row).state));
        return;
      case 'releases.canary':
        this.#moved(body as Row, 'canary');
        return;
      case 'releases.promote':
        this.#moved(body as Row, 'promoted');
        return;
      case 'releases.pause':
        this.#moved(body as Row, 'paused');
        return;
      case 'releases.rollback':
        this.#rolledBack(body as Row);
        return;
      case 'releases.evaluate':
        this.#evaluated(target, body as Evaluation, mark);
        return;
      default:
    }
  }

  #moved(release: Row, to: string): void {
    const id = String(release.id);
    if (release.state !== to) throw new Violation(`release ${id} was said to be ${release.state}`);
    this.#observer.promised(release);
    this.#expectDecision(id, 'operator', to);
  }

  /** Every acknowledged move has a decision of its own. */
  #expectDecision(id: string, actor: string, to: string): void {
    const name = `${id} ${actor} ${to}`;
    const acknowledged = (this.#acknowledged.get(name) ?? 0) + 1;
    this.#acknowledged.set(name, acknowledged);
    const decided = this.#observer
      .decisionsOf(id)
      .filter((row) => row.actor === actor && row.to_state === to);
    if (decided.length < acknowledged) {
      throw new Violation(`the move of release ${id} to ${to} was acknowledged, not decided`);
    }
  }

  /** It may be asked for again, and is decided once. */
  #rolledBack(release: Row): void {
    const id = String(release.id);
    this.#observer.promised(release);
    const decided = this.#observer.decisionsOf(id).filter((row) => row.to_state === 'rolled_back');
    if (release.state !== 'rolled_back' || decided.length !== 1) {
      throw new Violation(`release ${id} was rolled back ${decided.length} times`);
    }
  }

  #evaluated(id: string, report: Evaluation, mark: ReleaseMark): void {
    const row = this.#tables.row('releases', id);
    if (report.auto_rolled_back && row !== undefined) this.#observer.promised(row);
    const isUnchanged = mark.evidence === this.#observer.evidenceChanges(id);
    if (row === undefined || !isUnchanged) return;
    const { baseline, candidate } = report;
    const shown = JSON.stringify([report.release_state, ...[baseline, candidate].map(inOrder)]);
    const evidence = evidenceOf(row, this.#tables.rows('release_outcomes').values());
    const wanted = [row.state, inOrder(evidence.baseline), inOrder(evidence.candidate)];
    if (shown === JSON.stringify(wanted)) return;
    throw new Violation(`evaluation of ${id} showed ${shown}, not ${JSON.stringify(wanted)}`);
  }
}

type Counts = Readonly<Record<'total' | 'completed' | 'failed' | 'cancelled', number>>;

interface Evaluation {
  readonly baseline: Counts;
  readonly candidate: Counts;
  readonly auto_rolled_back: boolean;
  readonly release_state: string;
}

const inOrder = ({ total, completed, failed, cancelled }: Counts) => [
  total,
  completed,
  failed,
  cancelled,
];
