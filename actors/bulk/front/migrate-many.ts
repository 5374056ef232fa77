/**
 * Migrates many instances of one version: the front finds the matches, and each instance migrates or reports a refusal,
 * which does not stop others. One call processes a bounded number of instances for a bounded time and returns the
 * position of the next call. A call can be repeated safely.
 */

import {
  type InstancesMigrated,
  MIGRATE_MANY_LIMIT_DEFAULT,
  type MigratedInstance,
  type MigrateInstances,
  type MigrationFinding,
  type MigrationVerdict,
} from '../../../schema/continuity.js';
import type { Clock } from '../../../src/base/clock.js';
import { EngineError, invalid, notFound } from '../../../src/base/errors.js';
import { checkTenant } from '../../../src/base/tenancy.js';
import type { MigrationRefusal } from '../../../src/core/migration-findings.js';
import { rowOf } from '../../../src/db/reads/lookup.js';
import { type FrontDeps, jsonReply, type Operation } from '../../../src/http/operation.js';
import { SEQUENCE_LOOKUPS } from '../../catalog/front/sequence-reads.js';
import { candidates, placeBehind } from '../../instance/front/instance-reads.js';
import type { Shards } from '../../runtime/shards.js';

/** Concurrent migrations; their replays share two threads with all other heavy work. */
const AT_ONCE = 4;
/** Clients and proxies wait for about half a minute. */
const CALL_MS_MAX = 15_000;
const EXAMPLES_MAX = 5;

export function migrationOfMany(
  client: Pick<Shards, 'ask' | 'shardOf'>,
  clock: Pick<Clock, 'monotonic'>,
): Operation<'sequences.migrateInstances'> {
  return async (deps, { body, params, tenant, action }) => {
    const { byId } = SEQUENCE_LOOKUPS;
    const source = await rowOf(deps.reads, byId, 'sequence', params.id, tenant);
    const { tenant_id } = source;
    const target = await targetOf(deps, source, body);
    const filter = filterOf(source, body.filter ?? {});
    const isDryRun = body.dry_run ?? false;
    const limit = body.limit ?? MIGRATE_MANY_LIMIT_DEFAULT;
    const open = { ...filter, is_open: true as const };
    const { found, next } = await candidates(deps.reads, open, limit, body.cursor);
    const tally = new Tally(isDryRun);
    const until = clock.monotonic() + CALL_MS_MAX;
    const approved = body.approved ?? false;
    const asked = JSON.stringify({ sequence_id: target, approved, dry_run: isDryRun });
    let looked = 0;
    while (looked < found.length && clock.monotonic() < until) {
      const some = found.slice(looked, looked + AT_ONCE);
      await Promise.all(
        some.map(async ({ id }) => {
          const shard = client.shardOf(id);
          const answer = client.ask(shard, 'migrations.migrate', tenant_id, id, asked, { action });
          await answer.then(
            (reply) => tally.answered(id, JSON.parse(reply.body) as MigratedInstance),
            (error: unknown) => tally.refused(id, error),
          );
        }),
      );
      looked += some.length;
    }
    const last = found[looked - 1];
    const isAll = looked === found.length;
    const place = isAll || last === undefined ? next : placeBehind(last);
    return jsonReply(JSON.stringify(tally.result(place)));
  };
}

/** The target's id. @throws EngineError 404, or 400 when it is of another sequence */
async function targetOf(
  { reads }: FrontDeps,
  source: { readonly tenant_id: string; readonly namespace: string; readonly name: string },
  { version, sequence_id, to_sequence_id, target_sequence_id }: MigrateInstances,
): Promise<string> {
  const { tenant_id, namespace, name } = source;
  const id = sequence_id ?? to_sequence_id ?? target_sequence_id;
  if (id == null) {
    const row = await SEQUENCE_LOOKUPS.version.row(reads, tenant_id, namespace, name, version);
    if (row === undefined) throw notFound(`version ${version} of sequence ${name}`);
    return row.id;
  }
  const row = await rowOf(reads, SEQUENCE_LOOKUPS.byId, 'sequence', id, tenant_id);
  if (row.namespace !== namespace || row.name !== name) {
    throw invalid(`sequence ${id} has another namespace or name than that of the instances`);
  }
  if (version != null && row.version !== version) {
    throw notFound(`version ${version} of sequence ${id}`);
  }
  return id;
}

/** Restricts the filter to the version in the path. */
function filterOf(
  { id, tenant_id }: { readonly id: string; readonly tenant_id: string },
  { states, ...filter }: NonNullable<MigrateInstances['filter']>,
) {
  if (filter.tenant_id != null) checkTenant(tenant_id, filter.tenant_id, 'filter.');
  if (filter.sequence_id != null && filter.sequence_id !== id) {
    throw invalid('filter.sequence_id is not the sequence of the path');
  }
  return { ...filter, tenant_id, sequence_id: id, state: states };
}

type Finding = InstancesMigrated['findings'][number];

const countOf = (verdict: MigrationVerdict) => (verdict === 'pin' ? 'pinned' : verdict);

class Tally {
  readonly #isDryRun: boolean;
  readonly #counts = {
    automatic: 0,
    migrated: 0,
    approval_required: 0,
    pinned: 0,
    incompatible: 0,
    failed: 0,
  };
  readonly #findings = new Map<string, Finding>();
  readonly #migrations: InstancesMigrated['migrations'] = [];
  #count = 0;

  constructor(isDryRun: boolean) {
    this.#isDryRun = isDryRun;
  }

  answered(id: string, { verdict, migrated, findings, migration_id }: MigratedInstance): void {
    this.#count += 1;
    this.#counts[countOf(verdict)] += 1;
    if (migrated) this.#counts.migrated += 1;
    if (migration_id !== null) this.#migrations.push({ instance_id: id, migration_id });
    this.#addFindings(id, findings);
  }

  /** @throws the error if it is not a refusal */
  refused(id: string, error: unknown): void {
    if (!(error instanceof EngineError)) throw error;
    this.#count += 1;
    const { verdict, findings } = (error.members ?? {}) as Partial<MigrationRefusal>;
    this.#counts[verdict === undefined ? 'failed' : countOf(verdict)] += 1;
    const unexpected = { code: error.code, summary: error.message, remedy: 'ask again' };
    this.#addFindings(id, findings ?? [unexpected]);
  }

  /** @param place after the last processed instance; undefined at the end */
  result(place: string | undefined): InstancesMigrated {
    return {
      count: this.#count,
      ...this.#counts,
      findings: [...this.#findings.values()].sort((a, b) => b.count - a.count),
      migrations: this.#migrations,
      done: place === undefined,
      next_cursor: place ?? null,
      dry_run: this.#isDryRun,
    };
  }

  #addFindings(
    id: string,
    findings: readonly Pick<MigrationFinding, 'code' | 'summary' | 'remedy'>[],
  ): void {
    const codes = new Set<string>();
    for (const { code, summary, remedy } of findings) {
      if (codes.has(code)) continue;
      codes.add(code);
      const first: Finding = { code, count: 0, summary, remedy, example_ids: [] };
      const finding = this.#findings.get(code) ?? first;
      finding.count += 1;
      if (finding.example_ids.length < EXAMPLES_MAX) finding.example_ids.push(id);
      this.#findings.set(code, finding);
    }
  }
}
