/**
 * Worker exchanges of one shard. Results go to the instances of their tasks, in one message per
 * other shard, while the poll runs, so that all changes share a commit. The response is sent when
 * every result has its outcome and the poll its tasks.
 *
 *   results ─► instances ─► outcomes ─┐
 *   poll ────► queues ────► tasks ────┴─► response
 */

import { type ExchangeTasks, POLL_LIMIT_DEFAULT, type TaskResult } from '../../schema/worker.js';
import { ChurningMap } from '../../src/base/churning-map.js';
import { type EngineError, RESTARTING } from '../../src/base/errors.js';
import { routeOf, routeOfName, shardOf } from '../../src/base/ids.js';
import { LIMITS } from '../../src/base/limits.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import type { UnixMs } from '../../src/base/time.js';
import { RefusedItem } from '../../src/http/body.js';
import type { InternalAnswer } from '../runtime/internal-requests.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call } from '../runtime/operation.js';
import type { FoundTask, PeerMessage, TaskClaim } from '../runtime/protocol.js';
import type { Messages, Room } from '../runtime/room.js';
import type { Effect } from '../runtime/turn.js';
import { CollectingPoll } from './collecting-poll.js';
import { arrayOf } from './poll.js';
import type { Queues } from './queues.js';

type Needed = 'shard' | 'shards' | 'settings' | 'now' | 'internalRequests' | 'release' | 'schedule';

interface ExchangesDeps extends Pick<Kernel, Needed | 'takeHints'> {
  readonly queues: Queues;
  /** Sends a result to the instance of its task, which replies to the request. */
  readonly tell: (request: number, tenant: string, worker: string, result: TaskResult) => void;
}

type MessageOf<Kind extends PeerMessage['kind']> = Extract<PeerMessage, { kind: Kind }>;
/** The part of a poll for one shard. */
type PollPart = Omit<MessageOf<'poll.ask'>, 'kind' | 'desk'>;

/** The poll of a worker inside the engine: it lasts until there is a task, or it is ended. */
export interface OwnPoll {
  readonly tenant: string;
  readonly worker: string;
  readonly handlers: readonly string[];
  readonly limit: number;
  readonly maySeeSecrets: true | undefined;
  /** Called once. */
  readonly answer: (found: readonly FoundTask[]) => void;
}

interface Exchange {
  readonly request: number;
  readonly tenant: string;
  readonly worker: string;
  readonly answer: (exchange: Exchange) => void;
  /** JSON texts, in the order of the results. */
  readonly outcomes: string[];
  readonly mayWait: boolean;
  /** A result was refused. The poll then does not wait, so that the worker is notified at once. */
  isRefused: boolean;
  /** The number of unknown outcomes, plus one until all results are dispatched. */
  open: number;
  /** By shard: the positions of results sent to it. */
  readonly sent: Map<number, readonly number[]>;
  collecting: CollectingPoll | undefined;
  isCollected: boolean;
}

type Settle = (outcome: string, isRefused: boolean) => void;

/** Results for another shard. */
interface Parcel {
  readonly at: number[];
  readonly results: TaskResult[];
}

export class Exchanges implements Room {
  readonly #deps: ExchangesDeps;
  readonly #exchanges = new ChurningMap<number, Exchange>();
  /** Rotates the shard that polls ask first, so that no shard is preferred. */
  #firstShard = 0;
  /** The number of the last exchange of the engine itself; negative, and no other shard uses it. */
  #lastOwn: number;

  readonly messages = {
    'exchange.results': (message) => this.#results(message),
    'exchange.outcomes': (message) => this.#outcomes(message),
    'poll.ask': ({ desk, ...part }) => {
      const { shard, takeHints } = this.#deps;
      const { request } = part;
      takeHints();
      this.#poll(part, desk, (found) => {
        this.#post(desk, { kind: 'poll.answer', request, shard, found });
      });
    },
    'polls.end': ({ tenant, worker }) => this.#endPolls(tenant, worker),
    'poll.end': ({ request }) => {
      // Messages received before are handled first.
      this.#deps.takeHints();
      this.#deps.queues.endWait(request);
    },
    'poll.answer': ({ request, shard, found }) => this.#answered(request, shard, found),
  } satisfies Messages;

  constructor(deps: ExchangesDeps) {
    this.#deps = deps;
    this.#lastOwn = -1 - deps.shard;
  }

  serve({ request, tenant, maySeeSecrets, body }: Call<ExchangeTasks>): void {
    const { worker_id: worker, version, poll } = body;
    const waitMs = poll?.wait_ms ?? 0;
    const exchange = this.#open(request, tenant, worker, body.results ?? [], {
      mayWait: waitMs > 0,
      isCollected: poll == null,
      answer: (ended) => this.#reply(ended),
    });
    if (body.end_polls) {
      for (let shard = 0; shard < this.#deps.shards; shard += 1) {
        if (shard === this.#deps.shard) this.#endPolls(tenant, worker);
        else this.#post(shard, { kind: 'polls.end', tenant, worker });
      }
    }
    if (poll != null) {
      const queues = [...new Set(poll.queues ?? [''])];
      const asked = { version: version ?? null, queues, maySeeSecrets };
      // A poll without a wait lasts until the outcomes are known.
      const isHeld = exchange.outcomes.length > 0 && waitMs === 0;
      const untilMs = isHeld ? LIMITS.requestTimeoutMs : waitMs;
      const until = untilMs > 0 ? this.#deps.now() + untilMs : 0;
      const limit = poll.limit ?? POLL_LIMIT_DEFAULT;
      this.#collect(exchange, asked, poll.handlers, limit, until);
    }
    this.#settledOne(exchange);
  }

  /** @returns ends the poll, which is then answered with the tasks that are ready */
  pollForOwn({ tenant, worker, handlers, limit, maySeeSecrets, answer }: OwnPoll): () => void {
    const exchange = this.#open(this.#nextOwn(), tenant, worker, [], {
      mayWait: true,
      isCollected: false,
      answer: ({ collecting }) => answer(collecting?.found ?? []),
    });
    const asked = { version: null, queues: [''], maySeeSecrets, isOwn: true } as const;
    this.#collect(exchange, asked, handlers, limit, Number.POSITIVE_INFINITY);
    this.#settledOne(exchange);
    return () => exchange.collecting?.end();
  }

  /** @param answer called once with the outcomes (JSON), in the order of the results */
  reportOwn(
    tenant: string,
    worker: string,
    results: readonly TaskResult[],
    answer: (outcomes: readonly string[]) => void,
  ): void {
    const exchange = this.#open(this.#nextOwn(), tenant, worker, results, {
      mayWait: false,
      isCollected: true,
      answer: ({ outcomes }) => answer(outcomes),
    });
    this.#settledOne(exchange);
  }

  #nextOwn(): number {
    this.#lastOwn -= this.#deps.shards;
    return this.#lastOwn;
  }

  #open(
    request: number,
    tenant: string,
    worker: string,
    results: readonly (TaskResult | RefusedItem)[],
    kind: Pick<Exchange, 'mayWait' | 'isCollected' | 'answer'>,
  ): Exchange {
    const exchange: Exchange = {
      ...kind,
      request,
      tenant,
      worker,
      outcomes: new Array(results.length),
      isRefused: false,
      open: results.length + 1,
      sent: new Map(),
      collecting: undefined,
    };
    this.#exchanges.set(request, exchange);
    const parcels = new Map<number, Parcel>();
    results.forEach((result, at) => {
      const settle: Settle = (outcome, isRefused) => this.#settle(exchange, at, outcome, isRefused);
      if (result instanceof RefusedItem) {
        settle(refusal(textIn(result.item, 'task_id'), result.error), true);
        return;
      }
      const owner = shardOf(routeOf(result.task_id), this.#deps.shards);
      if (owner === this.#deps.shard) this.#apply(tenant, worker, result, settle);
      else {
        const parcel = valueFor(parcels, owner, (): Parcel => ({ at: [], results: [] }));
        parcel.at.push(at);
        parcel.results.push(result);
      }
    });
    for (const [shard, { at, results: text }] of parcels) {
      exchange.sent.set(shard, at);
      const handed = { request, desk: this.#deps.shard, tenant, worker };
      this.#post(shard, { kind: 'exchange.results', ...handed, results: JSON.stringify(text) });
    }
    return exchange;
  }

  /** The worker is stopping: its polls end with the tasks they have. */
  #endPolls(tenant: string, worker: string): void {
    for (const exchange of this.#exchanges.values()) {
      if (exchange.tenant === tenant && exchange.worker === worker) exchange.collecting?.end();
    }
    this.#deps.queues.endWaitsOf(tenant, worker);
  }

  /** The client has disconnected. Its results remain valid. */
  requestAborted(request: number): void {
    this.#exchanges.delete(request);
  }

  /** Results sent to the restarted shard have an unknown outcome. */
  peerBack(shard: number): void {
    for (const exchange of this.#exchanges.values()) {
      const at = exchange.sent.get(shard) ?? [];
      exchange.sent.delete(shard);
      for (const place of at) this.#settle(exchange, place, refusal(undefined, RESTARTING), true);
      exchange.collecting?.answered(shard, []);
    }
  }

  #apply(tenant: string, worker: string, result: TaskResult, settle: Settle): void {
    const { internalRequests, tell } = this.#deps;
    const request = internalRequests.open((answer) =>
      settle(outcomeOf(result.task_id, answer), 'error' in answer),
    );
    tell(request, tenant, worker, result);
  }

  /** Results from another shard; their outcomes are returned in one message. */
  #results({ request, desk, tenant, worker, results: text }: MessageOf<'exchange.results'>): void {
    const results = JSON.parse(text) as TaskResult[];
    const outcomes: string[] = new Array(results.length);
    let open = results.length;
    let isAnyRefused = false;
    const { shard } = this.#deps;
    results.forEach((result, at) => {
      this.#apply(tenant, worker, result, (outcome, isRefused) => {
        outcomes[at] = outcome;
        isAnyRefused ||= isRefused;
        open -= 1;
        if (open > 0) return;
        const answer = { request, shard, outcomes, isRefused: isAnyRefused };
        this.#post(desk, { kind: 'exchange.outcomes', ...answer });
      });
    });
  }

  #outcomes({ request, shard, outcomes, isRefused }: MessageOf<'exchange.outcomes'>): void {
    const exchange = this.#exchanges.get(request);
    const at = exchange?.sent.get(shard);
    if (exchange === undefined || at === undefined) return;
    exchange.sent.delete(shard);
    at.forEach((place, index) => {
      this.#settle(exchange, place, outcomes[index] as string, isRefused);
    });
  }

  #settle(exchange: Exchange, at: number, outcome: string, isRefused: boolean): void {
    exchange.outcomes[at] = outcome;
    exchange.isRefused ||= isRefused;
    this.#settledOne(exchange);
  }

  #settledOne(exchange: Exchange): void {
    exchange.open -= 1;
    if (exchange.open > 0) return;
    if (exchange.isCollected) this.#end(exchange);
    else if (exchange.isRefused || (exchange.outcomes.length > 0 && !exchange.mayWait)) {
      // Scheduled after the hints of the same units, so that the poll finds tasks of these results.
      this.#deps.schedule(() => exchange.collecting?.end());
    }
  }

  #collect(
    exchange: Exchange,
    asked: Pick<PollPart, 'version' | 'queues' | 'maySeeSecrets' | 'isOwn'>,
    handlers: readonly string[],
    limit: number,
    until: UnixMs,
  ): void {
    const { request, tenant, worker } = exchange;
    const polled = { request, tenant, worker, ...asked };
    exchange.collecting = new CollectingPoll(
      {
        ask: (shard, handlers, limit, until) =>
          this.#ask(shard, { ...polled, handlers, limit, until }),
        end: (shard) => {
          if (shard === this.#deps.shard) this.#deps.queues.endWait(request);
          else this.#post(shard, { kind: 'poll.end', request });
        },
        giveBack: ({ task, epoch }) => this.#deps.queues.unclaim(task, epoch),
        done: () => {
          exchange.isCollected = true;
          if (exchange.open === 0) this.#end(exchange);
        },
      },
      this.#byShard(handlers),
      limit,
      until,
    );
    exchange.collecting.start();
  }

  #byShard(handlers: readonly string[]): (readonly [number, readonly string[]])[] {
    const byShard = new Map<number, string[]>();
    for (const handler of new Set(handlers)) {
      const shard = shardOf(routeOfName(handler), this.#deps.shards);
      valueFor(byShard, shard, () => []).push(handler);
    }
    this.#firstShard += 1;
    const list = [...byShard];
    const first = this.#firstShard % list.length;
    return [...list.slice(first), ...list.slice(0, first)];
  }

  #ask(shard: number, part: PollPart): void {
    const { shard: desk } = this.#deps;
    if (shard === desk)
      this.#poll(part, undefined, (found) => this.#answered(part.request, shard, found));
    else this.#post(shard, { kind: 'poll.ask', desk, ...part });
  }

  #poll(part: PollPart, asker: number | undefined, answer: (found: FoundTask[]) => void): void {
    this.#deps.queues.poll({
      ...part,
      asker,
      answer: (claimed) =>
        answer(claimed.map(({ task, epoch, record }) => ({ task: task.id, epoch, record }))),
    });
  }

  #answered(request: number, shard: number, found: readonly FoundTask[]): void {
    const { collecting } = this.#exchanges.get(request) ?? {};
    if (collecting?.answered(shard, found) === true) return;
    // The client has disconnected, or the shard was restarted.
    for (const { task, epoch } of found) this.#deps.queues.unclaim(task, epoch);
  }

  #end(exchange: Exchange): void {
    this.#exchanges.delete(exchange.request);
    exchange.answer(exchange);
  }

  #reply({ request, outcomes, collecting }: Exchange): void {
    const found = collecting?.found ?? [];
    const { maxBodyBytes } = this.#deps.settings;
    const tasks = arrayOf(found);
    const body = `{"outcomes":[${outcomes.join(',')}],"tasks":${tasks},"max_body_bytes":${maxBodyBytes}}`;
    const claims = found.map(({ task, epoch }) => ({ task, epoch }));
    this.#deps.release([replyWith(request, body, claims)]);
  }

  #post(shard: number, message: PeerMessage): void {
    this.#deps.release([{ kind: 'peer', shard, message }]);
  }
}

/** @param claims are returned if the client has disconnected */
export function replyWith(request: number, body: string, claims: readonly TaskClaim[]): Effect {
  const reply = { kind: 'reply', request, status: 200, body } as const;
  return claims.length === 0 ? reply : { ...reply, claims };
}

function outcomeOf(task: string, answer: InternalAnswer): string {
  if ('error' in answer) return refusal(task, answer.error);
  const more = answer.body === '' ? '}' : `,${answer.body.slice(1)}`;
  return `{"task_id":"${task}","status":200${more}`;
}

function refusal(task: string | undefined, { status, message, code }: EngineError): string {
  return JSON.stringify({ task_id: task ?? null, status, error: message, code });
}

function textIn(item: unknown, member: string): string | undefined {
  const value = (item as Readonly<Record<string, unknown>> | null)?.[member];
  return typeof value === 'string' ? value : undefined;
}
