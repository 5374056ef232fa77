/**
 * The owner of all releases, on the first shard. It caches no rows: it reads a release, decides, and commits the new
 * state and its decision as one unit; requests about one baseline are serialized. A change of routing is answered after
 * every shard has applied it (`runtime/publisher.ts`). A periodic sweep finds validations whose front thread died, and
 * failing gates whose hints were lost.
 */

import type {
  CreateRelease,
  GateReport,
  PromoteRelease,
  StartCanary,
  ValidateRelease,
  ValidationReport,
  ValidationSummary,
} from '../../schema/release.js';
import { BackgroundJob } from '../../src/base/background-job.js';
import { conflict, EngineError, invalid, notFound } from '../../src/base/errors.js';
import { owned, tenantOf } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import type { CatalogLoads, SequenceRow } from '../catalog/loads.js';
import type { Plans } from '../catalog/plans.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operations, RouteOperations } from '../runtime/operation.js';
import { Publisher } from '../runtime/publisher.js';
import type { Messages, Room } from '../runtime/room.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import {
  canaryReason,
  DEPRECATION,
  findVerdict,
  gateActor,
  gateReason,
  judge,
  OPERATOR,
  promotionReason,
  REASONS,
  runsToJudge,
  VALIDATION,
  validationReason,
} from './core/gates.js';
import { type ReleaseRow, releaseOf } from './core/record.js';
import { GateWatch } from './gate-watch.js';
import type { ReleaseLoads } from './loads.js';
import { type Check, commitRelease, expectMove, type Move, moved } from './store.js';

/** The body of `releases.endValidation`. */
export type ValidationEnd =
  | { readonly outcome: 'ready'; readonly evidence: Omit<ValidationSummary, 'validated_at'> }
  | { readonly outcome: 'failed' | 'draft'; readonly reason: string };

export type ReleasesLoads = ReleaseLoads & Pick<CatalogLoads, 'sequence'>;

export interface ReleasesDeps
  extends ServiceDeps,
    Pick<Kernel<ReleasesLoads>, 'loader' | 'clock' | 'now' | 'newId' | 'shards'> {
  readonly plans: Pick<Plans, 'checkUsable' | 'deletions'>;
}

const SWEEP_MS = 10_000;
/** A validation that the front has not ended by then is abandoned. */
const VALIDATION_MS_MAX = 10 * 60_000;
const DEFAULT_TENANT = 'default';

export class Releases implements Room {
  readonly #deps: ReleasesDeps;
  readonly #publisher: Publisher;
  readonly #watch: GateWatch;
  readonly #service: Service;
  /** Validations in progress on the front thread, with the time at which they count as abandoned. */
  readonly #validations = new Map<string, number>();
  readonly #sweeping: BackgroundJob;

  readonly messages = {
    'routes.settled': ({ version, shard }) => this.#publisher.settled(version, shard),
    'release.ended': ({ release }) => this.#watch.hint(release),
  } satisfies Messages;
  readonly #routes = {
    'releases.create': { serve: (call) => this.#create(call) },
    'releases.canary': { serve: (call) => this.#canary(call) },
    'releases.evaluate': { serve: (call) => this.#evaluate(call) },
    'releases.promote': { serve: (call) => this.#promote(call) },
    'releases.pause': { serve: (call) => this.#pause(call) },
    'releases.rollback': { serve: (call) => this.#rollback(call) },
  } satisfies RouteOperations;
  /** The front thread begins and ends validations (`front/validation.ts`). */
  readonly operations = {
    ...this.#routes,
    'releases.beginValidation': { serve: (call: Call<ValidateRelease>) => this.#begin(call) },
    'releases.endValidation': { serve: (call: Call<ValidationEnd>) => this.#end(call) },
  } satisfies Operations;

  constructor(deps: ReleasesDeps) {
    this.#deps = deps;
    this.#service = new Service('releases', deps);
    const message = (version: number) => ({ kind: 'routes.read', version }) as const;
    this.#publisher = new Publisher<void>(deps, undefined, message);
    const { clock, log } = deps;
    this.#sweeping = new BackgroundJob({
      clock,
      log,
      name: 'releases',
      everyMs: SWEEP_MS,
      run: () => this.#sweep().catch((error: unknown) => this.#note(error)),
    });
    this.#watch = new GateWatch({ clock, look: (release) => this.#look(release) });
  }

  get parts() {
    return [this.#publisher];
  }

  start(): void {
    this.#sweeping.wake();
  }

  stop(): void {
    this.#sweeping.stop();
    this.#watch.stop();
  }

  tenantBack(): void {
    this.#publisher.start();
    this.start();
  }

  #create({ request, tenant: header, body }: Call<CreateRelease>): void {
    this.#serve(request, 201, async () => {
      const tenant = tenantOf(header, body.tenant_id) || DEFAULT_TENANT;
      const create = () => this.#insert(request, tenant, body);
      const row = await this.#service.inLine(body.baseline_sequence_id, create);
      // From now on, names resolve to the candidate only through the release.
      await this.#publisher.publish();
      return releaseOf(row);
    });
  }

  async #insert(request: number, tenant: string, body: CreateRelease): Promise<ReleaseRow> {
    const { plans, now, newId } = this.#deps;
    const { deletions } = plans;
    const baseline = await this.#sequence(tenant, body.baseline_sequence_id);
    const candidate = await this.#sequence(tenant, body.candidate_sequence_id);
    if (baseline.id === candidate.id) throw invalid('baseline and candidate are the same sequence');
    for (const field of ['name', 'namespace'] as const) {
      if (baseline[field] !== candidate[field]) {
        throw invalid(`baseline and candidate differ in their ${field}`);
      }
    }
    await this.#expectUnrouted(baseline.id);
    const at = isoTime(now());
    const row: ReleaseRow = {
      id: newId(),
      tenant_id: tenant,
      namespace: baseline.namespace,
      sequence_name: baseline.name,
      baseline_sequence_id: baseline.id,
      baseline_version: baseline.version,
      candidate_sequence_id: candidate.id,
      candidate_version: candidate.version,
      state: 'draft',
      canary_percent: 0,
      gates: body.gates ?? [],
      in_flight_policy: body.in_flight_policy ?? 'pin',
      validation_summary: null,
      canary_started_at: null,
      created_at: at,
      updated_at: at,
    };
    const decision = { actor: OPERATOR, request, reason: REASONS.created };
    await commitRelease(this.#deps, this.#service, row, 'draft', decision, () => {
      plans.checkUsable(baseline.id, deletions);
      plans.checkUsable(candidate.id, deletions);
    });
    return row;
  }

  /**
   * Without `skip` the caller runs the validation and ends it by a request. A draft does not protect its candidate, so
   * a deletion of the candidate in progress is an error.
   */
  #begin({ request, tenant, target: id, body: { skip } }: Call<ValidateRelease>): void {
    const { plans, clock } = this.#deps;
    this.#serve(request, 200, () =>
      this.#inTurn(tenant, id, async (row) => {
        if (row.state !== 'draft') throw conflict(`release ${id} is ${row.state}, not a draft`);
        const check = () => plans.checkUsable(row.candidate_sequence_id);
        if (skip === true) {
          const reason = REASONS.validationSkipped;
          await this.#move(row, { to: 'ready', actor: OPERATOR, request, reason }, check);
          return SKIPPED;
        }
        this.#validations.set(id, clock.monotonic() + VALIDATION_MS_MAX);
        const begun: Move = {
          to: 'validating',
          actor: OPERATOR,
          request,
          reason: REASONS.validationBegun,
        };
        const after = await this.#move(row, begun, check).catch((error: unknown) => {
          this.#validations.delete(id);
          throw error;
        });
        return { release: releaseOf(after) };
      }),
    );
  }

  #end({ request, tenant, target: id, body: end }: Call<ValidationEnd>): void {
    this.#serve(request, 200, () =>
      this.#inTurn(tenant, id, async (row) => {
        if (row.state !== 'validating') throw conflict(`release ${id} is not being validated`);
        this.#validations.delete(id);
        return releaseOf(await this.#move(row, this.#endOf(end)));
      }),
    );
  }

  #endOf(end: ValidationEnd): Move {
    if (end.outcome !== 'ready') return { to: end.outcome, actor: VALIDATION, reason: end.reason };
    const { evidence } = end;
    const validation_summary = { ...evidence, validated_at: isoTime(this.#deps.now()) };
    const reason = validationReason(evidence);
    return { to: 'ready', actor: VALIDATION, reason, set: { validation_summary } };
  }

  #canary({ request, tenant, target: id, body: { percent } }: Call<StartCanary>): void {
    this.#serveMove(request, tenant, id, async (row) => {
      expectMove(row, 'canary');
      await this.#expectUnrouted(row.baseline_sequence_id);
      // The candidate may have been deprecated, or deleted while the release was a draft.
      const candidate = await this.#sequence(row.tenant_id, row.candidate_sequence_id);
      if (candidate.deprecated) throw conflict(`the candidate of release ${id} is deprecated`);
      const [reason, set] = [canaryReason(percent), { canary_percent: percent }];
      return this.#reroute(row, { to: 'canary', actor: OPERATOR, request, reason, set });
    });
  }

  #pause({ request, tenant, target: id }: Call): void {
    this.#serveMove(request, tenant, id, (row) =>
      this.#reroute(row, { to: 'paused', actor: OPERATOR, request, reason: REASONS.paused }),
    );
  }

  /** Idempotent. A repeated request, too, is answered after every shard has the routing. */
  #rollback({ request, tenant, target: id }: Call): void {
    this.#serveMove(request, tenant, id, async (row) => {
      if (row.state === 'rolled_back') return row;
      return this.#reroute(row, {
        to: 'rolled_back',
        actor: OPERATOR,
        request,
        reason: REASONS.rolledBack,
      });
    });
  }

  /** `force` is only recorded: a gate that does not pass prevents the promotion anyway. */
  #promote({ request, tenant, target: id, body }: Call<PromoteRelease>): void {
    this.#serve(request, 200, async () => {
      const force = body.force ?? false;
      const promote = (row: ReleaseRow) => this.#promoted(request, row, force);
      const { evidence, after } = await this.#inTurn(tenant, id, promote);
      await this.#publisher.publish();
      const failing = findVerdict(evidence, 'fail');
      if (failing === undefined) return releaseOf(after);
      throw conflict(`release ${id} was rolled back: ${gateReason(failing, evidence)}`);
    });
  }

  async #promoted(request: number, row: ReleaseRow, force: boolean): Promise<Judged> {
    expectMove(row, 'promoted');
    const judged = await this.#judge(row);
    if (findVerdict(judged.evidence, 'fail') !== undefined) return judged;
    const open = findVerdict(judged.evidence, 'inconclusive');
    if (open !== undefined) {
      throw conflict(`the evidence for the gate ${open.gate.metric} is inconclusive`);
    }
    const reason = promotionReason(force, judged.evidence);
    const after = await this.#reroute(row, { to: 'promoted', actor: OPERATOR, request, reason });
    return { ...judged, after };
  }

  #evaluate({ request, tenant, target: id }: Call): void {
    this.#serve(request, 200, async () => {
      const { evidence, before, after } = await this.#inTurn(tenant, id, (row) => this.#judge(row));
      const auto_rolled_back = before.state !== after.state;
      if (auto_rolled_back) await this.#publisher.publish();
      return { ...evidence, auto_rolled_back, release_state: after.state };
    });
  }

  /** Evaluates the gates; a failing one rolls a canary back. */
  async #judge(before: ReleaseRow): Promise<Judged> {
    const runs = runsToJudge(before);
    const outcomes = await this.#read((rows) => rows.releaseOutcomes(before.id, runs));
    const evidence = judge(before.gates, before, outcomes);
    const failing = findVerdict(evidence, 'fail');
    if (before.state !== 'canary' || failing === undefined) {
      return { evidence, before, after: before };
    }
    const reason = gateReason(failing, evidence);
    const rollback: Move = { to: 'rolled_back', actor: gateActor(failing), reason };
    return { evidence, before, after: await this.#reroute(before, rollback) };
  }

  /** @returns false when the rows could not be read */
  async #look(id: string): Promise<boolean> {
    try {
      const isRolledBack = await this.#inTurn('', id, async (row) => {
        if (row.state !== 'canary' || row.gates.length === 0) return false;
        return (await this.#judge(row)).after.state !== row.state;
      });
      if (isRolledBack) void this.#publisher.publish();
      return true;
    } catch (error) {
      this.#note(error);
      return false;
    }
  }

  /** Ends abandoned validations, evaluates all canaries, and pauses those with a deprecated candidate. */
  async #sweep(): Promise<void> {
    for (const { id, state, is_deprecated } of await this.#read((rows) => rows.openReleases())) {
      try {
        if (state !== 'canary') await this.#inTurn('', id, (row) => this.#recover(row));
        else if (is_deprecated) await this.#pauseDeprecated(id);
        else this.#watch.hint(id);
      } catch (error) {
        // A failing release, such as one of a suspended tenant, does not stop the others.
        this.#note(error);
      }
    }
  }

  async #recover(row: ReleaseRow): Promise<void> {
    const until = this.#validations.get(row.id) ?? 0;
    if (row.state !== 'validating' || until > this.#deps.clock.monotonic()) return;
    this.#validations.delete(row.id);
    await this.#move(row, { to: 'draft', actor: VALIDATION, reason: REASONS.validationLost });
  }

  /** Called when a sequence was deprecated. Resolves when no shard routes to it any more. */
  async deprecated(sequence: string): Promise<void> {
    try {
      const leading = await this.#read((rows) => rows.leadingReleases(sequence));
      if (leading.length === 0) return;
      for (const { id, state } of leading) if (state === 'canary') await this.#pauseDeprecated(id);
    } catch (error) {
      void this.#publisher.publish();
      throw error;
    }
    await this.#publisher.publish();
  }

  /** Routing already skips a deprecated candidate; pausing makes this visible. */
  async #pauseDeprecated(id: string): Promise<void> {
    await this.#inTurn('', id, async (row) => {
      if (row.state !== 'canary') return;
      await this.#reroute(row, { to: 'paused', actor: DEPRECATION, reason: REASONS.deprecated });
    });
  }

  /** Logs expected errors of the database or the writer as retries, others as defects. */
  #note(error: unknown): void {
    if (!(error instanceof EngineError)) this.#deps.log.error({ err: error }, 'defect');
    else this.#deps.log.debug({ err: error }, 'releases could not be looked at; trying again');
  }

  async #find(tenant: string, id: string): Promise<ReleaseRow> {
    return owned(await this.#read((rows) => rows.release(id)), tenant, `release ${id}`);
  }

  /** Runs the work with the stored release. Work on one baseline is serialized. */
  async #inTurn<T>(tenant: string, id: string, work: (row: ReleaseRow) => Promise<T>): Promise<T> {
    const { baseline_sequence_id } = await this.#find(tenant, id);
    return this.#service.inLine(baseline_sequence_id, async () =>
      work(await this.#find(tenant, id)),
    );
  }

  #serveMove(
    request: number,
    tenant: string,
    id: string,
    work: (row: ReleaseRow) => Promise<ReleaseRow>,
  ): void {
    this.#serve(request, 200, async () => {
      const moved = await this.#inTurn(tenant, id, work);
      await this.#publisher.publish();
      return releaseOf(moved);
    });
  }

  /** Publishes after an error, too, because a move with an unknown outcome may have changed routing. */
  async #reroute(row: ReleaseRow, move: Move): Promise<ReleaseRow> {
    expectMove(row, move.to);
    try {
      return await this.#move(row, move);
    } catch (error) {
      this.#deps.whenWriterKnown(() => void this.#publisher.publish());
      throw error;
    }
  }

  async #move(row: ReleaseRow, move: Move, check?: Check): Promise<ReleaseRow> {
    const after = moved(row, move, this.#deps.now());
    await commitRelease(this.#deps, this.#service, after, row.state, move, check);
    return after;
  }

  /** @throws EngineError 503 when the rows cannot be read */
  #read<T>(read: (rows: ReleasesLoads) => Promise<T>): Promise<T> {
    return this.#service.read(() => read(this.#deps.loader));
  }

  async #expectUnrouted(baseline: string): Promise<void> {
    const other = await this.#read((rows) => rows.routingRelease(baseline));
    if (other === undefined) return;
    throw conflict(`release ${other.id} of the same baseline is ${other.state}`);
  }

  async #sequence(tenant: string, id: string): Promise<SequenceRow> {
    const row = await this.#read((rows) => rows.sequence(id));
    if (row === undefined || row.tenant_id !== tenant) throw notFound(`sequence ${id}`);
    return row;
  }

  #serve(request: number, status: number, work: () => Promise<object>): void {
    this.#service.answer(request, status, undefined, work);
  }
}

interface Judged {
  readonly evidence: GateReport;
  readonly before: ReleaseRow;
  /** The release after a rollback that a failing gate caused. */
  readonly after: ReleaseRow;
}

const SKIPPED = {
  replayed: 0,
  matches: 0,
  diverged: 0,
  inconclusive: 0,
  divergences: [],
  release_state: 'ready',
} as const satisfies ValidationReport;
