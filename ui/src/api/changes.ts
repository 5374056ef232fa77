/** Records which instances changed recently, to decide which reads are stale. Reads no clock: times are arguments. */

/** A read that starts this soon after a change may not include all of its effects. */
const SETTLED_MS = 1500;

/** Few instances are shown at a time, so the oldest changes can be dropped. */
const REMEMBERED_MAX = 10_000;

export class Changes {
  #last = Number.NEGATIVE_INFINITY;
  readonly #byInstance = new Map<string, number>();

  /** @param at Unix milliseconds */
  note(instanceId: string, at: number): void {
    this.#last = at;
    this.#byInstance.delete(instanceId);
    this.#byInstance.set(instanceId, at);
    if (this.#byInstance.size <= REMEMBERED_MAX) return;
    const [oldest] = this.#byInstance.keys();
    if (oldest !== undefined) this.#byInstance.delete(oldest);
  }

  /**
   * @param scope one instance, all of them (`'all'`), or undefined for a read that does not depend on changes
   * @param readAt when the read started, in Unix milliseconds
   */
  isBehind(scope: string | undefined, readAt: number): boolean {
    if (scope === undefined) return false;
    const changedAt = scope === 'all' ? this.#last : this.#byInstance.get(scope);
    return changedAt !== undefined && readAt < changedAt + SETTLED_MS;
  }
}
