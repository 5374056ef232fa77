/**
 * Lives one story twice, in the evaluator and in the model, in one virtual time, and compares them
 * after every event. The evaluator leads: what it gives out is answered, and it is woken when it asks
 * to be. After a draw (`Model.isDraw`) it goes on alone, and only the laws that need no model hold.
 */

import assert from 'node:assert/strict';
import type { StepRecord } from '../../schema/execution.js';
import { isEnded } from '../../schema/states.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import { putData } from '../../src/core/loop-items.js';
import type { ChildEnd, Dispatch, EngineEvent, Env, StepTry } from '../../src/core/progress.js';
import { type Answer, EVENT } from './block-trees.js';
import { Model } from './model.js';
import { compareEnd, compareNow, nameOf } from './model-compare.js';
import { Laws, type Tally } from './model-laws.js';
import { answerTo, type Request, type Story } from './model-stories.js';
import type { ModelEvent, Outcome, Word } from './model-world.js';
import { clone, Player, START } from './player.js';

/** More events than this are a life without end. */
const EVENTS_MAX = 1_000;

/** Tasks whose time is limited are claimed after this time. */
const CLAIM_MS = 13;

/** Questions about rate limits are answered after this time, and put off by the other. */
const GRANT_MS = 51;
const LIMIT_MS = 101;

/** What somebody will say about a try or a question. */
interface Reply {
  readonly at: number;
  /** The try, as `Player.open` names it. */
  readonly key: string;
  /** What is said dies with the process that would have said it. */
  readonly isMortal: boolean;
  readonly event: EngineEvent;
  readonly told: ModelEvent;
}

export class Trial {
  readonly #story: Story;
  readonly #player: Player;
  readonly #laws: Laws;
  readonly #tally: Tally;
  #model: Model | undefined;
  #replies: Reply[] = [];
  /** Grants for tries that cannot begin now; whoever gives them tells of them again later. */
  #unused: Reply[] = [];
  /** Claims of tasks that are not offered, since the instance is paused. */
  #unclaimed: Reply[] = [];
  /** What it waits for outside: everybody there has heard of it. */
  #awaited: ReadonlySet<string> = new Set();
  readonly #requests: { at: number; request: Request }[] = [];
  #retriesLeft: number;
  /** Grows with each retry of the instance, so that its tries may be answered otherwise. */
  #life = 0;
  #events = 0;
  readonly #log: string[] = [];

  constructor(story: Story, tally: Tally) {
    this.#story = story;
    this.#tally = tally;
    const { blocks, data, startsAfter, unpoliciedRetry, kept, hooks } = story;
    this.#player = new Player(blocks, { data, env: this.#env, hooks });
    this.#laws = new Laws(this.#player, tally);
    const startsAt = START + startsAfter;
    this.#player.snapshot.nextFireAt = startsAt;
    const instanceId = this.#player.snapshot.id;
    this.#player.snapshot.signals = kept.map((payload, seq) => {
      return { seq, id: `s${seq}`, name: EVENT, payload, characters: 2 };
    });
    this.#model = new Model(
      { blocks, data, instanceId, startsAt, kept, hooks, unpoliciedRetry },
      START,
    );
    let at = START;
    for (const { after, request } of story.requests) {
      at += after;
      this.#requests.push({ at, request });
    }
    this.#retriesLeft = story.retries;
  }

  /** @throws with the events up to the first difference or broken law */
  run(): void {
    try {
      this.#tell({ kind: 'wake' }, { kind: 'wake' });
      while (this.#next()) assert.ok(this.#events < EVENTS_MAX, 'a life without end');
      this.#laws.atEnd({ ...this.#env, now: this.#player.now });
      if (this.#model !== undefined) compareEnd(this.#player, this.#model, this.#story.blocks);
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      throw new Error(`${what}\nafter:\n${this.#log.join('\n')}`, { cause: error });
    }
    this.#tally.count('stories');
    if (this.#model === undefined) this.#tally.count('draws');
  }

  get #env(): Omit<Env, 'now'> {
    const { stepBudget, unpoliciedRetry } = this.#story;
    return {
      random: () => 0.5,
      unpoliciedRetry,
      stepBudget,
      outputBytesBudget: 1_000_000,
      isRateLimited: (key) => key === 'limited',
    };
  }

  // -------------------------------------------------------------- what happens next

  /** The earliest of what callers ask, what workers and handlers reply, and the wake. */
  #next(): boolean {
    const player = this.#player;
    const [request] = this.#requests;
    const [reply] = this.#replies;
    const wakeAt = player.last!.wakeAt;
    const at = Math.min(request?.at ?? NEVER, reply?.at ?? NEVER, wakeAt ?? NEVER);
    if (at === NEVER) return this.#goOn();
    player.now = Math.max(player.now, at);
    if (wakeAt === at) this.#tell({ kind: 'wake' }, { kind: 'wake' });
    else if (request?.at === at) {
      this.#requests.shift();
      this.#make(request.request);
    } else if (reply !== undefined) {
      this.#replies.shift();
      // As the actor does it: a grant is for the moment.
      const isHeld = reply.event.kind === 'rate.granted' && player.state !== 'running';
      const isClaim = reply.event.kind === 'step.claimed';
      if (isHeld) this.#unused.push(reply);
      else if (isClaim && player.state === 'paused') this.#unclaimed.push(reply);
      else if (!isClaim || player.open.has(reply.key))
        this.#tell(reply.event, reply.told, reply.key);
    }
    return true;
  }

  /** Nothing happens by itself any more: somebody does what is left to do, if anything is. */
  #goOn(): boolean {
    const player = this.#player;
    player.now += 1;
    const [silent] = player.open.values();
    const [silentWait] = player.awaitedTries;
    if (player.state === 'failed' && this.#retriesLeft > 0) {
      this.#retriesLeft -= 1;
      this.#retry();
    } else if (isEnded(player.snapshot.state)) return false;
    else if (player.state === 'paused') this.#make({ kind: 'resume' });
    else if (silent !== undefined) this.#reply(silent, { kind: 'success', output: {} }, 0);
    else if (silentWait !== undefined) this.#answerWait(silentWait, LAST_ANSWER);
    else this.#make({ kind: 'reschedule', after: 0 });
    return true;
  }

  /** A failed instance that is resumed after a pause is retried, too. */
  #retry(): void {
    const isGivenUp = this.#story.givesUp && this.#player.snapshot.execution.a !== undefined;
    if (isGivenUp) {
      this.#tally.count('gives up what is owed');
      this.#make({ kind: 'stop', state: 'failed' });
      this.#make({ kind: 'pause' });
    } else this.#make({ kind: 'retry' });
  }

  #make(request: Request): void {
    const player = this.#player;
    const { snapshot } = player;
    if (this.#isUnspecified(request)) return;
    if (snapshot.state === 'failed' || snapshot.execution.f === 1) {
      // No reply of the life before is taken for one of the next.
      this.#replies = [];
      this.#unused = [];
      this.#unclaimed = [];
      this.#awaited = new Set();
      this.#life += 1;
    }
    this.#tally.count(`asked to ${request.kind}`);
    switch (request.kind) {
      case 'reschedule': {
        const at = player.now + request.after;
        this.#tell({ kind: 'reschedule', at }, { kind: 'reschedule', at });
        break;
      }
      case 'update_context': {
        // As the actor does it: the data is merged, and a parked instance goes on.
        if (isEnded(snapshot.state)) return;
        const { values } = request;
        putData(this.#player.plan, snapshot, { ...snapshot.data, ...values }, values);
        const isParked = snapshot.execution.p === 1 && snapshot.state !== 'paused';
        if (snapshot.state === 'paused') delete snapshot.execution.p;
        this.#tell(isParked ? { kind: 'reschedule', at: null } : undefined, request);
        break;
      }
      default:
        this.#tell(request, request);
    }
  }

  /**
   * What it means to hold back an instance that has nothing left to do, and what becomes of deferrals
   * behind a start that was asked for when another start is.
   */
  #isUnspecified(request: Request): boolean {
    const { execution } = this.#player.snapshot;
    if (request.kind === 'park') return execution.e !== undefined;
    if (request.kind !== 'reschedule') return false;
    const isDeferred = Object.values(execution.o).some(
      (record) => 'p' in record && DEFERRED.has(record.p),
    );
    if (execution.h !== undefined && isDeferred) return true;
    return request.after > 0 && execution.e !== undefined;
  }

  // -------------------------------------------------------------- one event, told to both

  /** @param key the try that the event is about */
  #tell(event: EngineEvent | undefined, told: ModelEvent, key?: string): void {
    const player = this.#player;
    this.#log.push(`${this.#events}: +${player.now - START} ${JSON.stringify(told)}`);
    const [dispatches, questions] = [player.dispatched.length, player.asked.length];
    if (event !== undefined) this.#laws.before(event);
    const isOpen = told.kind === 'outcome' && key !== undefined && player.open.delete(key);
    const dies = event !== undefined && this.#story.deaths.includes(this.#events);
    const begun = new Set<string>();
    const isStale = event === undefined ? false : this.#toPlayer(event, dies ? begun : undefined);
    this.#events += 1;
    for (const dispatch of latest(player.dispatched.slice(dispatches))) this.#work(dispatch);
    for (const question of latest(player.asked.slice(questions))) this.#ask(question);
    if (player.state === 'running') {
      for (const grant of this.#unused) this.#say({ ...grant, at: player.now + GRANT_MS });
      this.#unused = [];
    }
    if (player.state !== 'paused') {
      for (const claim of this.#unclaimed) this.#say({ ...claim, at: player.now + CLAIM_MS });
      this.#unclaimed = [];
    }
    this.#hearWaits();
    this.#laws.after(told.kind === 'claimed' ? undefined : key);
    if (told.kind === 'outcome') {
      assert.equal(isStale, !isOpen, 'whether the outcome is taken');
      if (isStale) this.#tally.count('late outcome');
    }
    if (this.#model === undefined) return;
    const isTaken = this.#model.take(told, player.now);
    if (dies) this.#model.take({ kind: 'crash', begun }, player.now);
    if (this.#model.isDraw) {
      this.#model = undefined;
      return;
    }
    assert.equal(isStale, !isTaken, 'whether the event is taken');
    compareNow(player, this.#model);
  }

  /**
   * Returns whether the event was about a try that is not open.
   *
   * @param begun given if the process dies: gets the tries that die with it
   */
  #toPlayer(event: EngineEvent, begun: Set<string> | undefined): boolean {
    const player = this.#player;
    if (begun === undefined) {
      const progress = player.send(event);
      const timedOut = progress.withdrawals.filter(({ reason }) => reason === 'timed_out');
      this.#tally.count('timed out', timedOut.length);
      return progress.stale === true;
    }
    // The commit of the event itself is there; what was to follow at once is not.
    const progress = player.sendOnce(event);
    for (const dispatch of player.open.values()) {
      if (!dispatch.external) begun.add(nameOf(dispatch));
    }
    this.#laws.noteDeath();
    this.#replies = this.#replies.filter(({ isMortal }) => !isMortal);
    this.#unused = [];
    player.snapshot = clone(player.snapshot);
    player.recover();
    return progress.stale === true;
  }

  // -------------------------------------------------------------- what others say

  #work(dispatch: Dispatch): void {
    const { blockId: block, iteration, attempt: number } = dispatch;
    this.#claim(dispatch);
    const answer = answerTo(this.#story, { block, iteration, number, life: this.#life });
    if (answer.kind === 'never' || !this.#player.open.has(keyOf(dispatch))) return;
    const { kind, output, after } = answer;
    if (kind === 'success') this.#reply(dispatch, { kind, output }, after);
    else if (kind === 'refused') this.#reply(dispatch, 'refused', after);
    else this.#reply(dispatch, { kind: 'failure', retryable: kind === 'retryable' }, after);
  }

  /** Whoever it waits for outside hears of it; children are made. */
  #hearWaits(): void {
    const player = this.#player;
    const { o } = player.snapshot.execution;
    for (const order of player.children) {
      const record = o[order.node] as StepRecord | undefined;
      if (order.kind !== 'start' || record?.p !== 'child' || record.c !== undefined) continue;
      player.send({ kind: 'child.made', ...tryOf(order), child: order.child });
    }
    const tries = player.awaitedTries;
    const nameOfTry = (one: (typeof tries)[number]) => `${one.name}/${one.attempt}`;
    for (const one of tries) {
      if (this.#awaited.has(nameOfTry(one))) continue;
      this.#tally.count(`waited for ${one.kind}`);
      const { block, kind, iteration, attempt } = one;
      const name = kind === 'said' ? `${block}?` : block;
      const number = kind === 'child' ? 0 : attempt;
      const answer = answerTo(this.#story, { block: name, iteration, number, life: this.#life });
      if (answer.kind !== 'never') this.#answerWait(one, answer);
    }
    this.#awaited = new Set(tries.map(nameOfTry));
  }

  #answerWait(wait: Player['awaitedTries'][number], { kind, after, output }: Answer): void {
    const { name } = wait;
    const step = tryOf(wait);
    const reply = { at: this.#player.now + after, key: name, isMortal: false };
    const isGood = kind === 'success';
    switch (wait.kind) {
      case 'said': {
        const value = isGood ? 'fast' : 'slow';
        const answer = { value, comment: null, by: null, answerId: null, more: {} };
        const event: EngineEvent = { kind: 'gate.answered', ...step, answer };
        this.#say({ ...reply, event, told: wordOf(name, { kind: 'said', value }) });
        break;
      }
      case 'event': {
        const event: EngineEvent = {
          kind: 'event.arrived',
          ...step,
          event: { id: 'e', payload: output },
        };
        this.#say({ ...reply, event, told: wordOf(name, { kind: 'event', payload: output }) });
        break;
      }
      case 'child': {
        const end: ChildEnd = isGood
          ? { kind: 'completed', output }
          : { kind: 'failed', code: 'child_failed', message: 'broken' };
        const word = { kind: 'child', output: isGood ? output : undefined } as const;
        this.#say({
          ...reply,
          event: { kind: 'child.ended', ...step, end },
          told: wordOf(name, word),
        });
      }
    }
  }

  #claim(dispatch: Dispatch): void {
    const { external, timeoutMs: timeout } = dispatch;
    const record = this.#player.snapshot.execution.o[dispatch.node] as StepRecord | undefined;
    if (!external || (timeout === null && record?.q === undefined)) return;
    this.#say({
      at: this.#player.now + CLAIM_MS,
      key: keyOf(dispatch),
      isMortal: false,
      event: { kind: 'step.claimed', ...tryOf(dispatch) },
      told: { kind: 'claimed', key: nameOf(dispatch), timeout },
    });
  }

  #reply(dispatch: Dispatch, outcome: Outcome | 'refused', after: number): void {
    const { external } = dispatch;
    const about = tryOf(dispatch);
    const isRefused = outcome === 'refused';
    this.#say({
      at: this.#player.now + after,
      key: keyOf(dispatch),
      isMortal: !external,
      event: isRefused
        ? { kind: 'step.refused', ...about, message: 'refused' }
        : { kind: 'step.outcome', ...about, external, outcome: withMessage(outcome) },
      told: {
        kind: 'outcome',
        key: nameOf(dispatch),
        outcome: isRefused ? { kind: 'failure', retryable: false } : outcome,
      },
    });
  }

  /** Some questions are put off the first time. */
  #ask(question: StepTry & { readonly blockId: string }): void {
    const { asked, now } = this.#player;
    const key = keyOf(question);
    const isFirst = asked.filter((other) => keyOf(other) === key).length === 1;
    const isPutOff = isFirst && question.node % 2 === 0;
    this.#tally.count(isPutOff ? 'rate limited' : 'granted');
    const until = now + LIMIT_MS;
    const about = tryOf(question);
    this.#say({
      at: now + GRANT_MS,
      key,
      isMortal: true,
      event: isPutOff
        ? { kind: 'rate.deferred', ...about, until }
        : { kind: 'rate.granted', ...about },
      told: { kind: 'rate', key: nameOf(question), ...(isPutOff ? { until } : {}) },
    });
  }

  #say(reply: Reply): void {
    this.#replies.push(reply);
    this.#replies.sort((a, b) => a.at - b.at);
  }
}

const DEFERRED: ReadonlySet<unknown> = new Set(['delay', 'backoff', 'limited']);

const NEVER = Number.POSITIVE_INFINITY;

/** Of somebody who had nothing to say for a long time. */
const LAST_ANSWER: Answer = { kind: 'success', after: 0, output: {} };

function wordOf(key: string, word: Word): ModelEvent {
  return { kind: 'word', key, word };
}

function withMessage(outcome: Outcome): StepOutcome {
  return outcome.kind === 'success' ? outcome : { ...outcome, message: 'broken' };
}

function tryOf({ node, iteration, attempt }: StepTry): StepTry {
  return { node, iteration, attempt };
}

function keyOf({ node, iteration, attempt }: StepTry): string {
  return `${node}/${iteration}/${attempt}`;
}

/** Each try once: one that was lost and given out again is answered once. */
function latest<T extends StepTry>(tries: readonly T[]): Iterable<T> {
  return new Map(tries.map((one) => [keyOf(one), one])).values();
}
