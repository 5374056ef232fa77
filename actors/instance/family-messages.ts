/**
 * What instances of one shard have to hear of their parents and children, and what has to be read for that.
 * A note is a row; the hint of it may be lost, so the rows are read from time to time. A note that is told
 * twice changes nothing: it names the child, and what was taken in is not open any more.
 */

import { type InstanceState, isEnded } from '../../schema/states.js';
import { BackgroundJob } from '../../src/base/background-job.js';
import { firstIdAt } from '../../src/base/ids.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { ChildEnd, StepTry } from '../../src/core/progress.js';
import type { Kernel } from '../runtime/kernel.js';
import type { FamilyMessage } from '../runtime/protocol.js';
import type { Effects, Messages, Room } from '../runtime/room.js';
import type { SequenceName } from '../runtime/sequence-name.js';
import { Service } from '../runtime/service.js';
import { type Effect, Turn } from '../runtime/turn.js';
import type { Found } from './child-places.js';
import type { ChildEndRow, InstanceLoads } from './loads.js';
import type { InstanceMessage } from './messages.js';
import { FAMILY_MESSAGE } from './tables.js';
import { outputText } from './wire-texts.js';

export interface FamilyMessagesDeps
  extends Pick<
    Kernel<InstanceLoads>,
    'clock' | 'commits' | 'loader' | 'log' | 'now' | 'release' | 'schedule' | 'whenWriterKnown'
  > {
  /** A larger result of a child is told by its size alone. */
  readonly maxOutputBytes: number;
  readonly read: (child: string, name: SequenceName) => Promise<Found>;
  readonly tell: (instance: string, message: InstanceMessage) => void;
}

type ChildFind = Extract<Effect, { kind: 'child.find' }>;

/** Between two readings of the rows: how long a lost hint can hold an instance up. */
const RESCAN_MS = 5_000;
const PAGE_ROWS = 500;
/** A note that is younger is probably being told. */
const YOUNG_MS = 1_000;
/** A child that cannot be made now is asked for again after this. */
const AGAIN_MS = 1_000;

/** What a parent hears of a child that has no row any more: of one that was to clean up no other takes the place. */
const GONE = { retry: 'gone', clean_up: 'cancelled' } as const;

const FIRST = '00000000-0000-0000-0000-000000000000';

export class FamilyMessages implements Room {
  readonly #deps: FamilyMessagesDeps;
  readonly #service: Service;
  readonly #rescan: BackgroundJob;

  readonly messages = {
    'family.message': ({ kind: _, ...note }) => this.heard(note),
  } satisfies Messages;
  readonly effects = {
    'child.find': (effect) => this.find(effect),
    'child.look': ({ instance, child, step }) => this.look(instance, child, step),
    'family.undelivered': ({ note }) => this.unheard(note),
  } satisfies Effects;

  constructor(deps: FamilyMessagesDeps) {
    this.#deps = deps;
    this.#service = new Service('kin', deps);
    const { clock, log } = deps;
    this.#rescan = new BackgroundJob({
      clock,
      log,
      name: 'notes of parents and children',
      everyMs: RESCAN_MS,
      run: () =>
        this.#round().catch((error: unknown) => log.debug({ err: error }, 'notes were not read')),
    });
  }

  start(): void {
    this.#rescan.wake();
  }

  stop(): void {
    this.#rescan.stop();
  }

  peerBack(): void {
    this.#rescan.wake();
  }

  writerReady(): void {
    this.#rescan.wake();
  }

  tenantBack(): void {
    this.#rescan.wake();
  }

  heard(note: FamilyMessage): void {
    const { tell } = this.#deps;
    if (isEnd(note.word)) this.#tellEnd(note.to, note.from, note.word, note);
    else tell(note.to, { kind: 'parent.moved', note });
  }

  /** @param step whose answer is waited for, whatever it is */
  look(instance: string, child: string, step: StepTry): void {
    this.#tellEnd(instance, child, undefined, undefined, step);
  }

  /** Reads what is needed to make the child, and tells its parent. */
  find(asked: ChildFind): void {
    if (asked.isLater) this.#later(() => this.find({ ...asked, isLater: false }));
    else {
      const { instance, start, name } = asked;
      const { read, tell, schedule, log } = this.#deps;
      read(start.child, name).then(
        (found) => schedule(() => tell(instance, { kind: 'child.found', start, found })),
        (error: unknown) => {
          log.debug({ err: error }, 'the sequence of a child was not read');
          this.#later(() => this.find(asked));
        },
      );
    }
  }

  /** There is no such instance any more. */
  unheard({ to, from, id, word }: FamilyMessage): void {
    const turn = new Turn();
    // A parent that waits for a child which is gone hears of it on its own shard.
    if (word === 'retry' || word === 'clean_up') {
      turn.put(FAMILY_MESSAGE.set, `${from}:${to}`, {
        to_id: from,
        from_id: to,
        id,
        word: GONE[word],
      });
    }
    turn.put(FAMILY_MESSAGE.clear, id, { to_id: to, from_id: from, id });
    this.#service.commitNow(turn, { key: `family:${to}` });
  }

  #later(work: () => void): void {
    const { clock, schedule } = this.#deps;
    clock.setTimeout(() => {
      if (!this.#rescan.isStopped) schedule(work);
    }, AGAIN_MS);
  }

  async #round(): Promise<void> {
    const { loader, schedule, now } = this.#deps;
    const before = firstIdAt(now() - YOUNG_MS);
    for (let after = { to: FIRST, from: FIRST }; ; ) {
      const page = await loader.familyMessages(after, before, PAGE_ROWS);
      if (this.#rescan.isStopped) return;
      if (page.length > 0) {
        schedule(() => {
          for (const { to_id: to, from_id: from, id, word } of page) {
            this.heard({ to, from, id, word: word as FamilyMessage['word'] });
          }
        });
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) return;
      after = { to: last.to_id, from: last.from_id };
    }
  }

  // ---------------------------------------------------------------- how a child has ended

  /** @param word how it ended, should its rows have been removed since */
  #tellEnd(
    parent: string,
    child: string,
    word: EndWord | undefined,
    note: FamilyMessage | undefined,
    step?: StepTry,
  ): void {
    const { schedule, tell, log } = this.#deps;
    this.#endOf(child, word).then(
      (end) => {
        // It lives again: its next end has a note of its own.
        if (end === undefined && step === undefined) return;
        schedule(() => tell(parent, { kind: 'child.ended', child, end, note, step }));
      },
      (error: unknown) => {
        log.debug({ err: error }, 'the end of a child was not read');
        if (note === undefined) this.#later(() => this.#tellEnd(parent, child, word, note, step));
      },
    );
  }

  async #endOf(child: string, word: EndWord | undefined): Promise<ChildEnd | undefined> {
    if (word === 'gone') return { ...failed(child, 'was cancelled'), isGone: true };
    const row = await this.#deps.loader.childEnd(child);
    const state = row?.state ?? word;
    if (state === undefined) return failed(child, 'is not there any more');
    if (!isEnded(state)) return undefined;
    if (state !== 'completed') {
      return state === 'failed' ? failed(child, 'failed', row) : failed(child, 'was cancelled');
    }
    return { kind: 'completed', output: await this.#outputOf(child, row) };
  }

  /** The outputs of the child, or how many there are when they are too large for one output. */
  async #outputOf(child: string, row: ChildEndRow | undefined): Promise<JsonValue> {
    const { loader, maxOutputBytes } = this.#deps;
    if (row !== undefined && row.bytes <= maxOutputBytes) {
      const outputs = await loader.childOutputs(child);
      const text = `[${outputs.map(outputText).join(',')}]`;
      if (Buffer.byteLength(text) <= maxOutputBytes) return JSON.parse(text) as JsonValue;
    }
    const { rows = null, bytes = null } = row ?? {};
    return { instance_id: child, truncated: true, output_count: rows, output_bytes: bytes };
  }
}

type EndWord = Extract<FamilyMessage['word'], InstanceState | 'gone'>;

const END_WORDS: ReadonlySet<string> = new Set<EndWord>([
  'completed',
  'failed',
  'cancelled',
  'gone',
]);

function isEnd(word: FamilyMessage['word']): word is EndWord {
  return END_WORDS.has(word);
}

/** @param row of a child that can be retried */
function failed(
  child: string,
  what: string,
  row?: ChildEndRow,
): Extract<ChildEnd, { kind: 'failed' }> {
  const { failure: text = null, failed_at = null, owes = false } = row ?? {};
  const failure = text === null ? null : (JSON.parse(text) as JsonObject);
  const why = typeof failure?.message === 'string' ? `: ${failure.message}` : '';
  return {
    kind: 'failed',
    code: 'child_failed',
    message: `child ${child} ${what}${why}`,
    details: { instance_id: child, failure },
    // Not that of the failure: where compensations fail again, the reason stays the same one.
    ...(failed_at === null ? {} : { note: failed_at }),
    ...(owes && { owes: true }),
  };
}
