/**
 * Processes of the model: generators that wait for conditions over the model's world, which are
 * looked at again whenever something has happened. Slow, and with nothing to go wrong: nobody
 * registers, notifies or queues anything.
 */

/** What a process waits for: whichever comes first. */
export interface Wait {
  /** A value from outside; undefined: not yet. */
  readonly answer?: () => unknown;
  /** Whether the process has been cut off. */
  readonly cut?: () => boolean;
  /** Unix ms. Over at this time, unless the instance is held: then as soon as it is not. */
  due?: number;
  /** Unix ms. Over at this time, whatever holds the instance but a pause, in which limits stand still. */
  limit?: number | undefined;
  /** The same of what waits for a time: of interest only while the instance is not held. */
  late?: number | undefined;
  /** What the state of the instance follows from. */
  readonly as?: 'task' | 'active' | 'deferred';
}

export type Run<T> = Generator<Wait, T, unknown>;

export interface Process<T> {
  readonly run: Run<T>;
  readonly parent: Process<unknown> | undefined;
  wait: Wait | undefined;
  end?: T;
  /** The instant in which it, or a process that it started, last moved. */
  movedIn: number;
}

export class Processes {
  now: number;
  isHeld = false;
  isPaused = false;
  /** Those whose time runs. */
  readonly limited = new Set<Scope>();
  /** The time of a scope was over in the instant in which something else of it was to happen. */
  isTie = false;
  #live: Process<unknown>[] = [];
  #current: Process<unknown> | undefined;
  #instant = 0;

  constructor(now: number) {
    this.now = now;
  }

  spawn<T>(run: Run<T>): Process<T> {
    const process = { run, parent: this.#current, wait: AT_ONCE, movedIn: -1 };
    this.#live.push(process as Process<unknown>);
    return process;
  }

  /**
   * A new instant: lets every process go on that can, until none can. What has arrived comes before
   * what is due, so that whatever begins now sees it.
   */
  settle(): void {
    this.#instant += 1;
    for (const scope of this.isPaused ? [] : this.limited) this.#limit(scope);
    for (;;) {
      const able = this.#live.filter(({ wait }) => this.#over(wait) !== undefined);
      const process = able.find(({ wait }) => this.#over(wait) !== 'due') ?? able[0];
      if (process === undefined) return;
      this.#step(process);
    }
  }

  /** Whether the time of the scope is of interest. */
  counts({ around, unless, by }: Scope): boolean {
    return by === undefined && !isCut(around!, unless);
  }

  #limit(scope: Scope): void {
    if (scope.limit! > this.now || !this.counts(scope)) return;
    const able = this.waits.filter((wait) => this.#mayGoOn(wait) && !wait.cut?.());
    scope.by = 'limit';
    if (able.some((wait) => wait.cut?.())) this.isTie = true;
  }

  /** A sleep that was over before, while the instance was held, may count as over. */
  #mayGoOn(wait: Wait): boolean {
    const isSlept = wait.as === 'active' && (wait.due ?? NEVER) <= this.now;
    return isSlept || this.#over(wait) !== undefined;
  }

  /** The limits have stood still for so long. */
  putOff(byMs: number): void {
    for (const scope of this.limited) scope.limit! += byMs;
    for (const wait of this.waits) {
      if (wait.limit !== undefined) wait.limit += byMs;
      if (wait.late !== undefined) wait.late += byMs;
    }
  }

  dropAll(): void {
    this.#live = [];
    this.limited.clear();
  }

  get waits(): Wait[] {
    return this.#live.flatMap(({ wait }) => wait ?? []);
  }

  /** Whether anything of a process has moved in this instant, or could. */
  isMoving(process: Process<unknown>): boolean {
    if (process.movedIn === this.#instant) return true;
    return this.#live.some((one) => isWithin(one, process) && this.#over(one.wait) !== undefined);
  }

  #over(wait: Wait | undefined): unknown {
    if (wait?.cut?.() === true) return 'cut';
    const answer = wait?.answer?.();
    if (answer !== undefined) return answer;
    if (wait === undefined || this.isPaused) return undefined;
    const { limit = NEVER, due = NEVER, late = NEVER } = wait;
    if (limit <= this.now) return 'limit';
    if (this.isHeld || Math.min(due, late) > this.now) return undefined;
    return late < due ? 'limit' : 'due';
  }

  #step(process: Process<unknown>): void {
    for (let up: typeof process | undefined = process; up !== undefined; up = up.parent) {
      up.movedIn = this.#instant;
    }
    this.#current = process;
    const { done, value } = process.run.next(this.#over(process.wait));
    this.#current = undefined;
    if (done !== true) {
      process.wait = value;
      return;
    }
    process.end = value;
    this.#live.splice(this.#live.indexOf(process), 1);
  }
}

const NEVER = Number.POSITIVE_INFINITY;
const AT_ONCE: Wait = { answer: () => true };

function isWithin(process: Process<unknown>, around: Process<unknown>): boolean {
  for (let up: Process<unknown> | undefined = process; up !== undefined; up = up.parent) {
    if (up === around) return true;
  }
  return false;
}

/**
 * What can be cut off as a whole: the instance, a branch of a race, or a block whose time is limited. A
 * shielded scope goes on when what is around it is cut off, by the signal or by anything.
 */
export interface Scope {
  readonly around: Scope | undefined;
  readonly shield: 'none' | 'signal' | 'all';
  by?: 'signal' | 'race' | 'limit';
  /** Unix ms: when its time is over, unless it is cut off by then. */
  limit?: number;
  /** What does not cut it off. */
  readonly unless?: Scope['by'];
}

export function scopeIn(around?: Scope, shield: Scope['shield'] = 'none'): Scope {
  return { around, shield };
}

/** Whether nobody sees what fails in `scope`: it is cut off, or what it is in that the signal does not come through. */
export const isUnseen = ({ by, shield, around }: Scope): boolean =>
  by !== undefined || (shield !== 'all' && around !== undefined && isUnseen(around));

/** Whether `scope` is cut off, or what is around it; `unless`: not counting those who do it so. */
export function isCut(scope: Scope, unless?: Scope['by']): boolean {
  const ignored = new Set([unless]);
  for (let at: Scope | undefined = scope; at !== undefined; at = at.around) {
    if (at.by !== undefined && !ignored.has(at.by)) return true;
    if (at.shield === 'all') return false;
    if (at.shield === 'signal') ignored.add('signal');
  }
  return false;
}
