/**
 * A service decides on rows and keeps none of them: read, decide, commit one unit, publish the change,
 * reply. The alternative is the keyed actor (`host.ts`). Each unit is decided on fresh rows, so the refusal
 * of one says nothing about others. Units of one key are committed in order.
 */

import { DATABASE_AWAY, EngineError, UNKNOWN_OUTCOME } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import { Serial } from '../../src/base/serial.js';
import { type CommitDeps, failed, failureOf, INTERNAL } from './commit.js';
import type { Settlement, UnitOwner } from './commit-log.js';
import { Turn } from './turn.js';

export interface ServiceDeps extends CommitDeps {
  readonly log: Logger;
  /** Runs the work in a turn of the shard, at whose end its commits and messages are posted. */
  readonly schedule: (work: () => void) => void;
  /** Calls `then` when rows are current: not while units of a failed writer are unsettled. */
  readonly whenWriterKnown: (then: () => void) => void;
}

interface UnitOptions {
  /** Absent: the name of the service. */
  readonly key?: string;
  readonly exists?: string;
}

export interface NowOptions extends UnitOptions {
  /** Absent: a new one, so that the writer refuses nothing else with it. */
  readonly incarnation?: number;
  /** The error for a unit that was not committed; absent: that of `failureOf`. */
  readonly failure?: (ack: Settlement) => EngineError | undefined;
  /** Called when it is committed, before its effects are released. */
  readonly committed?: () => void;
  /** Called with the failure, after its effects or replies were released. */
  readonly settled?: (error: EngineError | undefined, ack: Settlement) => void;
}

export interface CommitOptions extends UnitOptions {
  /** Runs in the turn that appends the unit; throws the refusal. */
  readonly check?: () => void;
  /** Resolves when the replicas have read the change. Called for unknown outcomes too. */
  readonly publish?: () => Promise<void>;
}

/** The status of a success. */
type StatusOf<T> = number | ((answer: T) => number);

export class Service {
  readonly #name: string;
  readonly #deps: ServiceDeps;
  readonly #lines = new Serial();

  /** @param name unique among all actors of the shard */
  constructor(name: string, deps: ServiceDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  /**
   * Replies with the result of the work; undefined is a reply without a body.
   * @param line requests of one line run one after the other; absent: no order
   * @param work rejects with the EngineError to reply with; anything else is a defect: 500
   */
  answer<T extends object | undefined>(
    request: number,
    status: StatusOf<T>,
    line: string | undefined,
    work: () => Promise<T>,
  ): void {
    const done = line === undefined ? work() : this.inLine(line, work);
    this.reply(request, status, done);
  }

  reply<T extends object | undefined>(
    request: number,
    status: StatusOf<T>,
    work: Promise<T>,
  ): void {
    const { release, schedule } = this.#deps;
    // Separate, so that a value that cannot be serialized is answered as a defect too.
    const reply = work.then((answer) => ({
      status: typeof status === 'number' ? status : status(answer),
      body: answer === undefined ? '' : JSON.stringify(answer),
    }));
    reply.then(
      (made) => schedule(() => release([{ kind: 'reply', request, ...made }])),
      (error: unknown) => schedule(() => this.fail(request, this.errorOf(error))),
    );
  }

  /** Commits the decision immediately; an error is the reply instead. */
  serve(request: number, decide: (turn: Turn) => void, options?: UnitOptions): void {
    const turn = new Turn();
    try {
      decide(turn);
    } catch (error) {
      this.fail(request, this.errorOf(error));
      return;
    }
    this.commitNow(turn, options);
  }

  fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }

  /** Logs a defect and returns the error for callers. */
  errorOf(error: unknown): EngineError {
    if (error instanceof EngineError) return error;
    this.#deps.log.error({ actor: this.#name, err: error }, 'defect');
    return INTERNAL;
  }

  /** Runs after all earlier work of the same line. @throws EngineError 503 when the line is full */
  inLine<Result>(line: string, work: () => Promise<Result>): Promise<Result> {
    return this.#lines.run(line, work);
  }

  /** Waits while units of a failed writer are unsettled. @throws EngineError 503 without the database */
  read<Result>(read: () => Promise<Result>): Promise<Result> {
    const { whenWriterKnown } = this.#deps;
    return new Promise((resolve, reject) => {
      whenWriterKnown(() => read().then(resolve, () => reject(DATABASE_AWAY)));
    });
  }

  /**
   * Resolves when the unit is durable, its effects are released and the replicas have read the change.
   * @throws EngineError as the check does; 409 or 400 when the database refuses the unit, 503 when its
   *   outcome is unknown
   */
  async commit(turn: Turn, { check, publish, ...options }: CommitOptions = {}): Promise<void> {
    try {
      await this.#committed(turn, options, check);
    } catch (error) {
      // The caller is answered now; the replicas are notified once the writer is back.
      const republish = () => void publish?.().catch(() => undefined);
      if (error === UNKNOWN_OUTCOME) this.#deps.whenWriterKnown(republish);
      throw error;
    }
    await publish?.();
  }

  #committed(turn: Turn, options: UnitOptions, check?: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#deps.schedule(() => {
        try {
          check?.();
          this.commitNow(turn, {
            ...options,
            settled: (error) => (error === undefined ? resolve() : reject(error)),
          });
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** For callers in a turn of the shard that do not wait. */
  commitNow(turn: Turn, options: NowOptions = {}): void {
    const key = options.key ?? this.#name;
    this.#deps.commits.append(ownerOf(this.#deps, { ...options, key }), turn);
  }
}

/** The owner of an independent unit, such as one whose place is reserved (`CommitLog.reserve`). */
export function ownerOf(
  { commits, release }: CommitDeps,
  { key, exists, committed, settled, ...options }: NowOptions & { readonly key: string },
): UnitOwner {
  const { incarnation = commits.nextIncarnation() } = options;
  const failure = options.failure ?? ((ack) => failureOf(ack, key, exists));
  return {
    key,
    incarnation,
    settled({ effects }, ack) {
      const error = failure(ack);
      if (error === undefined) {
        committed?.();
        release(effects);
      } else release(failed(effects, error));
      settled?.(error, ack);
    },
  };
}
