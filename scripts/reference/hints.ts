/**
 * What states the fact of each message between actors, which may be lost at any point (docs/architecture.md). The type
 * asks for every kind of message between shards.
 */

import type { PeerMessage } from '../../actors/runtime/protocol.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

type Kind = PeerMessage['kind'];

interface Hint {
  /** Sender and receiver. */
  readonly way: string;
  /** What states the fact after the message is lost. */
  readonly row: string;
  readonly found: string;
  /** Why a second delivery is harmless. */
  readonly twice: string;
}

const hint = (way: string, row: string, found: string, twice: string): Hint => {
  return { way, row, found, twice };
};

const UNANSWERED = 'none: the caller has no answer yet';
const NOT_YET = 'none: nothing has happened yet';
const SILENCE = 'a silent worker loses its claim after 60 s';
const RETOLD = 'sent again every second until the shard has answered, and when it was replaced';
const ANSWERED = hint(
  'shard → releases',
  UNANSWERED,
  'the question is sent again, and answered again',
  'versions only grow, and a shard keeps what it has settled',
);
const PERMITS =
  'every 5 s, when a peer was replaced, and at the start the keys with work are found, and their rows read ' +
  '(`LOAD_SQL.permitKeysWithWork`)';
const STARTS =
  'the rows of the key are read every 5 s, when a peer was replaced, and at the start (`LOAD_SQL.startWaiters`)';
const EVENTS =
  'the keys with waits and events are read every 30 s, when a peer was replaced, and at the start ' +
  '(`LOAD_SQL.dueEventKeys`)';
const RATE_ASKED = hint(
  'instance ↔ limit',
  'the step is open as `asking`, with a time in `timers.fire_at`',
  'the try asks again after 2 s',
  'only a try that asks takes an answer; an extra grant makes the window stricter',
);

/** By kind; a kind with the row of another one names that. */
const MESSAGES: Readonly<Record<Kind, Hint | Kind>> = {
  create: hint(
    'shard → shard',
    UNANSWERED,
    'the caller asks again with its key',
    'the id follows from the key',
  ),
  'create.ask': hint(
    'shard of a batch → shard of a key',
    UNANSWERED,
    'the caller gets 503 when a shard is lost, and asks again with its keys',
    'the id follows from the key',
  ),
  'create.answer': 'create.ask',
  'result.ask': hint(
    'creation → instance',
    UNANSWERED,
    'the caller gets 503 when a shard is lost, and asks again with its key',
    'a request is parked once, and answered once',
  ),
  collect: hint(
    'creation → key of collected creations',
    UNANSWERED,
    'the caller asks again with its key; due starts are scanned for every 30 s (`LOAD_SQL.dueStarts`)',
    '`instance_keys`; without a key, the id of the creation is remembered',
  ),
  'collect.answer': hint(
    'key of collected creations → schedule',
    '`instance_keys`',
    'the schedule asks again after 30 s',
    'only a request that waits takes an answer',
  ),
  request: hint(
    'shard → shard',
    UNANSWERED,
    'the caller gets 503 when a shard is lost, and asks again',
    'as for the request of the caller',
  ),
  wake: hint(
    'creation → instance',
    '`timers.fire_at`',
    'timers are read ahead, and overdue ones are scanned for (`LOAD_SQL.overdueTimers`)',
    'an instance with nothing due ignores it',
  ),
  'task.ready': hint(
    'instance → queue',
    '`worker_tasks.rank` from 0 on, and `claimed_at` null',
    'the window of a poll is read when it is created and when it runs low (`LOAD_SQL.readyTasks` and its siblings)',
    'the queue keys tasks by id; a claim of a task that is not pending, or of a paused instance, is refused',
  ),
  'task.gone': hint(
    'instance → queue',
    'the row of the task is no longer pending, or its instance is paused',
    'a claim is refused with epoch 0',
    'a task that is not there is ignored',
  ),
  claim: hint(
    'queue → instance',
    'none: the unit of the instance makes the claim',
    'the poll gets no task; the queue offers it again when the shard is replaced',
    'only a pending task is claimed, and each claim has its own epoch',
  ),
  claimed: hint(
    'instance → queue',
    '`worker_tasks.claim_epoch`, `worker_id`',
    SILENCE,
    'an answer for a poll that has ended gives the claim back',
  ),
  unclaim: hint('queue, front → instance', 'the undelivered claim', SILENCE, 'it names the epoch'),
  'secret.missing': hint(
    'queue → instance',
    'the claim of a task that was not delivered',
    `${SILENCE}; the next poll misses the secret again`,
    'it names the epoch',
  ),
  'exchange.results': hint(
    'shard of an exchange ↔ shard of its tasks',
    'the rows of each result; of the answer none: the caller has none yet',
    'the caller gets 503 when a shard is lost, and sends the results again',
    'a claim ends once: a repeated result is 409',
  ),
  'exchange.outcomes': 'exchange.results',
  'poll.ask': hint(
    'shard of an exchange → shard of a queue',
    UNANSWERED,
    'the caller gets 503 when a shard is lost; a queue forgets the polls of a shard that was replaced',
    'a poll is identified by its request',
  ),
  'poll.end': 'poll.ask',
  'polls.end': 'poll.ask',
  'poll.answer': hint(
    'shard of a queue → shard of an exchange',
    '`worker_tasks.claim_epoch`, `worker_id`',
    SILENCE,
    'tasks for a poll that has ended are given back',
  ),
  'permit.wanted': hint(
    'instance → key',
    '`permit_requests`',
    PERMITS,
    'requests are numbered; a known one changes nothing',
  ),
  'permit.granted': hint(
    'key → instance',
    '`permits`',
    'the same read: a holder that still waits gets the grant again',
    'the number of the request; a slot for one that is over is given back',
  ),
  'permit.left': hint(
    'instance → key',
    'the row of the instance in `permit_requests` is gone, or has a higher number',
    'the same read; a key that is full, and was read more than 5 s ago, is read again before somebody waits or is refused',
    'the number of the request',
  ),
  'permit.denied': hint(
    'key → instance',
    '`permit_requests.when_full`',
    'the same read: an arrival without a slot is cancelled, or makes the oldest holder end',
    'the number of the request; an instance that is being cancelled ignores it',
  ),
  'start.wanted': hint(
    'instance → throttle',
    '`start_requests`',
    STARTS,
    'a known instance changes nothing',
  ),
  'start.granted': hint(
    'throttle → instance',
    '`start_requests` still has the instance',
    'the same read: the instance gets another grant',
    'an instance that has started gives it back',
  ),
  'start.left': hint(
    'instance → throttle',
    '`start_requests` has no row',
    'a grant for it is given back',
    'an unknown instance changes nothing',
  ),
  'start.used': hint(
    'instance → throttle',
    '`start_grants.granted_at`, the latest time of use',
    'the throttle assumes that time',
    'a grant that is not open is ignored',
  ),
  'rate.asked': RATE_ASKED,
  'rate.granted': 'rate.asked',
  'rate.deferred': 'rate.asked',
  'rate.used': hint(
    'instance → limit',
    '`rate_grants.granted_at`, the latest time of use',
    'the limit assumes that time once it has passed',
    'a grant that is not open is ignored',
  ),
  'rate.changed': hint(
    'limit → instance',
    'the step is open as `limited` until its time',
    'the try asks again at that time',
    'only a deferred try takes it',
  ),
  'event.wanted': hint(
    'instance → event key',
    '`event_waits`',
    `${EVENTS}, and with every load of the key`,
    'a known wait changes nothing',
  ),
  'event.unwanted': hint(
    'instance → event key',
    'the row in `event_waits` is gone',
    'with every load of the key; an event that arrives earlier finds no wait, and is kept again',
    'a wait that is not there is ignored',
  ),
  'event.arrived': hint(
    'event key → instance',
    '`events.targets`',
    'the same read: a target that has not answered gets the event again',
    'the id of the wait, which ends with its event; `event_takes`',
  ),
  'event.cancels': hint(
    'event key → shards',
    '`event_cancels`',
    'orders without an outcome are read every 30 s, and at the start (`LOAD_SQL.pendingCancels`)',
    'reading has no effect on rows',
  ),
  'start.cancels': hint(
    'event key → shards',
    '`collected_cancels`',
    'before a start, every 30 s, and at the start of a shard (`LOAD_SQL.orderedStarts`)',
    'the unit that carries out an order removes its row',
  ),
  'event.cancel': hint(
    'shard → its instance',
    '`event_cancels`',
    'the same read',
    'the first outcome of an order stays, and a second cancel changes nothing',
  ),
  'event.taken': hint(
    'instance → event key',
    '`event_takes`',
    'the same read',
    'only the answer of a target counts',
  ),
  'sequence.block': hint(
    'catalog ↔ shards',
    'none: the deletion has not happened',
    'a blocked shard repeats its answer every 5 s, and gets the outcome of the deletion',
    'a second block changes nothing',
  ),
  'sequence.settled': 'sequence.block',
  'sequence.evict': hint(
    'catalog → shards',
    'the row is gone from `sequences`',
    'a load of the plan by its id finds nothing; schedules are read again after any deletion',
    'a plan that is not cached is ignored',
  ),
  'routes.read': hint(
    'releases → shards',
    '`releases.state` and `canary_percent`',
    `${RETOLD}; every shard reads the rows before its first creation, and after a new writer ` +
      '(`LOAD_SQL.routingReleases`)',
    'reading has no effect on rows',
  ),
  'routes.settled': ANSWERED,
  'names.forget': hint(
    'catalog → shards',
    '`sequences`',
    `${RETOLD}; a new shard has cached no names`,
    'a name that is not cached is ignored',
  ),
  'names.settled': { ...ANSWERED, way: 'shard → catalog' },
  'subscriptions.read': hint(
    'subscriptions → shards',
    '`webhook_subscriptions`',
    `${RETOLD}; every shard reads all rows before an instance can end, and after a new writer ` +
      '(`LOAD_SQL.allSubscriptions`)',
    'reading has no effect on rows',
  ),
  'subscriptions.settled': { ...ANSWERED, way: 'shard → subscriptions' },
  'rates.read': hint(
    'rate limits → shards',
    '`rate_limits`',
    `${RETOLD}; every shard reads all rows before its first step, and after a new writer ` +
      '(`LOAD_SQL.allRatePatterns`)',
    'reading has no effect on rows',
  ),
  'rates.settled': { ...ANSWERED, way: 'shard → rate limits' },
  'endpoints.read': hint(
    'worker endpoints → shards',
    '`worker_endpoints`',
    `${RETOLD}; every shard reads all rows at its start and after a new writer ` +
      '(`LOAD_SQL.allEndpoints`)',
    'reading has no effect on rows',
  ),
  'endpoints.settled': { ...ANSWERED, way: 'shard → worker endpoints' },
  'family.message': hint(
    'instance → its child or its parent',
    '`kin_notes`',
    '`LOAD_SQL.familyMessages` every 5 s, when a peer was replaced, after a new writer, and at the start',
    'the unit that takes a message deletes it by its id; only a block that waits for the child takes its end; a second ' +
      'pause, resume or cancel changes nothing',
  ),
  'release.ended': hint(
    'instance → releases',
    '`release_outcomes`',
    'canaries are judged every 10 s, and at the start (`LOAD_SQL.openReleases`)',
    'the gates are judged by the rows; a release that is not in canary is skipped',
  ),
  'continuity.order': hint(
    'execution service → instance',
    NOT_YET,
    'the caller gets 503 and reads the state',
    'the order names the expected state of the instance; the version of the execution admits one unit',
  ),
  'continuity.answer': hint(
    'instance → execution service',
    'the rows of the unit',
    'the caller reads them',
    'only a waiting order takes an answer',
  ),
  'continuity.ask': hint(
    'fenced instance → execution service',
    '`instances.fence` with its time in `timers.fire_at`',
    'read like any due timer; the answer is a fence with a later time, or none',
    'the service reads the rows',
  ),
};

const TIMER = hint(
  'timers → instance',
  '`timers.fire_at`',
  'as for `wake`',
  'an instance with nothing due ignores it',
);
const RECOVERY = '`LOAD_SQL.recover` at the start of a shard, and every load of the instance';

/** Timers, effects and hints that do not cross shards. */
const OTHERS: Readonly<Record<string, Hint>> = {
  'due timer': TIMER,
  '`continue`': hint(
    'instance → itself',
    '`timers.recover` or a due `timers.fire_at`; of a hook `Execution.j` in `instances.execution`',
    RECOVERY,
    'an instance with nothing due ignores it',
  ),
  'outcome of a step': hint(
    'handler → instance',
    '`timers.recover` with the step open in `instances.execution`',
    `${RECOVERY}; the step runs again with the same attempt and idempotency key`,
    'only a step that is open at that attempt takes an outcome',
  ),
  'outcome of a hook': hint(
    'handler → instance',
    '`timers.recover` with the hook in `instances.execution`',
    'as for a step, also after the end of the instance',
    'only an open hook takes an outcome',
  ),
  '`reap`': hint(
    'timers → instance',
    '`worker_tasks.heartbeat_at`',
    '`LOAD_SQL.claimedTasks` after the start of a shard, and every load of the instance',
    'the instance compares the heartbeat with the clock',
  ),
  '`fires` (of a reply)': hint(
    'event key → front',
    '`events.fires`',
    'read every 10 s, and at the start (`firingEvents`)',
    'the idempotency key of the instance contains the id of the event',
  ),
  '`webhook` (effect)': hint(
    'instance → webhooks of its shard',
    '`webhook_outbox.next_attempt_at`',
    '`LOAD_SQL.webhookUrls` and `dueWebhooks` at the start of a shard, and after a new writer',
    'webhooks are keyed by id; a receiver recognises a repeated delivery',
  ),
  'due schedule': hint(
    'timers → schedule',
    '`cron_schedules.next_fire_at`',
    'read ahead, and overdue ones are scanned for (`LOAD_SQL.dueSchedules`)',
    'the next fire time is later, and the id of the instance follows from the fire time',
  ),
  '`child.find` (effect)': hint(
    'instance → names and sequences of its shard',
    '`timers.recover` with the block open as `child` without an id',
    `${RECOVERY}; the child is requested again with the same id`,
    'only a block that waits for a child and has none makes one',
  ),
};

export function hintRegions(): Regions {
  const kinds = Object.keys(MESSAGES) as Kind[];
  const ofKinds = kinds.flatMap((kind) => {
    const row = MESSAGES[kind];
    if (typeof row === 'string') return [];
    const names = [kind, ...kinds.filter((other) => MESSAGES[other] === kind)];
    return [[names.map(code).join(', '), row] as const];
  });
  const rows = [...ofKinds, ...Object.entries(OTHERS)].map(([name, { way, row, found, twice }]) => [
    name,
    way,
    row,
    found,
    twice,
  ]);
  const heads = ['message', 'from → to', 'stated by', 'found again by', 'harmless twice because'];
  return { hints: table(heads, rows) };
}
