/** The cells of the cluster and the moves between them; both lists are empty without a cluster. */

import type { Cell, Cells, TenantMove } from '../../../schema/cell.js';
import { invalid } from '../../base/errors.js';
import { pageCursor, placeIn } from '../../core/page-cursor.js';
import type { FrontRoom } from '../../http/front-room.js';
import { jsonReply, type Operation, pageReply } from '../../http/operation.js';
import type { FrontMetricName } from '../../metrics/catalog.js';

/** Its methods reject with EngineError 503 while the lists cannot be read. */
export interface CellLists {
  cells(): Promise<Cell[]>;
  /** Newest first. @param asked.before the id of the last one of the page before */
  moves(asked: {
    readonly limit: number;
    readonly before: string | undefined;
    readonly isUnderWay: boolean;
  }): Promise<TenantMove[]>;
}

type CellMetric = Extract<
  FrontMetricName,
  'engine_requests_misdirected_total' | `engine_cluster_${string}`
>;
export type CellGauges = Readonly<Record<CellMetric, () => number>>;

const ORDER = 'moves.id';

/** @param lists undefined without a cluster */
export function openCells(own: string, lists: CellLists | undefined, gauges: CellGauges) {
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
