/** The cells of the cluster, and the moves between them, as its directory has them. */

import type { Cells, TenantMove } from '../../schema/cell.js';
import { invalid } from '../base/errors.js';
import { pageCursor, placeIn } from '../core/page-cursor.js';
import type { FrontRoom } from '../http/front-room.js';
import { jsonReply, type Operation, pageReply } from '../http/operation.js';
import type { Membership } from './membership.js';
import { cellsOf } from './overview.js';

const ORDER = 'moves.id';

/** @param membership undefined: there is no cluster, and so no cells to list */
export function openCells(own: string, membership: Membership | undefined) {
  const list: Operation<'cells.list'> = async () => {
    const cells =
      membership === undefined ? [] : await membership.asked((directory) => cellsOf(directory));
    const found: Cells = { cluster: membership !== undefined, own, cells };
    return jsonReply(JSON.stringify(found));
  };
  const moves: Operation<'cells.moves'> = async (_, call) => {
    const { cursor, limit, under_way: isUnderWay = false } = call.query;
    const place = cursor === undefined ? [] : placeIn(ORDER, ['uuid'], cursor);
    if (place === undefined) {
      throw invalid('cursor is not one that an earlier page of this list gave');
    }
    const before = place[0] as string | undefined;
    const found: TenantMove[] =
      (await membership?.asked((directory) => directory.moves({ limit, before, isUnderWay }))) ??
      [];
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
  return {
    operations: { 'cells.list': list, 'cells.moves': moves },
    gauges: gaugesOf(membership),
  } satisfies FrontRoom;
}

function gaugesOf(membership: Membership | undefined) {
  const residence = membership?.residence;
  return {
    engine_requests_misdirected_total: () => residence?.refused ?? 0,
    engine_cluster_directory_up: () => (membership === undefined || membership.isUp ? 1 : 0),
    engine_cluster_tenants: () => residence?.size ?? 0,
    engine_cluster_held_tenants: () => residence?.heldCount ?? 0,
    engine_cluster_held_seconds: () => (residence?.heldMs ?? 0) / 1_000,
    engine_cluster_split_tenants: () => membership?.splitCount ?? 0,
  };
}
