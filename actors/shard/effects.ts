/**
 * What a committed unit sets free: answers, messages to peers, calls of handlers, timers, counts. Each is one
 * row of `#perform`, which hands it to the part that does it.
 */

import type { NamedCounterName } from '../../src/metrics/catalog.js';
import { OTHER } from '../../src/metrics/named.js';
import { INTERNAL } from '../runtime/commit.js';
import type { PeerMessage, Reply } from '../runtime/protocol.js';
import type { DueTimer } from '../runtime/rows.js';
import type { Effect } from '../runtime/turn.js';
import type { ShardDeps, ShardParts } from './parts.js';

/** What effects ask of the turn. */
export interface EffectTurn {
  /** Does the work in a turn, before requests. */
  readonly enqueue: (work: () => void) => void;
  /** The instance goes on in a turn to come. */
  readonly runSoon: (timer: DueTimer) => void;
  /** A message of this shard to itself. */
  readonly receive: (message: PeerMessage) => void;
  /** No handler is called any more. */
  readonly isDraining: () => boolean;
}

export class Effects {
  readonly #deps: ShardDeps;
  readonly #parts: ShardParts;
  readonly #turn: EffectTurn;

  constructor(deps: ShardDeps, parts: ShardParts, turn: EffectTurn) {
    this.#deps = deps;
    this.#parts = parts;
    this.#turn = turn;
  }

  /** One that cannot be performed holds up none of the others. */
  release(effects: readonly Effect[]): void {
    for (const effect of effects) {
      try {
        this.#perform(effect);
      } catch (error) {
        this.#deps.log.error({ err: error, effect: effect.kind }, 'defect');
        if (effect.kind === 'reply' || effect.kind === 'error') {
          this.#parts.out.reply({ request: effect.request, error: INTERNAL.toData() });
        }
      }
    }
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'reply':
      case 'error':
        if (effect.request < 0) this.#parts.ownRequests.answered(effect.request, effect);
        else this.#parts.out.reply(replyOf(effect));
        return;
      case 'peer':
        if (effect.shard !== this.#deps.settings.shard)
          this.#parts.out.hint(effect.shard, effect.message);
        else this.#turn.enqueue(() => this.#turn.receive(effect.message));
        return;
      case 'perform':
        if (this.#turn.isDraining() || this.#parts.commits.held.has(effect.step.tenant)) return;
        this.#parts.pool.begin(effect.instance, effect.step);
        return;
      case 'abort':
        this.#parts.pool.abort(effect.instance, effect.step);
        return;
      case 'timer':
        this.#parts.timers.committed(effect.at, this.#timerOf(effect.instance, effect.rank));
        return;
      case 'reap':
        this.#parts.timers.push(effect.at, {
          kind: 'reap',
          instance: effect.instance,
          task: effect.task,
        });
        return;
      case 'continue':
        this.#turn.runSoon(this.#timerOf(effect.instance, effect.rank));
        return;
      case 'changed':
        this.#parts.changes.count(effect);
        return;
      case 'audited':
        this.#parts.feed.watchers.changed(effect.tenant);
        return;
      case 'child.find':
        this.#parts.kin.find(effect);
        return;
      case 'child.look':
        this.#parts.kin.look(effect.instance, effect.child, effect.step);
        return;
      case 'kin.unheard':
        this.#parts.kin.unheard(effect.note);
        return;
      case 'release.ended':
        this.#parts.routing.ended(effect.release);
        return;
      case 'webhook':
        this.#parts.webhooks.added(effect.row);
        return;
      case 'task.opened':
        this.#parts.tasks.remember(effect.task, effect.instance);
        return;
      case 'completed':
        this.#countEnd('engine_sequence_instances_completed_total', effect.sequence);
        return;
      case 'failed':
        this.#countEnd('engine_sequence_instances_failed_total', effect.sequence);
        this.#parts.writeLine(effect);
        return;
      case 'counted':
        this.#parts.activity.count(effect.tenant, effect.change, effect.durationMs);
        return;
      case 'log':
        this.#parts.writeLine(effect);
        return;
      case 'count':
        this.#parts.meter.count(effect.counter, effect.by);
        return;
    }
  }

  /** Under no name when the plan has left memory meanwhile: nothing is read for a count. */
  #countEnd(counter: NamedCounterName, sequence: string): void {
    const { meter, plans } = this.#parts;
    meter.countNamed(counter, plans.get(sequence)?.name ?? OTHER);
  }

  /** What is committed of one that is in memory. */
  #timerOf(instance: string, rank: number): DueTimer {
    return { instance, rank, tenant: this.#parts.instances.tenantOf(instance) };
  }
}

/** Most replies have none of the other members, and then not even undefined ones: every one is cloned. */
function replyOf(effect: Extract<Effect, { kind: 'reply' | 'error' }>): Reply {
  const { request } = effect;
  if (effect.kind === 'error') return { request, error: effect.error.toData() };
  const { status, body, claims, fires, known } = effect;
  if (fires) return { request, status, body, fires };
  if (known !== undefined) return { request, status, body, known };
  return claims === undefined ? { request, status, body } : { request, status, body, claims };
}
