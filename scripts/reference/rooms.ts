/** The rooms of the house (docs/architecture.md): what each is for, and which others it may import, types included. */

import { table } from './markdown.js';
import type { Regions } from './regions.js';

export interface Room {
  /** A folder, or the file that is a room of its own. */
  readonly name: string;
  readonly isFor: string;
  /** All of them stand before it, so that no circle of imports leads through rooms. */
  readonly imports: readonly string[];
}

/** Those of the actors begin with `actors/`. */
const room = (name: string, isFor: string, imports: string): Room => ({
  name,
  isFor,
  imports: imports.split(' ').filter((other) => other !== ''),
});

const GROUND = 'src/base schema src/core';
/** What nearly every feature stands on. */
const FLOOR = `${GROUND} src/db src/http actors/runtime`;

const FEATURES =
  'actors/catalog actors/credential actors/event actors/webhook actors/writer actors/limits actors/release ' +
  'actors/trigger actors/instance actors/bulk actors/continuity actors/feed actors/queue actors/push ' +
  'actors/pending-start actors/schedule actors/activity actors/action';

/** From the ground up: what everybody may import, the wire, what is pure, and who puts all of it together. */
export const ROOMS: readonly Room[] = [
  room('src/base', 'errors, limits, clocks, the log, JSON text, quotas, small collections', ''),
  room('schema', 'the wire: routes, shapes, states', 'src/base'),
  room(
    'src/core',
    'what flows decide: plan, blocks, expressions, evaluator; pure',
    'src/base schema',
  ),
  room('src/handlers', 'calls to the outside', GROUND),
  room('src/metrics', 'what is counted, and traces', 'src/core'),
  room('src/db', 'connections, lease, batches, statements, migrations', `${GROUND} src/metrics`),
  room('src/http', 'servers, the pipeline of a request, keys', `${GROUND} src/metrics src/db`),
  room(
    'actors/runtime',
    'host and turn of actors, loading, messages',
    `${GROUND} src/metrics src/db src/http`,
  ),
  room('actors/catalog', 'sequences, plans, API keys, limits of tenants', FLOOR),
  room('actors/credential', 'what steps authenticate with', `${FLOOR} src/handlers`),
  room('actors/event', 'events, and waits for them', FLOOR),
  room('actors/webhook', 'the outbox, subscriptions, deliveries', `${FLOOR} src/handlers`),
  room('actors/writer', 'the lanes', 'src/base src/metrics src/db'),
  room(
    'actors/action',
    'what people and keys have changed',
    'schema src/base src/db src/http actors/runtime',
  ),
  room('src/cluster', 'cells: which tenants are served where', 'src/base schema src/db src/http'),
  room(
    'actors/limits',
    'concurrency keys, rate limits, limits of tenants',
    `${FLOOR} actors/catalog`,
  ),
  room('actors/release', 'routing between versions, gates, replays', `${FLOOR} actors/catalog`),
  room(
    'actors/instance',
    'instances, their tasks, outputs and notes',
    `${FLOOR} src/metrics actors/catalog actors/event actors/webhook actors/release`,
  ),
  room('actors/trigger', 'starts from outside', `${FLOOR} actors/event actors/instance`),
  room('actors/bulk', 'changes of many instances', `${FLOOR} actors/catalog actors/instance`),
  room(
    'actors/continuity',
    'executions, handoffs, migrations',
    `${FLOOR} actors/catalog actors/release actors/instance`,
  ),
  room(
    'actors/feed',
    'the change feed, and streams',
    'src/base schema src/db src/http actors/runtime actors/instance',
  ),
  room('actors/queue', 'tasks for workers', `${FLOOR} actors/credential actors/instance`),
  room(
    'actors/push',
    'tasks delivered to worker endpoints',
    `${FLOOR} src/handlers src/metrics actors/queue`,
  ),
  room(
    'actors/pending-start',
    'creations that sequences collect',
    `${FLOOR} actors/catalog actors/event actors/release actors/instance`,
  ),
  room(
    'actors/schedule',
    'what starts at times',
    `${FLOOR} actors/catalog actors/release actors/instance`,
  ),
  room(
    'actors/activity',
    'statistics',
    `${FLOOR} src/metrics actors/catalog actors/release actors/instance actors/queue`,
  ),
  room(
    'actors/shard',
    'a shard: all rooms of actors, and the threads',
    `${FLOOR} src/handlers src/metrics ${FEATURES}`,
  ),
  room(
    'src/server',
    'configuration, the embedded database, start and stop',
    `${GROUND} src/db src/http src/handlers src/metrics src/cluster ${FEATURES} actors/shard`,
  ),
  room('src/main.ts', 'the first file', 'src/server'),
];

/** The name of the room of a file of `src`, `actors` or `schema`. */
export function roomOf(file: string): string {
  const [top = '', second = ''] = file.split('/');
  return top === 'schema' ? top : `${top}/${second}`;
}

export function roomRegions(): Regions {
  const rows = ROOMS.map(({ name, isFor, imports }, at) => [
    `\`${name}\``,
    isFor,
    importsOf(imports, ROOMS.slice(0, at)),
  ]);
  return { rooms: table(['room', 'has', 'imports'], rows) };
}

/** What a room imports of those before it, in the fewest names. */
function importsOf(imports: readonly string[], earlier: readonly Room[]): string {
  const missing = earlier.map(({ name }) => name).filter((name) => !imports.includes(name));
  if (earlier.length === 0) return 'nothing';
  if (missing.length === 0) return 'all above';
  if (missing.length === 1) return `all above but ${named(missing)}`;
  const floor = FLOOR.split(' ');
  if (!floor.every((name) => imports.includes(name))) return named(imports);
  const others = imports.filter((name) => !floor.includes(name));
  return others.length === 0 ? 'the floor' : `the floor, ${named(others)}`;
}

const named = (rooms: readonly string[]) => rooms.map((name) => `\`${name}\``).join(', ');
