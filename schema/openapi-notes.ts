/** What the document says about parameters, operations and headers beyond their shape. */

/** Of query parameters, by name. */
export const QUERY_NOTES: Readonly<Record<string, string>> = {
  tenant_id: 'The header x-tenant-id wins.',
  state: 'Separated by commas; none stands for all.',
  offset: 'How many to leave out.',
  limit: 'How many at most.',
  version: 'The newest that is neither deprecated nor on hold when absent.',
  poll_ms: 'How long changes are collected before they are sent: 100 to 5,000.',
  include_outputs: 'False leaves the values of outputs out.',
  alive_within_secs: 'Who was seen within this time counts as alive.',
  include_stale: 'Lists the others as well.',
  n: 'How many.',
  cursor: 'Where to go on.',
};

/** Of operations, by id. */
export const OPERATION_NOTES: Readonly<Record<string, string>> = {
  'sequences.create':
    'Warnings are about what has no effect or never works as written: members that do not exist, names of ' +
    'functions, filters, blocks or handlers that are nearly right. With strict they are answered 400.',
  'sequences.validate':
    'The same answer but for what is stored already: whether the id or the version exists is not asked.',
  'sequences.update': 'Answered once every creation by name may get it. Again is no error.',
  'instances.create':
    'When idempotency_key matches an instance of the tenant, its id is answered with deduplicated ' +
    'true. Asking again without such a key may create a second instance.',
  'instances.patchState': 'A move that the state of the instance does not allow is answered 400.',
  'instances.signal':
    'pause pauses, resume resumes what is paused, cancel cancels, update_context merges the payload ' +
    'into context.data, custom:<name> is the free for any use, but custom:human_input:<block> answers the gate of that step. ' +
    'A key that has approver only may send no other one.',
  'instances.retry': 'Answers 400 unless the instance is failed. It is due at once.',
  'instances.stream': 'Events: state, output, done and error, each with JSON as its data.',
  'cron.update':
    'Another cron_expr, timezone or enabled computes the next fire anew, from now on. Every other change, and a ' +
    'value that is repeated, keeps the fire that is due or waits for an earlier run.',
  'approvals.answer':
    'Refused with 409 when it was answered, has timed out or was withdrawn. With the answer_id of the answer that ' +
    'was taken, that one is told.',
  'approvals.link': 'Needs an encryption key, else 503. The link ends with the question.',
  'workers.poll':
    'Claims each task for one worker only, by priority of its instance, then age. The answer is ' +
    'empty when there is none.',
  'workers.exchange':
    'Each result is judged for itself and is durable before the answer, whatever becomes of the others and of ' +
    'the poll. With results the answer does not wait for tasks.',
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
