/**
 * The outbox of webhooks and the log of their deliveries, as JSON text. Reads only.
 *
 * A delivery is told by its last attempt; the others are looked up by the delivery's id, one delivery
 * after the other in the order of the list.
 */

import type { DeliveriesQuery } from '../../../schema/webhook.js';
import { Conditions, type Query } from './query.js';
import type { Reader } from './reader.js';

interface OutboxRow {
  readonly id: string;
  readonly url: string;
  readonly event_type: string;
  readonly instance_id: string;
  /** JSON, as it is sent. */
  readonly body: string;
  readonly attempts: number;
  readonly last_error: string | null;
  readonly delivery_id: string | null;
  readonly status: string;
  readonly next_attempt_at: string | null;
  readonly claimed_at: string | null;
  readonly created_at: string;
}

const OUTBOX_COLUMNS =
  'id, url, event_type, instance_id, body, attempts, last_error, delivery_id, status, ' +
  'next_attempt_at, claimed_at, created_at';

export const WEBHOOK_SQL = {
  webhook: `select ${OUTBOX_COLUMNS} from webhook_outbox where id = $1::uuid`,
  attempts:
    'select id, delivery_id, url, event_type, instance_id, attempt_number, attempted_at, ' +
    'duration_ms, success, status_code, error_class, error_excerpt, signed ' +
    'from webhook_deliveries where delivery_id = $1::uuid order by attempt_number',
} as const;

const CHEAPER = 'ask for a smaller limit, or for fewer conditions';
const CHEAPER_LOOKUP = 'try again later';

export class WebhookReads {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** `OutboxEntry` records, oldest first; fewer when they fill an answer. */
  async outbox(limit: number): Promise<string> {
    const page = await this.#reader.page<OutboxRow>({
      query: outboxQuery(limit),
      toText: outboxText,
      cheaper: CHEAPER,
    });
    return page.text;
  }

  /** `RedeliverPreview`; undefined when there is no such webhook. @param isSigned what is sent now */
  async preview(id: string, isSigned: boolean): Promise<string | undefined> {
    const [row] = await this.#reader.rows<OutboxRow>({
      name: 'read_webhook',
      text: WEBHOOK_SQL.webhook,
      values: [id],
      cheaper: CHEAPER_LOOKUP,
    });
    if (row === undefined) return undefined;
    return JSON.stringify({
      url: row.url,
      event_type: row.event_type,
      payload_bytes: Buffer.byteLength(row.body),
      will_be_signed: isSigned,
      previous_delivery_id: row.delivery_id ?? undefined,
      previous_attempts: row.attempts,
      last_error: row.last_error,
    });
  }

  /** `DeliverySummary` records, newest first; fewer when they fill an answer. */
  async deliveries(filter: DeliveriesQuery): Promise<string> {
    const page = await this.#reader.page<object>({
      query: deliveriesQuery(filter),
      toText: (row) => JSON.stringify(row),
      cheaper: CHEAPER,
    });
    return page.text;
  }

  /** `DeliveryAttempt` records of one delivery, oldest first; undefined when there is none. */
  async attempts(deliveryId: string): Promise<string | undefined> {
    const rows = await this.#reader.rows<Record<string, unknown>>({
      name: 'read_webhook_attempts',
      text: WEBHOOK_SQL.attempts,
      values: [deliveryId],
      cheaper: CHEAPER_LOOKUP,
    });
    return rows.length === 0 ? undefined : `[${rows.map(withoutNulls).join(',')}]`;
  }
}

export function outboxQuery(limit: number): Query {
  const conditions = new Conditions();
  return conditions.query(
    `select ${OUTBOX_COLUMNS} from webhook_outbox order by created_at, id ` +
      `limit ${conditions.param(limit)}::bigint`,
  );
}

/** By their last attempts. `offset 0` keeps the look-ups of the others from becoming a join. */
export function deliveriesQuery(filter: DeliveriesQuery): Query {
  const conditions = new Conditions();
  const equal = (column: string, value: unknown, type: string) => {
    if (value !== undefined && value !== null) {
      conditions.add(`d.${column} = ${conditions.param(value)}::${type}`);
    }
  };
  equal('url', filter.url, 'text');
  equal('event_type', filter.event_type, 'text');
  equal('success', filter.delivered, 'boolean');
  equal('error_class', filter.error_class, 'text');
  conditions.add(
    'not exists (select 1 from webhook_deliveries l where l.delivery_id = d.delivery_id ' +
      'and l.attempt_number > d.attempt_number offset 0)',
  );
  return conditions.query(
    'select d.delivery_id, d.url, d.event_type, d.instance_id, d.attempt_number as attempts, ' +
      'd.success as delivered, (select f.attempted_at from webhook_deliveries f ' +
      'where f.delivery_id = d.delivery_id order by f.attempt_number limit 1) ' +
      'as first_attempted_at, d.attempted_at as last_attempted_at, d.status_code, d.error_class ' +
      `from webhook_deliveries d ${conditions.where} ` +
      `order by d.attempted_at desc, d.id desc limit ${conditions.param(filter.limit)}::bigint`,
  );
}

/** The body is JSON that the engine wrote, and is spliced in as it is. */
function outboxText({ body, last_error, ...row }: OutboxRow): string {
  const facts = withoutNulls({ ...row, last_error });
  return `${facts.slice(0, -1)},"payload":${body}}`;
}

function withoutNulls(row: object): string {
  return JSON.stringify(row, (_name, value: unknown) => value ?? undefined);
}
