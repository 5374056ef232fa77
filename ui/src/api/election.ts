/**
 * Which of several tabs leads. They hear each other over a channel, and one of them does for all what needs doing once.
 *
 * 1. Where the browser has locks (it has none on plain HTTP), the tab that holds the lock leads. The browser gives it to
 *    the next one when a tab is closed or breaks.
 * 2. The leader says every second that it is there. A tab that hears nothing for `QUIET_MS` takes its place, with the
 *    lock: the leader may be frozen, and hold the lock for ever.
 * 3. Without locks a tab that hears of no leader leads, and one that leaves says so. Of two that lead, the one with the
 *    smaller id stays.
 *
 * Two may lead for a moment: what they do must be harmless when it is done twice.
 */

export type Word =
  | { readonly kind: 'asks' | 'leads' | 'leaves'; readonly from: string }
  /** What the leader has to say to the others. */
  | { readonly kind: 'news'; readonly from: string; readonly news: unknown };

export interface ElectionDeps {
  /** Of this tab: no other one has it. */
  readonly id: string;
  readonly say: (word: Word) => void;
  /** Absent: there are none. */
  readonly locks: Pick<LockManager, 'request'> | undefined;
  /** Of the lock. */
  readonly name: string;
  /** This tab leads until the signal is aborted. */
  readonly onLead: (over: AbortSignal) => void;
  /** A tab asks, or hears for the first time of this leader: it is to be told how things stand. */
  readonly onAsked: () => void;
}

const BEAT_MS = 1_000;
/** Tabs in the background have their timers once a second, and one that is busy later still. */
const QUIET_MS = 5_000;
/** Those that wait for the same thing do not all act at once. */
const SPREAD_MS = 2_000;
/** Without locks: how long a new tab listens for a leader. */
const LISTEN_MS = { least: 200, spread: 200 } as const;

export class Election {
  readonly #deps: ElectionDeps;
  #isRunning = false;
  #leading: AbortController | undefined;
  /** Gives up the lock, or no longer waits for it. */
  #leaveLock: () => void = () => undefined;
  #beat: ReturnType<typeof setInterval> | undefined;
  #quiet: ReturnType<typeof setTimeout> | undefined;

  constructor(deps: ElectionDeps) {
    this.#deps = deps;
  }

  get isLeading(): boolean {
    return this.#leading !== undefined;
  }

  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { id, say, locks } = this.#deps;
    say({ kind: 'asks', from: id });
    if (locks === undefined) this.#takeAfter(LISTEN_MS.least, LISTEN_MS.spread);
    else this.#follow();
  }

  stop(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    clearTimeout(this.#quiet);
    if (this.isLeading) this.#deps.say({ kind: 'leaves', from: this.#deps.id });
    this.#resign();
    this.#leaveLock();
  }

  /** Of another tab. */
  hear({ kind, from }: Word): void {
    if (!this.#isRunning || from === this.#deps.id) return;
    if (this.isLeading) {
      if (kind === 'asks') this.#sayLead();
      // With locks the browser says which of the two it is.
      const isOther = kind === 'leads' && this.#deps.locks === undefined;
      if (isOther && from < this.#deps.id) this.#yield();
      return;
    }
    if (kind === 'leads' || kind === 'news') this.#takeAfter(QUIET_MS, SPREAD_MS);
    if (kind === 'leaves' && this.#deps.locks === undefined) {
      this.#takeAfter(0, LISTEN_MS.spread);
    }
  }

  #sayLead(): void {
    this.#deps.say({ kind: 'leads', from: this.#deps.id });
    this.#deps.onAsked();
  }

  #follow(): void {
    if (this.#deps.locks !== undefined) this.#waitForLock(false);
    this.#takeAfter(QUIET_MS, SPREAD_MS);
  }

  #takeAfter(leastMs: number, spreadMs: number): void {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#take(), leastMs + Math.random() * spreadMs);
  }

  #take(): void {
    this.#leaveLock();
    if (this.#deps.locks === undefined) this.#lead();
    else this.#waitForLock(true);
  }

  #waitForLock(steal: boolean): void {
    const { locks, name } = this.#deps;
    const waiting = new AbortController();
    let release: () => void = () => undefined;
    this.#leaveLock = () => {
      waiting.abort();
      release();
    };
    const hold = () =>
      new Promise<void>((resolve) => {
        release = resolve;
        if (waiting.signal.aborted) release();
        else this.#lead();
      });
    const options = steal ? { steal } : { signal: waiting.signal };
    // Rejected when it is no longer waited for, and when another tab has taken it.
    void locks?.request(name, options, hold).catch(() => {
      if (!waiting.signal.aborted) this.#yield();
    });
  }

  #lead(): void {
    clearTimeout(this.#quiet);
    const leading = new AbortController();
    this.#leading = leading;
    this.#beat = setInterval(() => this.#sayLead(), BEAT_MS);
    this.#deps.onLead(leading.signal);
    this.#sayLead();
  }

  #yield(): void {
    this.#resign();
    if (this.#isRunning) this.#follow();
  }

  #resign(): void {
    clearInterval(this.#beat);
    this.#leading?.abort();
    this.#leading = undefined;
  }
}
