/** What waits to be said of tasks, and how much of it goes into one request. Pure, but for the promises it settles. */

import type { TaskResult } from '../generated/types.js';

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
  /** Not sent again when nobody answers: the next one says the same. */
  readonly isFleeting: boolean;
  isRepeated: boolean;
  settle(outcome: Outcome): void;
}

/** @throws TypeError when the result has something that is no JSON */
export function reportOf(
  result: TaskResult,
  isFleeting = false,
): { readonly report: Report; readonly outcome: Promise<Outcome> } {
  const text = JSON.stringify(result);
  let settle: Report['settle'] = () => undefined;
  const outcome = new Promise<Outcome>((resolve) => {
    settle = resolve;
  });
  return { report: { text, isFleeting, isRepeated: false, settle }, outcome };
}

/** Of one request, as the contract has it. */
const RESULTS_MAX = 1_000;
/** Far below what a server takes; one that is larger goes alone. In characters. */
const TEXT_MAX = 2_000_000;

export class Outbox {
  readonly #reports: Report[] = [];

  get isEmpty(): boolean {
    return this.#reports.length === 0;
  }

  add(report: Report): void {
    this.#reports.push(report);
  }

  /** Those that were not answered go first. */
  putBack(reports: readonly Report[]): void {
    this.#reports.unshift(...reports);
  }

  /** What one request takes, in its order; at least one unless it is empty. */
  take(): readonly Report[] {
    let length = 0;
    let count = 0;
    for (const { text } of this.#reports) {
      length += text.length;
      if (count > 0 && (count === RESULTS_MAX || length > TEXT_MAX)) break;
      count += 1;
    }
    return this.#reports.splice(0, count);
  }
}
