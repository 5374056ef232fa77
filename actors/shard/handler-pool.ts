/**
 * Runs the in-process steps of one shard that have effects. It guarantees, whatever the handlers do:
 * - No tenant or instance exceeds its share of the slots, which long handlers have apart from short ones.
 * - Each run ends by itself, by withdrawal, or at a time limit; a later result of the handler is ignored.
 * - Each run that is not withdrawn has one storable outcome (`handler-outcome.ts`), and keeps its slot until its
 *   instance can take the outcome, so that outcomes do not pile up.
 */

import { ChurningMap } from '../../src/base/churning-map.js';
import type { TimerHandle } from '../../src/base/clock.js';
import { LIMITS } from '../../src/base/limits.js';
import { FairSlots } from '../../src/base/quota/fair-slots.js';
import { permanentFailure, retryableFailure, type StepOutcome } from '../../src/core/builtin.js';
import { masked } from '../../src/core/masking.js';
import type { StepTry } from '../../src/core/progress.js';
import { describeThrown, readOutcome, thrownOutcome } from '../../src/handlers/handler-outcome.js';
import type { EffectHandler, HandlerContext } from '../../src/handlers/registry.js';
import type { Tracer, WorkSpan } from '../../src/metrics/tracing.js';
import type { Secrets } from '../credential/secrets.js';
import { stepKey } from '../instance/live-instance.js';
import type { InstanceRoom } from '../instance/room.js';
import type { Measures } from '../runtime/measures.js';
import type { NamedSecrets } from '../runtime/protocol.js';
import type { Effects, Room } from '../runtime/room.js';
import type { InProcessStep } from '../runtime/turn.js';
import type { ShardKernel } from './kernel.js';

const SECRETS_RETRY_MS = 1_000;

/** Exists until it is withdrawn, or its instance has taken its outcome. */
interface Run {
  readonly instance: string;
  readonly step: InProcessStep;
  readonly controller: AbortController;
  /** Release its slot; undefined without one. */
  releases: (() => void)[] | undefined;
  deadline: TimerHandle;
  outcome: StepOutcome | undefined;
  span: WorkSpan<StepOutcome['kind'] | undefined> | undefined;
}

export interface HandlerPoolDeps extends Pick<ShardKernel, 'clock' | 'wakeShard'> {
  readonly callMsMax: number;
  readonly handlers: ReadonlyMap<string, EffectHandler>;
  /** Absent: not measured. */
  readonly measures?: Pick<Measures, 'attemptEnded'>;
  readonly log: HandlerContext['log'];
  readonly tracer?: Tracer | undefined;
  /** Whether the instance can take an outcome now; the shard gets a turn when that changes. */
  readonly canTake: (instance: string) => boolean;
  /** No step of a suspended tenant starts. */
  readonly isSuspended: (tenant: string) => boolean;
  readonly secrets: Pick<Secrets, 'fill'>;
  readonly onOutcome: (instance: string, step: StepTry, outcome: StepOutcome) => void;
}

export class HandlerPool implements Room {
  readonly #deps: HandlerPoolDeps;
  readonly #runs = new ChurningMap<string, Run>();
  #isDraining = false;
  readonly #ended = new ChurningMap<string, Run>();
  readonly #short = new FairSlots([
    { activeMax: LIMITS.handlersPerShardMax, waitingMax: LIMITS.handlersWaitingMax },
    { activeMax: LIMITS.handlersPerTenantMax, waitingMax: LIMITS.handlersWaitingPerTenantMax },
    { activeMax: LIMITS.handlersPerInstanceMax },
  ]);
  readonly #long = new FairSlots([
    { activeMax: LIMITS.longHandlersPerShardMax, waitingMax: LIMITS.handlersWaitingMax },
    { activeMax: LIMITS.longHandlersPerTenantMax, waitingMax: LIMITS.handlersWaitingPerTenantMax },
    { activeMax: LIMITS.longHandlersPerInstanceMax },
  ]);

  readonly effects = {
    perform: ({ instance, step }) => {
      if (!this.#isDraining && !this.#deps.isSuspended(step.tenant)) this.begin(instance, step);
    },
    abort: ({ instance, step }) => this.abort(instance, step),
  } satisfies Effects;

  constructor(deps: HandlerPoolDeps) {
    this.#deps = deps;
  }

  get active(): number {
    return this.#short.active + this.#long.active;
  }

  get waiting(): number {
    return this.#short.waiting + this.#long.waiting;
  }

  get hasEnded(): boolean {
    return this.#ended.size > 0;
  }

  begin(instance: string, step: InProcessStep): void {
    this.abort(instance, step);
    const run: Run = {
      instance,
      step,
      controller: new AbortController(),
      releases: undefined,
      deadline: undefined,
      outcome: undefined,
      span: undefined,
    };
    this.#runs.set(runKey(instance, step), run);
    void this.#perform(run);
  }

  /** The step was withdrawn: its outcome is ignored. */
  abort(instance: string, step: Omit<StepTry, 'attempt'>): void {
    const run = this.#runs.get(runKey(instance, step));
    if (run === undefined) return;
    this.#drop(run);
    run.controller.abort();
  }

  /** Outcomes of the tenant are not reported on this shard. */
  tenantSuspended(tenant: string): void {
    for (const { instance, step } of [...this.#runs.values()]) {
      if (step.tenant === tenant) this.abort(instance, step);
    }
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** Steps in progress run again after the next start. */
  stop(): void {
    for (const { instance, step } of this.#runs.values()) this.abort(instance, step);
  }

  /**
   * Passes outcomes to the instances that can take them: at least one, and more while there is time.
   * @returns whether time ran out, so that another turn is needed
   */
  handOver(hasTime: () => boolean): boolean {
    let isFirst = true;
    for (const run of this.#ended.values()) {
      if (!this.#deps.canTake(run.instance)) continue;
      if (!isFirst && !hasTime()) return true;
      isFirst = false;
      this.#drop(run);
      const { node, iteration, attempt } = run.step;
      this.#deps.onOutcome(run.instance, { node, iteration, attempt }, run.outcome!);
    }
    return false;
  }

  /** Never rejects: a failure is an outcome too. */
  async #perform(run: Run): Promise<void> {
    const { signal } = run.controller;
    const slots = this.#isLong(run) ? this.#long : this.#short;
    const slot = await slots.acquire([run.step.tenant, run.instance], signal);
    if (!slot.ok) {
      if (slot.reason === 'full') this.#refuse(run);
      return;
    }
    if (signal.aborted) {
      slot.release();
      return;
    }
    run.releases = [slot.release];
    this.#limit(run);
    const began = this.#deps.clock.monotonic();
    const outcome = await this.#call(run);
    const seconds = (this.#deps.clock.monotonic() - began) / 1_000;
    this.#deps.measures?.attemptEnded(run.step.handler, seconds, outcome.kind === 'success');
    this.#end(run, outcome);
  }

  async #call(run: Run): Promise<StepOutcome> {
    const { handlers, clock, log } = this.#deps;
    const { handler: name, params, idempotencyKey } = run.step;
    const traceparent = this.#trace(run);
    const context: HandlerContext = {
      signal: run.controller.signal,
      idempotencyKey,
      tenant: run.step.tenant,
      isLong: this.#isLong(run),
      ...(traceparent === undefined ? {} : { traceparent }),
      log: aboutInstance(log, run.instance),
      now: () => clock.now(),
      whenTaken: (then) => {
        if (run.releases === undefined) then();
        else run.releases.push(then);
      },
      waitFor: (what) => this.#waitFor(run, what),
    };
    try {
      const handler = handlers.get(name);
      if (handler === undefined) throw new Error(`no handler ${name}`);
      return run.step.secrets === undefined
        ? readOutcome(name, await handler(params, context))
        : await this.#callWithSecrets(run, handler, context, run.step.secrets);
    } catch (thrown) {
      const facts = { handler: name, instanceId: run.instance, stack: describeThrown(thrown) };
      log.warn(facts, 'defect in a handler');
      return thrownOutcome(name, thrown);
    }
  }

  /** Waits while secrets cannot be read; masks the secrets in the result. */
  async #callWithSecrets(
    { step: { handler: name, params }, instance }: Run,
    handler: EffectHandler,
    context: HandlerContext,
    named: NamedSecrets,
  ): Promise<StepOutcome> {
    const { secrets, clock, log } = this.#deps;
    while (!context.signal.aborted) {
      const filled = await secrets.fill(params, named).catch((error: unknown) => {
        const facts = { instanceId: instance, error: describeThrown(error) };
        log.warn(facts, 'the secrets of a step could not be read');
        return undefined;
      });
      if (filled?.ok === false) {
        return permanentFailure(filled.message, undefined, 'secret_missing');
      }
      if (filled !== undefined) {
        const { params: whole, values } = filled.value;
        const outcome = handler(whole, context).catch((thrown: unknown) => {
          throw masked({ thrown: describeThrown(thrown) }, values).thrown;
        });
        return masked(readOutcome(name, await outcome), values);
      }
      await new Promise<void>((resolve) => clock.setTimeout(resolve, SECRETS_RETRY_MS));
    }
    return retryableFailure('withdrawn');
  }

  /** @returns the trace header for the handler's own requests */
  #trace(run: Run): string | undefined {
    const { handler, attempt, traceparent } = run.step;
    const { tracer } = this.#deps;
    if (tracer === undefined) return traceparent;
    run.span = tracer.step({ handler, instance: run.instance, attempt, traceparent });
    return run.span.traceparent;
  }

  /** The shortest of its limits decides which slots it uses. */
  #isLong({ step }: Run): boolean {
    const { handler, params, maxMs, timeoutMs } = step;
    const { handlers, callMsMax } = this.#deps;
    const ownMs = handlers.get(handler)?.limitMs?.(params) ?? callMsMax;
    const limitMs = Math.min(ownMs, maxMs ?? callMsMax, timeoutMs ?? callMsMax, callMsMax);
    return limitMs > LIMITS.shortCallMsMax;
  }

  #limit(run: Run): void {
    const ms = Math.min(run.step.maxMs ?? Number.POSITIVE_INFINITY, this.#deps.callMsMax);
    run.deadline = this.#deps.clock.setTimeout(() => this.#cutOff(run, ms), ms);
  }

  /** The time limit starts again after the wait. */
  async #waitFor<T>(run: Run, what: Promise<T>): Promise<T> {
    this.#deps.clock.clearTimeout(run.deadline);
    try {
      return await what;
    } finally {
      if (run.releases !== undefined && run.outcome === undefined) this.#limit(run);
    }
  }

  /** A retry policy may retry it, like a timeout of the step. */
  #cutOff(run: Run, ms: number): void {
    const { handler } = run.step;
    const isServers = ms === this.#deps.callMsMax;
    const cause = isServers ? ', the maximum of this server (ENGINE_STEP_TIMEOUT_MAX_SECS)' : '';
    const message = `${handler} did not end within ${ms} ms${cause}`;
    this.#end(run, retryableFailure(message, undefined, 'timeout'));
    run.controller.abort();
  }

  #refuse(run: Run): void {
    const { handlersWaitingPerTenantMax: ofTenant, handlersWaitingMax: ofAll } = LIMITS;
    const message =
      `${run.step.handler}: too many calls wait for their turn, ${ofTenant} of this tenant ` +
      `or ${ofAll} of all`;
    run.outcome = retryableFailure(message, { code: 'OVERLOADED' });
    this.#ended.set(runKey(run.instance, run.step), run);
    this.#deps.wakeShard();
  }

  #end(run: Run, outcome: StepOutcome): void {
    if (run.releases === undefined || run.outcome !== undefined) return;
    this.#deps.clock.clearTimeout(run.deadline);
    run.outcome = outcome;
    run.span?.end(outcome.kind);
    this.#ended.set(runKey(run.instance, run.step), run);
    this.#deps.wakeShard();
  }

  #drop(run: Run): void {
    const key = runKey(run.instance, run.step);
    this.#runs.delete(key);
    this.#ended.delete(key);
    this.#deps.clock.clearTimeout(run.deadline);
    run.span?.end(undefined);
    const { releases } = run;
    if (releases === undefined) return;
    run.releases = undefined;
    for (const release of releases) release();
  }
}

/** Adds the instance to the log lines of the handler. */
function aboutInstance(log: HandlerContext['log'], instanceId: string): HandlerContext['log'] {
  return {
    debug: (fields, message) => log.debug({ ...fields, instanceId }, message),
    info: (fields, message) => log.info({ ...fields, instanceId }, message),
    warn: (fields, message) => log.warn({ ...fields, instanceId }, message),
  };
}

function runKey(instance: string, step: { node: number; iteration: string }): string {
  return `${instance}/${stepKey(step)}`;
}

export function openHandlerPool(
  kernel: ShardKernel,
  { handlers, tracer }: Pick<HandlerPoolDeps, 'handlers' | 'tracer'>,
  { instances, secrets }: Pick<InstanceRoom, 'instances'> & { readonly secrets: Secrets },
): HandlerPool {
  const { commits, settings } = kernel;
  return new HandlerPool({
    ...kernel,
    secrets,
    handlers,
    tracer,
    callMsMax: settings.stepTimeoutMaxMs,
    isSuspended: (tenant) => commits.suspended.has(tenant),
    canTake: (instance) =>
      commits.unackedBytes < LIMITS.unitBytesForOutcomesMax && instances.canTake(instance),
    onOutcome: (instance, step, outcome) =>
      instances.send(instance, { kind: 'step.outcome', step, outcome }),
  });
}
