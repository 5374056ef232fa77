/**
 * Delivers messages between parents and children. A message is a row with a hint; hints may be
 * lost, so the rows are also read periodically. Receiving a message twice has no effect.
 */

import { type InstanceState, isEnded } from '../../schema/states.js';
import { BackgroundJob } from '../../src/base/background-job.js';
import { firstIdAt } from '../../src/base/ids.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { ChildEnd, StepTry } from '../../src/core/progress.js';
import type { Kernel } from '../runtime/kernel.js';
import type { FamilyMessage } from '../runtime/protocol.js';
import type { Effects, Messages, Room } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import { type Effect, Turn } from '../runtime/turn.js';
import { findPlace, type PlaceDeps } from './creation.js';
import type { Instances } from './instances.js';
import type { ChildEndRow, InstanceLoads } from './loads.js';
import { FAMILY_MESSAGE } from './tables.js';
import { outputText } from './wire-texts.js';

export interface FamilyMessagesDeps
  extends PlaceDeps,
    Pick<
      Kernel<InstanceLoads>,
      | 'clock'
      | 'commits'
      | 'loader'
      | 'log'
      | 'now'
      | 'release'
      | 'schedule'
      | 'settings'
      | 'whenWriterKnown'
    > {
  readonly instances: Pick<Instances, 'send'>;
}

type ChildFind = Extract<Effect, { kind: 'child.find' }>;

/** The longest delay by a lost hint. */
const RESCAN_MS = 5_000;
const PAGE_ROWS = 500;
/** The hint of a younger message is probably still on its way. */
const YOUNG_MS = 1_000;
/** The delay before a failed read or creation is repeated. */
const AGAIN_MS = 1_000;

/** The reply for a child without a row. A child that was to clean up is not replaced. */
const GONE = { retry: 'gone', clean_up: 'cancelled' } as const;

const FIRST = '00000000-0000-0000-0000-000000000000';

export class FamilyMessages implements Room {
  readonly #deps: FamilyMessagesDeps;
  readonly #service: Service;
  readonly #rescan: BackgroundJob;

  readonly messages = {
    'family.message': ({ kind: _, ...message }) => this.#received(message),
  } satisfies Messages;
  readonly effects = {
    'child.find': (effect) => this.#find(effect),
    'child.look': ({ instance, child, step }) =>
      this.#sendEnd(instance, child, undefined, undefined, step),
    'family.undelivered': ({ message }) => this.#undelivered(message),
  } satisfies Effects;

  constructor(deps: FamilyMessagesDeps) {
    this.#deps = deps;
    this.#service = new Service('family', deps);
    const { clock, log } = deps;
    this.#rescan = new BackgroundJob({
      clock,
      log,
      name: 'notes of parents and children',
      everyMs: RESCAN_MS,
      run: () => this.#round(),
    });
  }

  readonly start = () => this.#rescan.wake();
  readonly peerBack = this.start;
  readonly writerReady = this.start;
  readonly tenantBack = this.start;
  readonly stop = () => this.#rescan.stop();

  #received(message: FamilyMessage): void {
    const { to, from, word } = message;
    if (isEnd(word)) this.#sendEnd(to, from, word, message);
    else this.#deps.instances.send(to, { kind: 'parent.moved', received: message });
  }

  #find(request: ChildFind): void {
    const { instance, start, name, isLater } = request;
    if (isLater) {
      this.#later(() => this.#find({ ...request, isLater: false }));
      return;
    }
    const { tenant: tenant_id, namespace, name: sequence, version } = name;
    const { instances, schedule, log } = this.#deps;
    const body = { tenant_id, namespace, sequence, version };
    findPlace(this.#deps, { id: start.child, body }).then(
      (found) => schedule(() => instances.send(instance, { kind: 'child.found', start, found })),
      (error: unknown) => {
        log.debug({ err: error }, 'the sequence of a child was not read');
        this.#later(() => this.#find(request));
      },
    );
  }

  #undelivered({ to, from, id, word }: FamilyMessage): void {
    const turn = new Turn();
    // Notify the parent, which would otherwise wait for the deleted child.
    if (word === 'retry' || word === 'clean_up') {
      const reply = { to_id: from, from_id: to, id, word: GONE[word] };
      turn.put(FAMILY_MESSAGE.set, `${from}:${to}`, reply);
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
            this.#received({ to, from, id, word: word as FamilyMessage['word'] });
          }
        });
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) return;
      after = { to: last.to_id, from: last.from_id };
    }
  }

  /** @param word in case the rows have been deleted. @param step receives a report in any case */
  #sendEnd(
    parent: string,
    child: string,
    word: EndWord | undefined,
    received: FamilyMessage | undefined,
    step?: StepTry,
  ): void {
    const { instances, schedule, log } = this.#deps;
    this.#endOf(child, word).then(
      (end) => {
        // The child was retried. Its next end sends another message.
        if (end === undefined && step === undefined) return;
        schedule(() => instances.send(parent, { kind: 'child.ended', child, end, received, step }));
      },
      (error: unknown) => {
        log.debug({ err: error }, 'the end of a child was not read');
        if (received === undefined) {
          this.#later(() => this.#sendEnd(parent, child, word, received, step));
        }
      },
    );
  }

  async #endOf(child: string, word: EndWord | undefined): Promise<ChildEnd | undefined> {
    if (word === 'gone') return { ...failed(child, 'was cancelled'), isGone: true };
    const row = await this.#deps.loader.childEnd(child);
    const state = row?.state ?? word;
    if (state === undefined) return failed(child, 'no longer exists');
    if (!isEnded(state)) return undefined;
    if (state !== 'completed') {
      return state === 'failed' ? failed(child, 'failed', row) : failed(child, 'was cancelled');
    }
    return { kind: 'completed', output: await this.#outputOf(child, row) };
  }

  /** The outputs of the child, or their number and size when they exceed one output. */
  async #outputOf(child: string, row: ChildEndRow | undefined): Promise<JsonValue> {
    const { loader, settings } = this.#deps;
    const { maxOutputBytes } = settings;
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

const END_WORDS: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'gone']);

function isEnd(word: FamilyMessage['word']): word is EndWord {
  return END_WORDS.has(word);
}

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
    // The time of the dead letter identifies the failure even if compensations fail again.
    ...(failed_at === null ? {} : { note: failed_at }),
    ...(owes && { owes: true }),
  };
}
