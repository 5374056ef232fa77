/** Statistics of the blocks of a sequence: what shards have counted, and what the newest instances are at. */

import { LRUCache } from 'lru-cache';
import type { Block } from '../../../schema/blocks.js';
import {
  RUNS_LOOKED_AT_MAX,
  type SequenceSteps,
  type SlowestRuns,
  type SlowRun,
  STEP_ROWS_MAX,
} from '../../../schema/statistics.js';
import { invalid } from '../../../src/base/errors.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { compilePlan } from '../../../src/core/plan.js';
import { rowOf, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { Conditions, IS_PRESENT, type Query } from '../../../src/db/reads/query.js';
import { type FrontDeps, jsonReply, type Operation } from '../../../src/http/operation.js';
import { SEQUENCE_LOOKUPS, type SequenceWireRow } from '../../catalog/front/sequence-reads.js';
import { type OpenNode, type Shape, StepLines, shapeOf } from '../core/steps.js';
import { keptSince } from './window.js';

const CHEAPER = 'ask for a later since';

interface Version extends Pick<SequenceWireRow, 'id' | 'tenant_id' | 'namespace' | 'name'> {
  readonly shape: Shape;
}

/** Of all versions kept: some 10 MB. */
const KEPT_NODES_MAX = 100_000;

/** Statistics of versions, whose shapes are kept: a definition of 200 blocks takes milliseconds to compile. */
export function stepOperations() {
  const shapes = new LRUCache<string, Shape>({
    maxSize: KEPT_NODES_MAX,
    sizeCalculation: ({ nodes }) => nodes.length,
  });

  async function versionNamed({ reads }: FrontDeps, id: string, tenant: string): Promise<Version> {
    const row = await rowOf(reads, SEQUENCE_LOOKUPS.brief, 'sequence', id, tenant);
    // A version is immutable; another one may take the id of a deleted one.
    const key = `${row.id} ${row.created_at}`;
    const kept = shapes.get(key);
    if (kept !== undefined) return { ...row, shape: kept };
    const { definition } = await rowOf(reads, SEQUENCE_LOOKUPS.byId, 'sequence', id, tenant);
    const { blocks } = JSON.parse(definition) as { readonly blocks: readonly Block[] };
    // Nothing runs, so that outputs are not checked.
    const compiled = compilePlan({ id: row.id, blocks }, () => () => undefined);
    if (!compiled.ok) throw new Error(`stored sequence ${row.id} does not compile`);
    const shape = shapeOf(compiled.plan);
    shapes.set(key, shape);
    return { ...row, shape };
  }

  const steps: Operation<'sequences.steps'> = async (deps, call) => {
    const version = await versionNamed(deps, call.params.id, call.tenant);
    const since = keptSince(call.query.since, deps.now(), STEPS_MS);
    const lines = new StepLines();
    let found = 0;
    const take = ({ blocks }: { readonly blocks: string }) => {
      found += 1;
      if (found <= STEP_ROWS_MAX) lines.add(blocks);
    };
    const counts = stepsQuery(version, since, call.query.all_versions);
    const [open] = await Promise.all([
      deps.reads.rowsOf<OpenNode & LookedAt>(openNodesQuery(version.id), TRY_LATER),
      deps.reads.each(counts, CHEAPER, take),
    ]);
    const answer: SequenceSteps = {
      since: isoTime(since),
      steps: lines.statistics(version.shape, open),
      complete: found <= STEP_ROWS_MAX,
      here_complete: (open[0]?.looked_at ?? 0) <= RUNS_LOOKED_AT_MAX,
    };
    return jsonReply(JSON.stringify(answer));
  };

  const slowest: Operation<'instances.slowest'> = async (deps, { query, tenant }) => {
    const { sequence_id, block, limit } = query;
    const { id, shape } = await versionNamed(deps, sequence_id, tenant);
    if (block !== undefined && !shape.indexOf.has(block)) {
      throw invalid(`block: the version has no block ${block}`);
    }
    const nodes = shape.nodes.flatMap((node, index) => (node.id === block ? [index] : []));
    const asked = slowestQuery(id, block === undefined ? undefined : nodes, limit, deps.now());
    const rows = await deps.reads.rowsOf<SlowRun & LookedAt>(asked, TRY_LATER);
    const answer: SlowestRuns = {
      runs: rows.map(({ looked_at: _, ...run }) => run),
      complete: (rows[0]?.looked_at ?? 0) <= RUNS_LOOKED_AT_MAX,
    };
    return jsonReply(JSON.stringify(answer));
  };

  return { 'sequences.steps': steps, 'instances.slowest': slowest };
}

interface LookedAt {
  readonly looked_at: number;
}

const STEPS_MS = 5 * 60_000;

/** Newest first, one more than is counted. */
export function stepsQuery(
  { id, tenant_id, namespace, name }: Omit<Version, 'shape'>,
  since: UnixMs,
  isOfAll: boolean,
): Query {
  const conditions = new Conditions();
  const tenant = conditions.param(tenant_id);
  conditions.add(`tenant_id = ${tenant}::text`);
  if (isOfAll) {
    const named = `name = ${conditions.param(name)}::text`;
    const placed = `namespace = ${conditions.param(namespace)}::text`;
    conditions.add(
      'sequence_id = any(array(select id from sequences ' +
        `where tenant_id = ${tenant}::text and ${placed} and ${named}))`,
    );
  } else conditions.add(`sequence_id = ${conditions.param(id)}::uuid`);
  conditions.add(`at >= ${conditions.param(isoTime(since))}::timestamptz`);
  return conditions.query(
    `select blocks from step_activity ${conditions.where} order by at desc limit ${STEP_ROWS_MAX + 1}`,
  );
}

const NEWEST =
  `from instances i where i.sequence_id = $1::uuid and ${IS_PRESENT} ` +
  `order by i.created_at desc, i.id desc limit ${RUNS_LOOKED_AT_MAX + 1}`;
const HAS_ENDED = "state in ('completed', 'failed', 'cancelled')";

/** The open nodes of the newest instances that have not ended. */
export function openNodesQuery(sequence: string): Query {
  const text =
    `with newest as materialized (select i.state, i.execution ${NEWEST}), ` +
    `open as (select execution from (select * from newest limit ${RUNS_LOOKED_AT_MAX}) n where not ${HAS_ENDED}) ` +
    'select (select count(*)::integer from newest) as looked_at, g.* from (values (1)) one left join (' +
    "select k::integer as node, count(*)::integer as count from open, json_object_keys(execution -> 'o') k " +
    'group by k) g on true';
  return { text, values: [sequence] };
}

/** @param nodes of one block; undefined: the durations of the instances */
export function slowestQuery(
  sequence: string,
  nodes: readonly number[] | undefined,
  limit: number,
  now: UnixMs,
): Query {
  const values: unknown[] = [sequence, isoTime(now), limit];
  if (nodes !== undefined) values.push(nodes.map(String));
  const ms = (from: string, to: string) => `extract(epoch from ${to} - ${from}) * 1000`;
  const at = '$2::timestamptz';
  const isAtBlock = nodes !== undefined;
  const measured = isAtBlock
    ? "select case when o is not null then extract(epoch from $2::timestamptz) * 1000 - (execution ->> 't')::bigint " +
      "- (o ->> 'b')::bigint else (d ->> 2)::bigint end as ms, o is not null and not " +
      `${HAS_ENDED} as is_open from (select n.execution -> 'o' -> node as o, n.execution -> 'd' -> node as d ` +
      'from unnest($4::text[]) node) e ' +
      "where o is not null or d ->> 0 in ('0', '1') order by 1 desc limit 1"
    : `select ${ms('created_at', `case when ${HAS_ENDED} then updated_at else ${at} end`)} as ms, not ${HAS_ENDED} as is_open`;
  const text =
    `with newest as materialized (select i.id, i.state, i.created_at, i.updated_at, i.execution ${NEWEST}) ` +
    'select (select count(*)::integer from newest) as looked_at, n.id as instance_id, n.state, n.created_at, ' +
    'greatest(m.ms, 0)::double precision as duration_ms, m.is_open ' +
    `from (select * from newest limit ${RUNS_LOOKED_AT_MAX}) n cross join lateral (${measured}) m ` +
    'order by m.ms desc, n.id desc limit $3::bigint';
  return { text, values };
}
