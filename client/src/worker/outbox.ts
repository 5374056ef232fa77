/**
 * Reports that wait for the server, and how many of them go into one request. One that may be to blame for the
 * failure of its request is set aside, and goes apart from the others. Pure, but for the promises it settles.
 */

import { byteLength } from '../client/json.js';

/** What became of a result. */
export interface Outcome {
  /** That of the request for one task; 0: nobody answered, and it is not sent again. */
  readonly status: number;
  /** Of a heartbeat. */
  readonly checkpoint_seq?: number | undefined;
  readonly error?: string | undefined;
  /** Of a refusal. */
  readonly code?: string | undefined;
  /** It was sent before, and may have arrived: a 409 then says nothing about the claim. */
  readonly isRepeated: boolean;
}

export interface Report {
  /** As it is sent: made once, however often it is. */
  readonly text: string;
  readonly bytes: number;
  /** Not sent again when nobody answers: the next one says the same. */
  readonly isFleeting: boolean;
  isRepeated: boolean;
  /** How often it was set aside since it failed alone. */
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

/** Of one request, as the contract has it. */
const RESULTS_MAX = 1_000;

export class Outbox {
  readonly #reports: Report[] = [];
  readonly #aside: Report[] = [];
  /** How many of those that are set aside go together: one after a failure, twice as many after a success. */
  #asideMax = 1;

  get isEmpty(): boolean {
    return !this.hasNext && this.#aside.length === 0;
  }

  get hasNext(): boolean {
    return this.#reports.length > 0;
  }

  /** @param isPaused those that have failed alone are not to be sent yet */
  hasAside(isPaused: boolean): boolean {
    const [first] = this.#aside;
    return first !== undefined && (first.failedAlone === 0 || !isPaused);
  }

  add(report: Report): void {
    this.#reports.push(report);
  }

  /** They were not received, and go first. */
  putBack(reports: readonly Report[]): void {
    this.#reports.unshift(...reports);
  }

  /** One of them may be to blame for the failure of their request; the only one of it is. */
  setAside(reports: readonly Report[], isAlone: boolean): void {
    this.#asideMax = 1;
    for (const report of reports) report.failedAlone += Number(isAlone);
    this.#aside.push(...reports);
    // The smallest are the least likely to fail, and one that failed alone holds none of the others back.
    this.#aside.sort((a, b) => a.failedAlone - b.failedAlone || a.bytes - b.bytes);
  }

  /** What one request takes, in its order; at least one unless it is empty. */
  take(bytesMax: number): readonly Report[] {
    return first(this.#reports, RESULTS_MAX, bytesMax);
  }

  /** One that has failed alone goes alone. */
  takeAside(bytesMax: number): readonly Report[] {
    const others = this.#aside.filter(({ failedAlone }) => failedAlone === 0).length;
    return first(this.#aside, Math.max(1, Math.min(others, this.#asideMax)), bytesMax);
  }

  /** Those that were set aside are received again. */
  received(): void {
    this.#asideMax = Math.min(RESULTS_MAX, 2 * this.#asideMax);
  }

  /** All of them, which nobody sends any more. */
  empty(): readonly Report[] {
    return [...this.#reports.splice(0), ...this.#aside.splice(0)];
  }
}

/** Takes them out of the list. */
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
