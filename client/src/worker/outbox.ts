/**
 * Reports that wait to be sent, and how many of them go into one request. A report that may have caused the failure of
 * its request is set aside and sent apart. Pure, except for the promises it settles.
 */

import { byteLength } from '../client/json.js';

/** The outcome of a report. */
export interface Outcome {
  /** The status, as of a request for one task; 0 if there was no response and it is not resent. */
  readonly status: number;
  /** Set for a heartbeat. */
  readonly checkpoint_seq?: number | undefined;
  readonly error?: string | undefined;
  /** Set for a rejection. */
  readonly code?: string | undefined;
  /** It was sent before and may have arrived: a 409 then does not mean that the claim is lost. */
  readonly isRepeated: boolean;
}

export interface Report {
  /** Serialized once, however often it is sent. */
  readonly text: string;
  readonly bytes: number;
  /** Not resent without a response: the next one replaces it. */
  readonly isFleeting: boolean;
  isRepeated: boolean;
  /** How often it was set aside after failing alone. */
  failedAlone: number;
  settle(outcome: Outcome): void;
}

/** @param text of the result, as JSON */
export function reportOf(
  text: string,
  isFleeting = false,
): { readonly report: Report; readonly outcome: Promise<Outcome> } {
  let settle: Report['settle'] = () => undefined;
  const outcome = new Promise<Outcome>((resolve) => {
    settle = resolve;
  });
  const bytes = byteLength(text);
  return {
    report: { text, bytes, isFleeting, isRepeated: false, failedAlone: 0, settle },
    outcome,
  };
}

/** The server's limit per request. */
const RESULTS_MAX = 1_000;

export class Outbox {
  readonly #reports: Report[] = [];
  readonly #aside: Report[] = [];
  /**
   * How many reports that were set aside go into one request: one after a failure, twice as many after each success.
   */
  #asideMax = 1;

  get isEmpty(): boolean {
    return !this.hasNext && this.#aside.length === 0;
  }

  get hasNext(): boolean {
    return this.#reports.length > 0;
  }

  /** @param isPaused whether reports that have failed alone are delayed */
  hasAside(isPaused: boolean): boolean {
    const [first] = this.#aside;
    return first !== undefined && (first.failedAlone === 0 || !isPaused);
  }

  add(report: Report): void {
    this.#reports.push(report);
  }

  /** They were not received, and are sent first. */
  putBack(reports: readonly Report[]): void {
    this.#reports.unshift(...reports);
  }

  /** One of them may have caused the failure of their request; if there is only one, it did. */
  setAside(reports: readonly Report[], isAlone: boolean): void {
    this.#asideMax = 1;
    for (const report of reports) report.failedAlone += Number(isAlone);
    this.#aside.push(...reports);
    // The smallest are the least likely to fail, and one that failed alone does not block the others.
    this.#aside.sort((a, b) => a.failedAlone - b.failedAlone || a.bytes - b.bytes);
  }

  /** The reports of one request, in order; at least one unless it is empty. */
  take(bytesMax: number): readonly Report[] {
    return first(this.#reports, RESULTS_MAX, bytesMax);
  }

  /** A report that has failed alone is sent alone. */
  takeAside(bytesMax: number): readonly Report[] {
    const others = this.#aside.filter(({ failedAlone }) => failedAlone === 0).length;
    return first(this.#aside, Math.max(1, Math.min(others, this.#asideMax)), bytesMax);
  }

  /** A request with reports that were set aside succeeded. */
  received(): void {
    this.#asideMax = Math.min(RESULTS_MAX, 2 * this.#asideMax);
  }

  /** Removes all reports, which will not be sent. */
  empty(): readonly Report[] {
    return [...this.#reports.splice(0), ...this.#aside.splice(0)];
  }
}

/** Removes them from the list. */
function first(reports: Report[], countMax: number, bytesMax: number): readonly Report[] {
  let sum = 0;
  let count = 0;
  for (const { bytes } of reports) {
    sum += bytes + 1;
    if (count > 0 && (count === countMax || sum > bytesMax)) break;
    count += 1;
  }
  return reports.splice(0, count);
}
