/**
 * Validates a release by replaying ended runs on the offload threads. The release owner sets the state `validating`
 * before, and `ready`, `failed` or `draft` after the validation. It continues if the caller disconnects. Validations of
 * one tenant are serialized, and tenants take turns.
 */

import {
  type Divergence,
  type InconclusiveRun,
  type Release,
  SAMPLE_DEFAULT,
  SAMPLE_MAX,
  type ValidationReport,
} from '../../../schema/release.js';
import type { Clock, TimerHandle } from '../../../src/base/clock.js';
import { EngineError, shareTaken, unavailable } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import { type Offload, TooCostly } from '../../../src/base/offload.js';
import type { OffloadPool } from '../../../src/base/offload-pool.js';
import { FairSlots } from '../../../src/base/quota/fair-slots.js';
import {
  type FrontDeps,
  type FrontOperations,
  jsonReply,
  type Operation,
} from '../../../src/http/operation.js';
import { sequenceById } from '../../catalog/front/sequence-reads.js';
import type { Shards } from '../../runtime/shards.js';
import type { DefinitionPair } from '../core/diff.js';
import type { Verdict } from '../core/replay.js';
import type { RerunOptions } from '../core/rerun.js';
import { COMPILE_CANDIDATE, REPLAY_RUN } from '../jobs.js';
import type { Releases, ValidationEnd } from '../releases.js';
import { type SampledRun, sampledRuns, storedRun } from '../replay-reads.js';

export type ReleaseClient = Shards<() => Releases['operations']>;

export interface ValidationsDeps {
  readonly client: Pick<ReleaseClient, 'ask'>;
  readonly pool: Pick<OffloadPool, 'through'>;
  readonly unpoliciedRetry: RerunOptions['unpoliciedRetry'];
  readonly clock: Clock;
  readonly log: Logger;
}

interface Validation {
  readonly front: FrontDeps;
  readonly caller: string;
  readonly release: Release;
  readonly size: number;
}

const SHARD = 0;
/** Running and waiting validations, so that a caller waits for minutes at worst. */
export const VALIDATIONS_MAX = 8;
export const VALIDATIONS_PER_TENANT_MAX = 6;
/** The number of offload threads. */
const AT_ONCE_MAX = 2;
const AT_ONCE_PER_TENANT_MAX = 1;
/** Time for the replays of one validation; the remaining runs are inconclusive. */
export const REPLAYS_MS = 30_000;
/** JSON of one run; a larger run is inconclusive. */
export const RUN_BYTES_MAX = 32 * 1024 * 1024;
/** Divergences in the report; further ones are only counted. */
export const DIVERGENCES_MAX = 20;
/** Retry interval when the owner could not store the end of a validation. */
const END_AGAIN_MS = 1_000;

export class Validations {
  readonly #deps: ValidationsDeps;
  readonly #timers = new Set<TimerHandle>();
  readonly #places = new FairSlots([
    { activeMax: VALIDATIONS_MAX },
    { activeMax: VALIDATIONS_PER_TENANT_MAX },
  ]);
  readonly #turns = new FairSlots([
    { activeMax: AT_ONCE_MAX },
    { activeMax: AT_ONCE_PER_TENANT_MAX },
  ]);
  readonly #led = new Set<Promise<unknown>>();
  readonly #stopped = new AbortController();
  readonly #offload: Offload;

  constructor(deps: ValidationsDeps) {
    this.#deps = deps;
    this.#offload = deps.pool.through(this.#stopped.signal);
  }

  /** Cancels running validations: their releases become drafts. Idempotent. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    for (const timer of this.#timers) this.#deps.clock.clearTimeout(timer);
    this.#timers.clear();
    await Promise.allSettled(this.#led);
  }

  readonly #validate: Operation<'releases.validate'> = async (
    front,
    { tenant, params, body, action },
  ) => {
    const { skip, sample } = body;
    const begin = () =>
      this.#deps.client.ask(SHARD, 'releases.beginValidation', tenant, params.id, body, { action });
    if (skip === true) return begin();
    if (this.#stopped.signal.aborted) throw unavailable('ENG_STOPPING', 'the engine is stopping');
    const leave = this.#places.take([tenant]);
    if (leave === undefined) {
      throw this.#places.active >= VALIDATIONS_MAX
        ? unavailable('ENG_OVERLOADED', `${VALIDATIONS_MAX} releases are being validated`)
        : shareTaken(`${VALIDATIONS_PER_TENANT_MAX} releases of this tenant are being validated`);
    }
    try {
      const { release } = JSON.parse((await begin()).body) as { release: Release };
      const size = Math.min(Math.max(1, sample ?? SAMPLE_DEFAULT), SAMPLE_MAX);
      const led = this.#inTurn({ front, caller: tenant, release, size });
      this.#led.add(led);
      return jsonReply(JSON.stringify(await led.finally(() => this.#led.delete(led))));
    } finally {
      leave();
    }
  };

  readonly operations = { 'releases.validate': this.#validate } satisfies Partial<FrontOperations>;

  async #inTurn(validation: Validation): Promise<ValidationReport> {
    const { caller, release } = validation;
    const turn = await this.#turns.acquire([caller], this.#stopped.signal);
    try {
      const end = await this.#judge(validation).catch(async (error: unknown) => {
        const reason = error instanceof EngineError ? error.message : 'the replay could not run';
        // `#end` logs its own failure; the caller gets the original error.
        await this.#end(release, { outcome: 'draft', reason }).catch(() => undefined);
        throw error;
      });
      const { state } = await this.#end(release, end);
      const evidence = end.outcome === 'ready' ? end.evidence : evidenceOf([], []);
      return { ...evidence, release_state: state };
    } finally {
      if (turn.ok) turn.release();
    }
  }

  /** @throws EngineError 404 when a definition was deleted, 503 when runs cannot be read */
  async #judge({ front, caller, release, size }: Validation): Promise<ValidationEnd> {
    const { clock } = this.#deps;
    const definitions = await definitionsOf(front, release.tenant_id, release);
    const problem = await this.#offload.run(caller, COMPILE_CANDIDATE, definitions);
    if (problem !== undefined) {
      return { outcome: 'failed', reason: `the candidate cannot run: ${problem}` };
    }
    const { baseline_sequence_id: baseline, tenant_id: tenant } = release;
    const runs = await sampledRuns.rows(front.reads, baseline, tenant, size);
    const until = clock.monotonic() + REPLAYS_MS;
    const verdicts: Verdict[] = [];
    const unclear: InconclusiveRun[] = [];
    for (const run of runs) {
      const verdict =
        clock.monotonic() < until
          ? await this.#replay(front, caller, definitions, run)
          : inconclusive('the validation takes too long');
      verdicts.push(verdict);
      if (verdict.kind !== 'inconclusive') continue;
      unclear.push({ instance_id: run.id, reason: verdict.reason });
      const fields = { releaseId: release.id, instanceId: run.id, reason: verdict.reason };
      this.#deps.log.debug(fields, 'replay inconclusive');
    }
    return { outcome: 'ready', evidence: evidenceOf(verdicts, unclear) };
  }

  async #replay(
    front: FrontDeps,
    caller: string,
    definitions: DefinitionPair,
    { id, bytes }: SampledRun,
  ): Promise<Verdict> {
    if (bytes > RUN_BYTES_MAX) return inconclusive('it is too large');
    const run = await storedRun.row(front.reads, id);
    if (run === undefined) return inconclusive('it has been removed');
    const { unpoliciedRetry, log } = this.#deps;
    try {
      return await this.#offload.run(caller, REPLAY_RUN, { definitions, run, unpoliciedRetry });
    } catch (error) {
      if (error instanceof TooCostly) return inconclusive('it takes too long or too much');
      if (error instanceof EngineError) throw error;
      log.error({ instanceId: run.id, err: error }, 'defect in a replay');
      return inconclusive('the replay threw');
    }
  }

  /** If the owner cannot store the end, the release becomes a draft as soon as it can. */
  async #end(release: Release, end: ValidationEnd): Promise<Release> {
    const { client, log } = this.#deps;
    const { id, tenant_id: tenant } = release;
    try {
      const reply = await client.ask(SHARD, 'releases.endValidation', tenant, id, end);
      return JSON.parse(reply.body) as Release;
    } catch (error) {
      if (error instanceof EngineError && error.status < 500) throw error;
      log.warn({ releaseId: id, err: error }, 'validation not ended yet; trying again');
      const reason = end.outcome === 'draft' ? end.reason : 'its end could not be stored';
      // Failures are logged and retried.
      this.#later(() => this.#end(release, { outcome: 'draft', reason }).catch(() => undefined));
      throw error;
    }
  }

  #later(work: () => void): void {
    if (this.#stopped.signal.aborted) return;
    const timer = this.#deps.clock.setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, END_AGAIN_MS);
    this.#timers.add(timer);
  }
}

/** @param tenant '' is any @throws EngineError 404, which names the baseline if both are missing */
export async function definitionsOf(
  { reads }: FrontDeps,
  tenant: string,
  pair: Pick<Release, 'baseline_sequence_id' | 'candidate_sequence_id'>,
): Promise<DefinitionPair> {
  const baseline = await sequenceById(reads, pair.baseline_sequence_id, tenant);
  const candidate = await sequenceById(reads, pair.candidate_sequence_id, tenant);
  return { baseline, candidate };
}

function inconclusive(reason: string): Verdict {
  return { kind: 'inconclusive', reason };
}

function evidenceOf(verdicts: readonly Verdict[], unclear: readonly InconclusiveRun[]) {
  const count = (kind: Verdict['kind']) =>
    verdicts.filter((verdict) => verdict.kind === kind).length;
  const divergences: Divergence[] = verdicts.flatMap((verdict) =>
    verdict.kind === 'divergence' ? [verdict.divergence] : [],
  );
  return {
    replayed: verdicts.length,
    matches: count('match'),
    diverged: divergences.length,
    inconclusive: count('inconclusive'),
    divergences: divergences.slice(0, DIVERGENCES_MAX),
    ...(unclear.length === 0 ? {} : { inconclusive_runs: unclear.slice(0, DIVERGENCES_MAX) }),
  };
}
