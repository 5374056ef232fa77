/** Cron schedules as JSON text. Reads only; their changes belong to the schedules. */

import type { CronSchedule } from '../../../schema/cron.js';
import { Conditions, type PageBounds, type Query } from './query.js';
import type { Page, Reader } from './reader.js';

type ScheduleWireRow = Omit<CronSchedule, 'metadata'> & {
  /** As JSON text. */
  readonly metadata: string;
};

const COLUMNS =
  'id, tenant_id, namespace, sequence_id, cron_expr, timezone, enabled, metadata, overlap_policy, ' +
  'skipped_fires, last_skipped_at, last_triggered_at, next_fire_at, last_error, created_at, updated_at';

export const CRON_SQL = {
  get: `select ${COLUMNS} from cron_schedules where id = $1::uuid`,
} as const;

export class CronReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** Undefined when the tenant ('' is any) has none of that id. */
  async get(id: string, tenant: string): Promise<CronSchedule | undefined> {
    const [row] = await this.#reader.rows<ScheduleWireRow>({
      name: 'reads_cron_get',
      text: CRON_SQL.get,
      values: [id],
      cheaper: 'try again later',
    });
    return row !== undefined && (tenant === '' || row.tenant_id === tenant)
      ? recordOf(row)
      : undefined;
  }

  /** Oldest first, of all tenants without one (docs/cron.md). */
  list(tenant: string | undefined, bounds: PageBounds): Promise<Page> {
    return this.#reader.page<ScheduleWireRow>({
      query: scheduleListQuery(tenant, bounds),
      toText: (row) => JSON.stringify(recordOf(row)),
      cheaper: 'name the tenant, or ask for a smaller offset and limit',
    });
  }
}

function recordOf({ metadata, ...row }: ScheduleWireRow): CronSchedule {
  return { ...row, metadata: JSON.parse(metadata) as CronSchedule['metadata'] };
}

export function scheduleListQuery(tenant: string | undefined, bounds: PageBounds): Query {
  const conditions = new Conditions();
  if (tenant) conditions.add(`tenant_id = ${conditions.param(tenant)}::text`);
  return conditions.query(
    `select ${COLUMNS} from cron_schedules ${conditions.where} ` +
      `order by created_at, id ${conditions.page(bounds)}`,
  );
}
