/**
 * Elects one leader among the tabs, which talk over a channel. The leader does what has to be done once for all tabs.
 *
 * 1. Where the browser has locks (it has none on plain HTTP), the tab that holds the lock leads. The browser passes the
 *    lock on when a tab is closed or crashes.
 * 2. The leader sends a heartbeat every second. A tab that receives none for `QUIET_MS` steals the lock: the leader may
 *    be frozen and hold it forever.
 * 3. Without locks, a tab that receives no heartbeat leads, and a leader announces that it leaves. If two tabs lead,
 *    the one with the smaller id stays.
 *
 * Two tabs may lead for a moment, so their work must be harmless when it is done twice.
 */

export type TabMessage =
  | { readonly kind: 'asks' | 'leads' | 'leaves'; readonly from: string }
  /** A message of the leader to the other tabs. */
  | { readonly kind: 'news'; readonly from: string; readonly news: unknown };

export interface ElectionDeps {
  /** Unique per tab. */
  readonly id: string;
  readonly send: (message: TabMessage) => void;
  /** Undefined where the browser has no locks. */
  readonly locks: Pick<LockManager, 'request'> | undefined;
  /** Name of the lock. */
  readonly name: string;
  /** Called when this tab becomes the leader; it leads until the signal is aborted. */
  readonly onLead: (ended: AbortSignal) => void;
  /** Called when another tab asks for a leader or first sees this one: send it the current state. */
  readonly onAsked: () => void;
}

const BEAT_MS = 1_000;
/** Browsers run timers of background tabs once a second, and those of busy tabs later. */
const QUIET_MS = 5_000;
/** Random delay, so that waiting tabs do not act at the same moment. */
const SPREAD_MS = 2_000;
/** Without locks: how long a new tab listens for a leader before it leads. */
const LISTEN_MS = { least: 200, spread: 200 } as const;

export class Election {
  readonly #deps: ElectionDeps;
  #isRunning = false;
  #leading: AbortController | undefined;
  /** Releases the lock, or stops waiting for it. */
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
    const { id, send, locks } = this.#deps;
    send({ kind: 'asks', from: id });
    if (locks === undefined) this.#takeAfter(LISTEN_MS.least, LISTEN_MS.spread);
    else this.#follow();
  }

  stop(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    clearTimeout(this.#quiet);
    if (this.isLeading) this.#deps.send({ kind: 'leaves', from: this.#deps.id });
    this.#resign();
    this.#leaveLock();
  }

  /** Handles a message of another tab. */
  receive({ kind, from }: TabMessage): void {
    if (!this.#isRunning || from === this.#deps.id) return;
    if (this.isLeading) {
      if (kind === 'asks') this.#announceLead();
      // With locks, the browser decides which of the two leads.
      const isOther = kind === 'leads' && this.#deps.locks === undefined;
      if (isOther && from < this.#deps.id) this.#yield();
      return;
    }
    if (kind === 'leads' || kind === 'news') this.#takeAfter(QUIET_MS, SPREAD_MS);
    if (kind === 'leaves' && this.#deps.locks === undefined) {
      this.#takeAfter(0, LISTEN_MS.spread);
    }
  }

  #announceLead(): void {
    this.#deps.send({ kind: 'leads', from: this.#deps.id });
    this.#deps.onAsked();
  }

  /** The timer first: whoever gets the lock at once must not be left with one, by which it would steal the lock later. */
  #follow(): void {
    this.#takeAfter(QUIET_MS, SPREAD_MS);
    if (this.#deps.locks !== undefined) this.#waitForLock(false);
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
    // Rejected when the wait is aborted, and when another tab steals the lock.
    void locks?.request(name, options, hold).catch(() => {
      if (!waiting.signal.aborted) this.#yield();
    });
  }

  #lead(): void {
    clearTimeout(this.#quiet);
    const leading = new AbortController();
    this.#leading = leading;
    this.#beat = setInterval(() => this.#announceLead(), BEAT_MS);
    this.#deps.onLead(leading.signal);
    this.#announceLead();
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
