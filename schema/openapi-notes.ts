/**
 * What the document says about schemas and fields beyond their shape: the defaults that the engine
 * applies itself, and the limits on what the specification leaves unlimited
 * (docs/reference/blocks.md).
 */

import type { JsonValue } from '../src/core/json.js';
import { BLOCKS_MAX, DEPTH_MAX } from '../src/core/plan.js';
import {
  BRANCHES_MAX,
  ITEM_VAR_DEFAULT,
  ITERATIONS_MAX,
  MAX_ITERATIONS_DEFAULT,
  RETRY_DEFAULTS,
  SEND_WINDOW_DEFAULTS,
} from './blocks.js';
import { BATCH_ACTION_LIMIT_DEFAULT } from './edits.js';
import { SAMPLE_DEFAULT } from './release.js';
import { POLL_LIMIT_DEFAULT } from './worker.js';

/** By schema and field; queries and paths carry theirs in their schemas. */
export const FIELD_DEFAULTS: Readonly<Record<string, JsonValue>> = {
  'StepBlock.retry.initial_backoff': RETRY_DEFAULTS.initial_backoff,
  'StepBlock.retry.max_backoff': RETRY_DEFAULTS.max_backoff,
  'StepBlock.retry.backoff_multiplier': RETRY_DEFAULTS.backoff_multiplier,
  'StepBlock.send_window.start_hour': SEND_WINDOW_DEFAULTS.start_hour,
  'StepBlock.send_window.end_hour': SEND_WINDOW_DEFAULTS.end_hour,
  'RaceBlock.semantics': 'first_to_resolve',
  'LoopBlock.max_iterations': MAX_ITERATIONS_DEFAULT,
  'ForEachBlock.max_iterations': MAX_ITERATIONS_DEFAULT,
  'ForEachBlock.item_var': ITEM_VAR_DEFAULT,
  'CreateSequence.deprecated': false,
  'CreateSequence.status': 'production',
  'CreateInstance.priority': 'normal',
  'CreateInstance.timezone': 'UTC',
  'CreateInstance.dry_run': false,
  'ForkInstance.dry_run': true,
  'BatchAction.dry_run': false,
  'BatchAction.limit': BATCH_ACTION_LIMIT_DEFAULT,
  'CreateSchedule.timezone': 'UTC',
  'CreateSchedule.enabled': true,
  'CreateSchedule.overlap_policy': 'allow',
  'PollTasks.limit': POLL_LIMIT_DEFAULT,
  'PollTasks.wait_ms': 0,
  'PollQueue.limit': POLL_LIMIT_DEFAULT,
  'PollQueue.wait_ms': 0,
  'FailTask.retryable': false,
  'CreateRelease.gates': [],
  'CreateRelease.in_flight_policy': 'pin',
  'ValidateRelease.sample': SAMPLE_DEFAULT,
  'ValidateRelease.skip': false,
  'PromoteRelease.force': false,
  'PlanMigration.transforms': [],
  'PlanMigration.rollback_retention_seconds': 86_400,
  'PlanMigration.capture_checkpoint': false,
  'Transform.version': 1,
  'ApplyMigration.approved': false,
  'PlaceExecution.data_classification': 'internal',
  'PreviewHandoff.data_classification': 'internal',
  'CreateHandoff.data_classification': 'internal',
  'ExportHandoff.expires_in_seconds': 300,
  'ExportHandoff.capture_checkpoint': false,
  'MintKey.name': '',
  'MintKey.capabilities': ['operator'],
};

export const SCHEMA_NOTES: Readonly<Record<string, string>> = {
  Block:
    `A block of a sequence. Blocks nest at most ${DEPTH_MAX} levels deep; a sequence has at most ` +
    `${BLOCKS_MAX} of them, each with an id of its own.`,
  StepBlock:
    'Runs a handler: a built-in one (noop, log, sleep, http_request, fail, transform, assert) in ' +
    'the server, any other by an external worker.',
  ParallelBlock: `Runs all branches, at most ${BRANCHES_MAX}; fails if one of them fails.`,
  RaceBlock:
    'first_to_resolve: the first branch that ends wins, whether it succeeds or fails; ' +
    'first_to_succeed: the first that succeeds, failures count once all failed. The other branches ' +
    'are cancelled.',
  RouterBlock: 'Runs the blocks of the first route whose condition holds, else default.',
  TryCatchBlock: 'catch_block runs only if try_block failed, finally_block always.',
  LoopBlock: 'Repeats its body while the condition holds.',
  ForEachBlock: 'Runs its body for each item of an array of context.data.',
  CreateSequence: 'A definition; immutable once stored.',
  SequenceDefinition: 'A stored definition.',
  CreateInstance: 'Of a creation, alone or in a batch.',
  CreateBatch: 'All are created, or none.',
  TaskInstance: 'A run of a sequence.',
  PatchContext: 'Sections that are sent replace the stored ones; the others are kept.',
  InstanceContext: 'Of data, config and audit together 256 KiB at most, unless set otherwise.',
  BlockOutput: 'What a block left. attempt counts from 0.',
  WorkerTask: 'A step that an external worker runs.',
  CompleteTask: 'The output is stored, and its top-level keys are merged into context.data.',
  HeartbeatTask: 'A checkpoint needs the checkpoint_seq that the last answer gave.',
  CreateSchedule: 'A schedule that creates an instance of the sequence at each of its instants.',
  UpdateSchedule: 'Absent and null fields stay as they are.',
  CreateRelease: 'Baseline and candidate are versions of one name in one namespace.',
  Gate:
    'Judged once both versions have min_sample ended instances: it fails when the rate of the ' +
    'candidate is above that of the baseline by more than max_regression.',
  Release: 'Leads new instances from the baseline to the candidate.',
  ReleaseDecision: 'A change of state; never altered.',
  ValidationReport: 'What replays of ended runs of the baseline showed.',
  ValidationSummary: 'The evidence of the last validation.',
  Divergence: 'A run that went another way with the candidate.',
  SemanticDiff: 'What changes from one definition to another, the gravest first.',
  EvaluationReport: 'Ended instances since the canary began, and what the gates say of them.',
  ContinuityExecution:
    'The portable identity of an instance. Its epoch grows with each change of owner or version.',
  EffectReceipt:
    'What a try of a step did outside: dispatched until its outcome is known, then committed or ' +
    'unknown.',
  CheckpointBoundary: 'A checkpoint at one of the epochs of its instance.',
  CheckpointBoundaryDetail:
    'Whatever looks like a secret is [REDACTED] in the difference, and as it is in the data.',
  ProvenanceEntry: 'One decision; holds the hash of the entry before it.',
  ProvenanceVerdict: 'code says what is wrong with the first entry that is not right.',
  PlanMigration: 'What a checkpoint of the source has is moved to where the target looks for it.',
  MigrationPlan:
    'verdict, also named disposition: automatic may be applied, approval_required with approved ' +
    'true, pin and incompatible never.',
  MigrationRecord: 'A plan, and what became of it.',
  Transform:
    'Paths are dotted and lead into checkpoint_data; what stands under context_snapshot becomes ' +
    'context.data.',
  RuntimeCapabilities: 'What a runtime says of itself; live until expires_at.',
  Requirements: 'What a runtime must offer: all of each list, but any one of the regions.',
  LocalityPolicy: 'Where data of a classification may go; all rules of it hold together.',
  PlacementDecision: 'What was found of every live runtime of the tenant.',
  HandoffPreview:
    'Holds as long as nothing of what it was computed from changes: the execution, its effects, ' +
    'and every live runtime of the tenant.',
  CreateHandoff: 'Everything as it was previewed. policy and classification are other spellings.',
  Capsule: 'Says what was sealed, for whom and until when; signed by who sealed it.',
  ImportReceipt: 'A signed statement: this server holds the instance of the capsule.',
  OwnershipGrant: 'A signed statement: from this epoch on the destination owns the execution.',
  MintKey: 'No capabilities, or an empty list, stand for operator.',
  ErrorBody: 'The body of every answer that is not a success.',
  NotReady: '`reason` is there when the database is why, with its SQLSTATE if it answered.',
};

export const FIELD_NOTES: Readonly<Record<string, string>> = {
  'CreateSequence.id': 'Made by the server when absent.',
  'CreateSequence.tenant_id':
    'Must be there, may be blank when the header x-tenant-id is sent; else both must be the same.',
  'CreateSequence.version': 'Unique together with tenant, namespace and name.',
  'CreateSequence.blocks': `At most ${BLOCKS_MAX} blocks in all, nested at most ${DEPTH_MAX} levels deep.`,
  'CreateSequence.input_schema': 'What context.data of a new instance must conform to, else 422.',
  'CreateInstance.sequence_id': 'Pins the instance to this version.',
  'CreateInstance.tenant_id': 'The same as in the header x-tenant-id when that is sent.',
  'CreateInstance.context': 'At most 256 KiB as JSON, unless the deployment sets another limit.',
  'CreateInstance.next_fire_at': 'When to start; now when absent.',
  'CreateInstance.concurrency_key': 'Instances of the tenant with this key share their slots.',
  'CreateInstance.max_concurrency': 'How many of them run at once.',
  'CreateInstance.idempotency_key':
    'When an instance of the tenant has it, the answer names that one with deduplicated true.',
  'PatchState.next_fire_at': 'For a move to scheduled; now when absent.',
  'StepBlock.handler': 'A name that is not built in is served by external workers.',
  'StepBlock.params':
    'Of the handler. log: message, level (debug, info, warn). sleep: duration_ms (default 100). ' +
    'http_request: url, method (GET, POST, PUT, DELETE), body, timeout_ms (default 10000). noop: none.',
  'StepBlock.timeout': 'Of one try; the step then fails retryably.',
  'StepBlock.retry.max_attempts': 'Tries in total.',
  'StepBlock.rate_limit_key': 'A step whose key is at its limit is put off.',
  'StepBlock.when': 'An expression; the step is skipped when it does not hold.',
  'LoopBlock.condition': 'path == value, or a path that must be truthy, in context.data.',
  'LoopBlock.max_iterations': `At most ${ITERATIONS_MAX}.`,
  'ForEachBlock.collection': 'Path in context.data of an array; missing or empty: nothing runs.',
  'ForEachBlock.max_iterations': `At most ${ITERATIONS_MAX}; a longer collection fails the block.`,
  'InstanceCreated.deduplicated': 'True: the id is that of an instance that was there already.',
  'BatchCreated.count': 'Accepted items.',
  'BatchCreated.created': 'New ones among them.',
  'BulkUpdated.updated': 'The same as count, for older clients.',
  'PollTasks.limit': '0 gives none.',
  'PollTasks.wait_ms': 'How long to wait for a task when there is none.',
  'PollQueue.limit': '0 gives none.',
  'PollQueue.wait_ms': 'How long to wait for a task when there is none.',
  'CompleteTask.worker_id': 'That of the claim.',
  'CompleteTask.claim_epoch': 'That of the claim; asked for by some deployments.',
  'FailTask.worker_id': 'That of the claim.',
  'FailTask.claim_epoch': 'That of the claim; asked for by some deployments.',
  'HeartbeatTask.worker_id': 'That of the claim.',
  'HeartbeatTask.claim_epoch': 'That of the claim; asked for by some deployments.',
  'InjectBlocks.blocks': 'At most 1 MiB as JSON over all injections of an instance.',
  'SaveCheckpoint.checkpoint_data': 'At most 256 KiB as JSON.',
  'CreateSchedule.metadata': 'Copied to the instances that it creates.',
  'CreateRelease.tenant_id': 'The same as in the header x-tenant-id when that is sent.',
  'Release.canary_percent': 'What was asked for last; 0 before the first canary.',
  'Release.gates': 'Left out when there are none.',
  'Release.validation_summary': 'Left out until a validation has run.',
  'Release.canary_started_at': 'Of the last start of the canary; left out until the first.',
  'PlanMigration.capture_checkpoint':
    'First save a checkpoint of the live state. Without one, and with none saved, 409.',
  'PlanMigration.to_version': 'That of to_sequence_id, else 404.',
  'Transform.to_path': 'Of copy and move; none of drop.',
  'RegisterRuntime.capabilities':
    'observed_at at most 30 s ahead, expires_at at most 5 min after it. trust is unverified or ' +
    'registered. Of each list at most 256 entries of at most 256 bytes.',
  'ExportHandoff.requirements': 'Those of the placement decision.',
  'ExportHandoff.payload_key_base64':
    '32 bytes that the destination made for this once; without it only a server with the same ' +
    'encryption key opens the capsule.',
  'ImportCapsule.destination_instance_id': 'Made by the server when absent.',
  'ImportCapsule.payload_base64': 'When absent, what this server sealed itself is taken.',
  'AcceptHandoff.import_receipt': 'Of an instance on another server: what its import answered.',
  'HandoffAccepted.ownership_grant': 'For the claim on the other server.',
  'ValidationReport.replayed': 'The inconclusive ones among them.',
  'ValidationReport.diverged': 'All, of which divergences lists the first 20.',
  'ValidationSummary.replayed': 'The inconclusive ones among them.',
  'ValidationSummary.diverged': 'All, of which divergences lists the first 20.',
};

/** Of query parameters, by name. */
export const QUERY_NOTES: Readonly<Record<string, string>> = {
  tenant_id: 'The header x-tenant-id wins.',
  state: 'Separated by commas; none stands for all.',
  offset: 'How many to leave out.',
  limit: 'How many at most.',
  version: 'The newest that is not deprecated when absent.',
  poll_ms: 'How long changes are collected before they are sent: 100 to 5,000.',
  include_outputs: 'False leaves the values of outputs out.',
  alive_within_secs: 'Who was seen within this time counts as alive.',
  include_stale: 'Lists the others as well.',
  n: 'How many.',
  cursor: 'Where to go on.',
};

/** Of operations, by id. */
export const OPERATION_NOTES: Readonly<Record<string, string>> = {
  'instances.create':
    'When idempotency_key matches an instance of the tenant, its id is answered with deduplicated ' +
    'true. Asking again without such a key may create a second instance.',
  'instances.patchState': 'A move that the state of the instance does not allow is answered 400.',
  'instances.signal':
    'pause pauses, resume resumes what is paused, cancel cancels, update_context merges the payload ' +
    'into context.data, custom:<name> is the free for any use.',
  'instances.retry': 'Answers 400 unless the instance is failed. It is due at once.',
  'instances.stream': 'Events: state, output, done and error, each with JSON as its data.',
  'workers.poll':
    'Claims each task for one worker only, by priority of its instance, then age. The answer is ' +
    'empty when there is none.',
  'workers.complete': 'The instance goes on at once.',
  'workers.fail':
    'With retryable true the step is tried again; else it fails, and with it an instance that only ' +
    'has steps.',
  'workers.heartbeat':
    'Recommended every 15 to 30 seconds. A task without one for 60 seconds goes back to its queue.',
  'releases.create': 'Refused with 409 while another release of the baseline routes instances.',
  'releases.validate':
    'Only a draft. It becomes ready whatever the replays find, and failed when the candidate cannot ' +
    'run at all.',
  'releases.canary': 'Only what is ready or paused. Answered once all of the server routes so.',
  'releases.evaluate': 'The gates are also evaluated without being asked, while instances end.',
  'releases.promote':
    'Only a canary. Refused with 409 unless every gate passes; one that fails rolls it back.',
  'releases.pause': 'Only a canary; canary, with any percentage, goes on from there.',
  'releases.rollback': 'A canary or what is paused; again is no error.',
  'continuity.create': 'In any state of the instance. The id is that of the instance.',
  'continuity.claim': 'The instance stays paused; PATCH its state, or a signal resume, runs it.',
  'continuity.effects': 'Those of all its instances that are here.',
  'continuity.resolveEffect':
    'unknown becomes verified, committed, compensated or abandoned; committed and verified become ' +
    'compensated. Anything else is 409.',
  'continuity.appendProvenance':
    'The server writes the other kinds itself. Refused with 409 once the chain has 10,000 entries.',
  'continuity.verifyProvenance':
    'An empty chain is valid. Keys that are trusted are set by the deployment.',
  'continuity.place': 'Stored, and shown to nobody else. Nothing is moved by it.',
  'continuity.preview': 'Answered with compatible false too. 404 when the runtime is not live.',
  'migrations.plan': 'Only of an instance that is waiting or paused. Nothing of it is changed.',
  'migrations.apply':
    'Refused with 409 unless everything is as it was planned. Needs an encryption key, else 503. ' +
    'The instance is left paused, one epoch on.',
  'migrations.rollback':
    'Refused with 409 once the target has run: when an effect of its epoch was dispatched, ' +
    'committed or verified, or is unknown.',
  'runtimes.register': 'Again and again while it lives. What was observed earlier changes nothing.',
  'handoffs.create': 'Refused with 409 when anything is not as it was previewed.',
  'handoffs.export':
    'The instance is not run here from then on. Needs an encryption key, else 503. Given once: ' +
    'after an answer that was lost, revoke the handoff and make another one.',
  'handoffs.accept': 'The epoch grows by 1. From then on the source never runs it again.',
  'handoffs.reject': 'Owner and epoch stay.',
  'handoffs.revoke':
    'Owner and epoch stay; the next handoff or migration takes the execution back.',
  'capsules.import': 'A repetition gives the same instance. Needs an encryption key, else 503.',
  'health.live': 'Liveness.',
  'health.ready': 'Readiness.',
  metrics: 'Text format version 0.0.4.',
};

/** Headers that an operation reads beside those of the caller, with their names, by id. */
export const HEADER_NOTES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'changes.stream': { 'last-event-id': 'Where to go on: the id of the last event that was read.' },
};
