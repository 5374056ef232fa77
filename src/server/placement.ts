/**
 * Which tenants this engine serves: all of them or, in a cluster, those that `src/cluster` admits. That module is
 * loaded with ENGINE_CLUSTER_URL, and when rows of an earlier cluster show tenants that were being moved.
 */

import type { Cells } from '../../schema/cell.js';
import { invalid } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import { realClock } from '../base/real-clock.js';
import type { CellMoves, MovingParts } from '../cluster/cell-moves.js';
import type { MembershipOptions } from '../cluster/membership.js';
import type { ClusterRoom } from '../cluster/room.js';
import type { WriterReading } from '../cluster/writer-lag.js';
import { pageCursor, placeIn } from '../core/page-cursor.js';
import type { Reads } from '../db/reads.js';
import type { Store } from '../db/store.js';
import type { FrontRoom } from '../http/front-room.js';
import { jsonReply, type Operation, pageReply } from '../http/operation.js';
import type { Placement } from '../http/ports.js';

export interface PlacementRoom {
  /** Checked for every request. Undefined: all tenants are served here. */
  readonly placement: Placement | undefined;
  /** Its routes and gauges. */
  readonly front: ReturnType<typeof openCells>;
  /** Called once the database answers, also in a standby. @throws ConfigError with a remedy */
  join(signal: AbortSignal, address: string, writer: () => WriterReading): Promise<void>;
  /** Called by the owner before its shards load anything: suspends the tenants that are being moved. */
  begin(epoch: number, parts: MovingParts): Promise<void>;
  /** Called by the owner before it serves. */
  own(reads: Reads, store: Store): Promise<void>;
  /** Called when the owner serves: follows moves. */
  start(): void;
  stop(): Promise<void>;
}

/** @param url of the directory of the cluster; undefined without a cluster */
export async function openPlacement(
  url: string | undefined,
  options: Omit<MembershipOptions, 'url'>,
): Promise<PlacementRoom> {
  if (url === undefined) return new AllTenants(options.cell, options.log);
  const { ClusterRoom: Room } = await import('../cluster/room.js');
  const room = new Room({ ...options, url });
  const front = openCells(options.cell, room.lists, room.gauges);
  return Object.assign(room, { front });
}

const NO_CLUSTER = {
  engine_requests_misdirected_total: () => 0,
  engine_cluster_directory_up: () => 1,
  engine_cluster_tenants: () => 0,
  engine_cluster_held_tenants: () => 0,
  engine_cluster_held_seconds: () => 0,
  engine_cluster_split_tenants: () => 0,
};

class AllTenants implements PlacementRoom {
  readonly placement = undefined;
  readonly front: PlacementRoom['front'];
  readonly #log: Logger;
  #moves: CellMoves | undefined;

  constructor(schema: string, log: Logger) {
    this.front = openCells(schema, undefined, NO_CLUSTER);
    this.#log = log;
  }

  async join(): Promise<void> {}

  async begin(epoch: number, parts: MovingParts): Promise<void> {
    const { rowCount } = await parts.pool.query('select from tenant_moves limit 1');
    if (rowCount === 0) return;
    const { CellMoves } = await import('../cluster/cell-moves.js');
    const deps = { ...parts, clock: realClock, log: this.#log, placement: undefined };
    this.#moves = new CellMoves(deps);
    await this.#moves.begin(epoch);
  }

  async own(): Promise<void> {}

  start(): void {
    this.#moves?.start();
  }

  async stop(): Promise<void> {
    this.#moves?.stop();
  }
}

const ORDER = 'moves.id';

/** Routes and gauges of cells and moves. @param lists undefined without a cluster: both lists are empty */
function openCells(
  own: string,
  lists: ClusterRoom['lists'] | undefined,
  gauges: Readonly<Record<keyof ClusterRoom['gauges'], () => number>>,
) {
  const list: Operation<'cells.list'> = async () => {
    const found: Cells = { cluster: lists !== undefined, own, cells: (await lists?.cells()) ?? [] };
    return jsonReply(JSON.stringify(found));
  };
  const moves: Operation<'cells.moves'> = async (_, call) => {
    const { cursor, limit, under_way: isUnderWay = false } = call.query;
    const place = cursor === undefined ? [] : placeIn(ORDER, ['uuid'], cursor);
    if (place === undefined) {
      throw invalid('cursor is not one that an earlier page of this list gave');
    }
    const before = place[0] as string | undefined;
    const found = (await lists?.moves({ limit, before, isUnderWay })) ?? [];
    const last = found.at(-1);
    const page = {
      text: JSON.stringify(found),
      count: found.length,
      isCut: false,
      isWalked: false,
      cursor: last && pageCursor(ORDER, [last.id]),
    };
    return pageReply(call, { limit, offset: 0 }, page);
  };
  const operations = { 'cells.list': list, 'cells.moves': moves };
  return { operations, gauges } satisfies FrontRoom;
}
