/** One function of part `micro`. */

export interface MicroCase {
  readonly name: string;
  /** Calls per sample, which should take ten microseconds or more. Default 1. */
  readonly calls?: number;
  /** One call. Its result is used, so that the compiler cannot leave the work out. */
  readonly run: () => unknown;
}
