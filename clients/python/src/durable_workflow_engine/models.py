"""Every shape of the API, by the name that it has in docs/openapi.json.

Requests may be given as these or as plain mappings; answers are these.
Written by `npm run generate` from docs/openapi.json.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from ._model import Model, Open

AppendProvenanceKind = Annotated[
    Literal[
        "package_identity",
        "model_selected",
        "terminal_outcome",
    ],
    Open,
]
BatchActionAction = Annotated[
    Literal[
        "retry",
        "pause",
        "resume",
        "cancel",
        "signal",
    ],
    Open,
]
BatchActionFilterWaitingFor = Annotated[
    Literal[
        "task",
        "handler",
        "approval",
        "sleep",
        "delay",
        "retry",
        "child",
        "rate_limit",
        "event",
        "slot",
    ],
    Open,
]
BulkJobOperation = Annotated[
    Literal[
        "state",
        "reschedule",
        "batch_action",
    ],
    Open,
]
BulkJobState = Annotated[
    Literal[
        "running",
        "cancelling",
        "completed",
        "cancelled",
        "failed",
    ],
    Open,
]
CancelHookHandler = Annotated[
    Literal[
        "noop",
        "log",
        "sleep",
        "http_request",
        "fail",
        "transform",
        "assert",
    ],
    Open,
]
CancellingReason = Annotated[
    Literal[
        "cancel",
        "timeout",
    ],
    Open,
]
Capability = Annotated[
    Literal[
        "operator",
        "worker",
        "device",
        "publisher",
        "approver",
        "auditor",
        "starter",
        "secrets",
    ],
    Open,
]
CellEngineRole = Annotated[
    Literal[
        "owner",
        "standby",
    ],
    Open,
]
CellState = Annotated[
    Literal[
        "open",
        "closed",
        "draining",
    ],
    Open,
]
ContinuityExecutionState = Annotated[
    Literal[
        "owned",
        "transferring",
        "completed",
        "failed",
        "cancelled",
    ],
    Open,
]
CreateHandoffClassification = Annotated[
    Literal[
        "public",
        "internal",
        "confidential",
        "restricted",
    ],
    Open,
]
CreateReleaseInFlightPolicy = Annotated[
    Literal[
        "pin",
        "operator_decision",
    ],
    Open,
]
CredentialKind = Annotated[
    Literal[
        "api_key",
        "oauth2",
        "basic",
    ],
    Open,
]
DeliveryAttemptErrorClass = Annotated[
    Literal[
        "dns",
        "connect",
        "tls",
        "timeout",
        "redirect_rejected",
        "http_status",
        "signature_configuration",
        "response_too_large",
        "internal_policy",
        "serialization",
        "aborted",
        "other",
    ],
    Open,
]
DiffEntryCategory = Annotated[
    Literal[
        "block_added",
        "block_removed",
        "block_type_changed",
        "blocks_reordered",
        "structure_changed",
        "handler_changed",
        "params_changed",
        "retry_changed",
        "timeout_changed",
        "delay_changed",
        "rate_limit_changed",
        "router_changed",
        "loop_changed",
        "race_changed",
        "saga_changed",
        "split_changed",
        "sub_sequence_changed",
        "missing_output_reference",
        "queue_changed",
        "send_window_changed",
        "approval_gate_changed",
        "output_schema_changed",
        "when_guard_changed",
        "cancellable_changed",
        "credential_requirement_added",
        "input_schema_narrowed",
        "input_schema_changed",
        "hooks_changed",
    ],
    Open,
]
DiffEntrySeverity = Annotated[
    Literal[
        "informational",
        "behavioral",
        "side_effect_risk",
        "incompatible",
    ],
    Open,
]
EffectReceiptKind = Annotated[
    Literal[
        "http",
        "worker",
        "webhook",
        "message",
        "storage",
        "model",
        "human_decision",
        "custom",
    ],
    Open,
]
EffectReceiptState = Annotated[
    Literal[
        "planned",
        "prepared",
        "dispatched",
        "committed",
        "failed",
        "unknown",
        "verified",
        "compensated",
        "abandoned",
    ],
    Open,
]
EventDetailsStatus = Annotated[
    Literal[
        "pending",
        "consumed",
        "expired",
    ],
    Open,
]
EventTakerOutcome = Annotated[
    Literal[
        "taken",
        "refused",
    ],
    Open,
]
FailureCode = Annotated[
    Literal[
        "handler_failed",
        "worker_failed",
        "retries_exhausted",
        "not_retried",
        "timeout",
        "claims_lost",
        "queue_timeout",
        "deadline",
        "instance_timeout",
        "expression_error",
        "secret_missing",
        "invalid_params",
        "invalid_collection",
        "context_limit",
        "output_schema",
        "handler_crashed",
        "data_refused",
        "memory_limit",
        "internal_error",
        "child_failed",
        "child_not_started",
        "child_too_deep",
        "cleanup_failed",
        "failed_by_request",
        "unrecorded",
    ],
    Open,
]
ForkInstanceContextMode = Annotated[
    Literal[
        "merge",
        "replace",
    ],
    Open,
]
GateJudgementVerdict = Annotated[
    Literal[
        "pass",
        "fail",
        "inconclusive",
    ],
    Open,
]
GateMetric = Annotated[
    Literal[
        "error_rate",
        "cancel_rate",
    ],
    Open,
]
HandoffPreviewFindingStatus = Annotated[
    Literal[
        "pass",
        "fail",
        "unknown",
    ],
    Open,
]
HandoffState = Annotated[
    Literal[
        "requested",
        "quiescing",
        "exported",
        "accepted",
        "resumed",
        "completed",
        "rejected",
        "failed",
        "expired",
        "revoked",
    ],
    Open,
]
InstanceState = Annotated[
    Literal[
        "scheduled",
        "running",
        "waiting",
        "paused",
        "failed",
        "completed",
        "cancelled",
    ],
    Open,
]
MigratedInstanceVerdict = Annotated[
    Literal[
        "automatic",
        "approval_required",
        "pin",
        "incompatible",
    ],
    Open,
]
MigrationRecordState = Annotated[
    Literal[
        "planned",
        "applied",
        "rolled_back",
    ],
    Open,
]
NodeState = Annotated[
    Literal[
        "pending",
        "running",
        "waiting",
        "completed",
        "failed",
        "cancelled",
        "skipped",
    ],
    Open,
]
NotReadyReasonKind = Annotated[
    Literal[
        "unreachable",
        "disk-full",
        "resources",
        "descriptors",
        "connections",
        "rights",
        "schema",
        "read-only",
        "replica",
        "lease",
        "other",
    ],
    Open,
]
OutboxEntryStatus = Annotated[
    Literal[
        "pending",
        "in_flight",
        "parked",
    ],
    Open,
]
OverlapPolicy = Annotated[
    Literal[
        "allow",
        "skip",
        "buffer_one",
        "cancel_previous",
    ],
    Open,
]
PlacementDecisionCandidateOutcome = Annotated[
    Literal[
        "allow",
        "deny",
        "unknown",
    ],
    Open,
]
Priority = Annotated[
    Literal[
        "low",
        "normal",
        "high",
        "critical",
    ],
    Open,
]
RaceBlockSemantics = Annotated[
    Literal[
        "first_to_resolve",
        "first_to_succeed",
    ],
    Open,
]
RegisterRuntimeCapabilitiesTrust = Annotated[
    Literal[
        "unverified",
        "registered",
    ],
    Open,
]
ReleaseState = Annotated[
    Literal[
        "draft",
        "validating",
        "ready",
        "canary",
        "promoted",
        "paused",
        "rolled_back",
        "failed",
    ],
    Open,
]
RunsAgainBlockKind = Annotated[
    Literal[
        "step",
        "block",
        "compensation",
        "finally",
        "saga",
        "child",
        "hook",
    ],
    Open,
]
RunsAgainEnds = Annotated[
    Literal[
        "cancelled",
        "failed",
    ],
    Open,
]
RunsAgainParentStands = Annotated[
    Literal[
        "waits",
        "takes",
        "went_on",
        "ended",
    ],
    Open,
]
RuntimeConnectivity = Annotated[
    Literal[
        "offline",
        "metered",
        "wifi",
        "ethernet",
    ],
    Open,
]
RuntimeKind = Annotated[
    Literal[
        "server",
        "edge",
        "mobile",
        "desktop",
        "browser",
    ],
    Open,
]
RuntimeTrust = Annotated[
    Literal[
        "unverified",
        "registered",
        "signed",
        "attested",
    ],
    Open,
]
SequenceStatus = Annotated[
    Literal[
        "draft",
        "staging",
        "production",
        "unpublished",
    ],
    Open,
]
ShownPriority = Annotated[
    Literal[
        "Low",
        "Normal",
        "High",
        "Critical",
    ],
    Open,
]
StepAttemptSource = Annotated[
    Literal[
        "task",
        "process",
    ],
    Open,
]
StepAttemptState = Annotated[
    Literal[
        "pending",
        "claimed",
        "completed",
        "failed",
        "timed_out",
        "cancelled",
    ],
    Open,
]
StoredSignalStatus = Annotated[
    Literal[
        "kept",
        "taken",
        "refused",
        "applied",
    ],
    Open,
]
TaskState = Annotated[
    Literal[
        "pending",
        "claimed",
        "completed",
        "failed",
    ],
    Open,
]
TenantMoveState = Annotated[
    Literal[
        "copying",
        "switched",
        "done",
        "given_up",
    ],
    Open,
]
TransformTransform = Annotated[
    Literal[
        "copy",
        "move",
        "drop",
    ],
    Open,
]
TriggerType = Annotated[
    Literal[
        "webhook",
        "event",
    ],
    Open,
]
WaitKind = Annotated[
    Literal[
        "pause",
        "start",
        "handoff",
        "slot",
        "signal",
        "task",
        "worker",
        "handler",
        "approval",
        "sleep",
        "delay",
        "retry",
        "child",
        "rate_limit",
        "event",
        "engine",
    ],
    Open,
]
WaitReason = Annotated[
    Literal[
        "transferring",
        "moved",
        "imported",
    ],
    Open,
]
WebhookEvent = Annotated[
    Literal[
        "instance.completed",
        "instance.failed",
    ],
    Open,
]
WorkerAttemptEvent = Annotated[
    Literal[
        "claimed",
        "reclaimed",
        "completed",
        "failed",
        "timed_out",
        "cancelled",
        "stale_mutation_rejected",
    ],
    Open,
]


class AbSplitBlock(Model):
    """Runs one of its variants, chosen by the id of the instance and that of the block, in
    proportion to the weights. Names differ, and some weight is above 0.
    """

    type: Literal["ab_split", "a_b_split"] = "ab_split"
    """The kind of the block: two words for one."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    variants: list[SplitVariant]
    """Of which one runs."""


class AcceptHandoff(Model):
    tenant_id: str | None = None
    destination_instance_id: str
    import_receipt: ImportReceipt | None = None
    """Of an instance on another server: what its import answered."""


class Activity(Model):
    """Instances created and ended in each interval."""

    since: datetime
    step_secs: int
    intervals: list[ActivityInterval]
    """Oldest first, also those in which nothing happened."""
    complete: bool
    """False: so much was noted that the oldest intervals lack some of it."""


class ActivityInterval(Model):
    at: datetime
    """When it begins."""
    created: int
    completed: int
    failed: int
    cancelled: int
    duration_p50_ms: float | None
    """From creation to completion or failure, within a tenth; null when none of these ended."""
    duration_p95_ms: float | None


class AnswerApproval(Model):
    value: str
    """One of the values of its choices."""
    comment: str | None = None
    """Only where allow_comment says so. An empty text stands for none."""
    answer_id: str | None = None
    """A repetition with the same one is told of the first answer, and is no conflict. An empty
    text stands for none.
    """


class AnswerByLink(Model):
    value: str | None = None
    """One of the values of its choices."""
    comment: str | None = None
    """Only where allow_comment says so. An empty text stands for none."""


class ApiKey(Model):
    id: str
    """ak_ and 32 hexadecimal digits."""
    tenant_id: str
    name: str
    capabilities: list[Capability]
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked: bool


class AppendProvenance(Model):
    tenant_id: str | None = None
    kind: AppendProvenanceKind
    payload_sha256: str


class ApplyMigration(Model):
    tenant_id: str | None = None
    approved: bool | None = None
    """Default: False."""


class Approval(Model):
    """A step that waits for the answer of a person."""

    id: str
    instance_id: str
    tenant_id: str
    namespace: str
    sequence_id: str
    sequence_name: str | None
    block_id: str
    path: str
    """From the outermost block, as in orders[2]/charge."""
    prompt: str
    """What is asked."""
    choices: list[GateChoice]
    store_as: str
    """The key of context.data for the value."""
    timeout_seconds: float | None
    escalation_handler: str | None
    allow_comment: bool
    waiting_since: datetime
    deadline: datetime | None
    """Null: it waits for ever."""
    metadata: dict[str, Any]
    """Of the instance."""


class ApprovalAnswered(Model):
    """What was taken."""

    id: str
    instance_id: str
    block_id: str
    value: str
    comment: str | None
    answered_by: str | None
    """The name of the key, or the recipient of the link."""
    answered_at: datetime
    repeated: bool
    """True: the answer with this answer_id was taken before."""


class ApprovalLink(Model):
    url: str
    """Whoever has it can answer, once."""
    expires_at: datetime


class ApprovalPage(Model):
    items: list[Approval]
    total: int
    """How many there are on all pages; at most 10000 are counted, among a bounded number of open
    ones.
    """


class AttachCapsule(Model):
    tenant_id: str | None = None
    destination_instance_id: str
    capsule: Capsule
    payload_base64: str
    payload_key_base64: str


class AuditEntry(Model):
    id: str
    instance_id: str
    tenant_id: str
    event_type: str
    from_state: InstanceState | None = None
    to_state: InstanceState | None = None
    block_id: str | None = None
    details: Any
    failure: Failure | None = None
    """Of the move to failed."""
    created_at: datetime


class BatchAction(Model):
    """The action signal needs signal_type."""

    filter: BatchActionFilter
    action: BatchActionAction
    signal_type: str | None = None
    payload: Any = None
    dry_run: bool | None = None
    """Only counts: nothing is changed. Default: False."""
    orphans: bool | None = None
    """Also retry children whose parents have gone on without them: nobody takes what they come
    to. Else they are skipped. Default: False.
    """
    limit: int | None = None
    """Default: 1000."""


class BatchActionFilter(Model):
    tenant_id: str | None = None
    namespace: str | None = None
    sequence_id: str | None = None
    sequence_name: str | None = None
    """Every version of the sequences with this name."""
    sequence: str | None = None
    """The same."""
    sequence_version: int | None = None
    """Of its sequence."""
    parent_instance_id: str | None = None
    """Those that this instance started."""
    ids: list[str] | None = None
    """These and no others, at most 1000."""
    waiting_for: BatchActionFilterWaitingFor | None = None
    """Those with a step that waits for it: see /instances/{id}/explain."""
    created_after: datetime | None = None
    """Exclusive."""
    created_before: datetime | None = None
    """Exclusive."""
    updated_after: datetime | None = None
    """Exclusive."""
    updated_before: datetime | None = None
    """Exclusive."""
    failure: str | None = None
    """A part of the message or code of its failure, in any case."""
    failure_code: str | None = None
    """The code of its failure."""
    failure_block: str | None = None
    """The block_id of its failure."""
    failure_handler: str | None = None
    """The handler of its failure."""
    failure_reason: str | None = None
    """The reason as /instances/failures tells it."""
    metadata: dict[str, str] | None = None
    states: list[InstanceState] | None = None


class BatchActionResult(Model):
    matched: int
    applied: int
    skipped: int
    failed: int
    dry_run: bool
    repeats_effects: int
    """With dry_run: those that would be retried, and repeat effects outside by that; else 0."""
    refusals: list[ChangeRefusal] | None = None
    """The first of those that failed, with the reasons; absent: none did."""


class BatchCreated(Model):
    count: int
    """Accepted items."""
    created: int
    """New ones among them."""


class BlockOutput(Model):
    """What a block left. attempt counts from 0."""

    id: str
    instance_id: str
    block_id: str
    output: Any
    output_ref: str | None
    output_size: int
    attempt: int
    iteration: str | None = None
    """The counters of the loops around it, as in 2.0."""
    created_at: datetime


class BlocksInjected(Model):
    injected_block_ids: list[str]
    position: int
    total_injected: int
    warnings: list[DefinitionWarning] | None = None
    """At most 100; one more says how many are left out."""


class BulkJob(Model):
    """A change of many instances that goes on behind its answer."""

    id: str
    tenant_id: str
    operation: BulkJobOperation
    request: dict[str, Any]
    """The body that asked for it."""
    state: BulkJobState
    matched: int
    """Matches that were found so far: the sum of the next three."""
    applied: int
    """How many were changed, or with dry_run would be."""
    skipped: int
    """Those that the change does not concern, or that are gone."""
    failed: int
    """Those whose change was refused."""
    repeats_effects: int
    """With dry_run: those that would be retried, and repeat effects outside by that; else 0."""
    error: str | None
    """Why a job that failed did not go on."""
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None


class BulkReschedule(Model):
    filter: BatchActionFilter
    offset_secs: int
    dry_run: bool | None = None
    """Only counts: nothing is changed. Default: False."""


class BulkState(Model):
    filter: BatchActionFilter
    state: InstanceState
    dry_run: bool | None = None
    """Only counts: nothing is changed. Default: False."""
    orphans: bool | None = None
    """Also retry children whose parents have gone on without them: nobody takes what they come
    to. Else they are skipped. Default: False.
    """


class BulkUpdated(Model):
    count: int
    """How many were changed, or with dry_run would be."""
    updated: int
    """The same as count, for older clients; 0 with dry_run."""
    dry_run: Literal[True] | None = None
    repeats_effects: int | None = None
    """Absent: 0. With dry_run: those that would be retried, and repeat effects outside by that;
    else 0.
    """


class CancelHook(Model):
    """A step that runs in the server after an instance was cancelled."""

    type: Literal["step"]
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long it may take; no more than 30000, the default. Milliseconds."""
    handler: CancelHookHandler
    """A built-in handler: hooks have no tasks for workers."""
    params: dict[str, Any] | None = None
    """The parameters of the handler; what a built-in one always refuses is 400. noop: none. log:
    message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event: name
    (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST, PUT,
    PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message, retryable.
    transform: anything. assert: condition (required), message.
    """
    delay: Literal[False] | None = None
    """Not supported."""
    retry: Literal[False] | None = None
    """Not supported."""
    send_window: Literal[False] | None = None
    """Not supported."""
    rate_limit_key: Literal[False] | None = None
    """Not supported."""
    queue_name: Literal[False] | None = None
    """Not supported."""
    cancellable: Literal[False] | None = None
    """Not supported."""
    merge_output: Literal[False] | None = None
    """Not supported."""
    output_schema: Literal[False] | None = None
    """Not supported."""


class CancellationScopeBlock(Model):
    """Runs its blocks one after the other, and the signal cancel lets them end first."""

    type: Literal["cancellation_scope"] = "cancellation_scope"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    blocks: list[Block]
    """What runs."""


class Cancelling(Model):
    """Its end was asked for, or its time is over; protected work goes on, and then it ends."""

    since: datetime
    reason: CancellingReason
    waiting_for: list[str]


class Capsule(Model):
    """Says what was sealed, for whom and until when; signed by who sealed it."""

    manifest: CapsuleManifest
    manifest_sha256: str
    signature: str
    public_key: str


class CapsuleAttached(Model):
    handoff: Handoff
    destination_instance_id: str


class CapsuleImported(Model):
    instance_id: str
    state: Literal["paused"]
    import_receipt: ImportReceipt


class CapsuleManifest(Model):
    schema_: CapsuleManifestSchema = Field(alias="schema")
    capsule_id: str
    continuity_id: str
    source_instance_id: str
    epoch: int
    tenant_id: str
    source_runtime_id: str
    allowed_destination_runtime_id: str | None
    sequence: CapsuleManifestSequence
    checkpoint: CapsuleManifestCheckpoint
    requirements_sha256: str
    payload_artifact: PayloadArtifact
    provenance_head: str | None
    issued_at: datetime
    expires_at: datetime
    signing_key_id: str
    encryption_key_id: str


class CapsuleManifestCheckpoint(Model):
    block_id: str
    sha256: str


class CapsuleManifestSchema(Model):
    major: int
    minor: int


class CapsuleManifestSequence(Model):
    id: str
    version: int
    content_sha256: str


class Cell(Model):
    name: str
    """And of its schema."""
    state: CellState
    database_url: str
    """Without a password."""
    addresses: list[str]
    """Where proxies find its engines."""
    engines: list[CellEngine]
    tenants: int
    """That are settled there."""
    moves_under_way: int
    """From it or to it."""
    created_at: datetime


class CellEngine(Model):
    """As the engine last said of itself."""

    address: str
    role: CellEngineRole
    version: str
    lag_ms: int | None
    """How long its writer takes for what is not committed yet; null: it does not write."""
    seen_at: datetime
    is_silent: bool
    """It has said nothing for 15 seconds: it is taken for gone."""


class Cells(Model):
    cluster: bool
    """Without one there are no cells to list."""
    own: str
    """The cell of the engine that answers."""
    cells: list[Cell]


class ChangeRefusal(Model):
    instance_id: str
    error: str
    """As the answer to a change of this instance alone says it."""


class ChangedCall(Model):
    block_id: str
    member: str
    """handler, or a path such as params.body.amount."""


class Changes(Model):
    changes: list[AuditEntry]
    next_cursor: str | None = None
    has_more: bool


class Checkpoint(Model):
    id: str
    instance_id: str
    checkpoint_data: Any
    created_at: datetime


class CheckpointBoundary(Model):
    """A checkpoint at one of the epochs of its instance."""

    checkpoint_id: str
    instance_id: str
    continuity_id: str
    epoch: int
    sequence_id: str
    sequence_version: int
    block_id: str
    checkpoint_sha256: str
    provenance_head: str | None
    created_at: datetime


class CheckpointBoundaryDetail(Model):
    """Whatever looks like a secret is [REDACTED] in the difference, and as it is in the data."""

    boundary: CheckpointBoundary
    checkpoint_data: Any
    previous_checkpoint_id: str | None
    redacted_state_diff: list[CheckpointBoundaryDetailRedactedStateDiff]


class CheckpointBoundaryDetailRedactedStateDiff(Model):
    path: str
    before: Any
    after: Any


class CheckpointSaved(Model):
    id: str


class CheckpointsPruned(Model):
    count: int
    dry_run: Literal[True] | None = None


class ClaimExecution(Model):
    tenant_id: str | None = None
    ownership_grant: OwnershipGrant


class CompareSequences(Model):
    tenant_id: str | None = None
    baseline_sequence_id: str
    candidate_sequence_id: str


class CompleteTask(Model):
    """The output is stored, and its top-level keys are merged into context.data."""

    worker_id: str
    """That of the claim."""
    output: dict[str, Any]
    claim_epoch: int | None = None
    """That of the claim; asked for by some deployments."""
    logs: list[CompleteTaskLog] | None = None


class CompleteTaskLog(Model):
    ts: datetime | None = None
    level: str | None = None
    message: str


class CompleteTaskResult(Model):
    kind: Literal["complete"] = "complete"
    task_id: str
    output: dict[str, Any]
    claim_epoch: int | None = None
    """That of the claim; asked for by some deployments."""
    logs: list[CompleteTaskLog] | None = None


class ContextPatched(Model):
    context: InstanceContext


class ContinuityExecution(Model):
    """The portable identity of an instance. Its epoch grows with each change of owner or
    version.
    """

    continuity_id: str
    tenant_id: str
    current_instance_id: str
    owner_runtime_id: str
    epoch: int
    state: ContinuityExecutionState
    updated_at: datetime


class ContinuityLocation(Model):
    continuity_id: str
    tenant_id: str
    epoch: int
    runtime_id: str
    instance_id: str
    handoff_id: str | None
    entered_at: datetime


class CreateBatch(Model):
    """All are created, or none."""

    instances: list[CreateInstance]


class CreateCredential(Model):
    tenant_id: str | None = None
    """The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces
    and tabs around it.
    """
    id: str | None = None
    """The name when absent. By which templates name it: {{secrets.id}}. Letters, digits, dots, _
    and -. Not . or ..
    """
    name: str | None = None
    """The id when absent."""
    value: str
    """The secret: a text, at most 262144 bytes. Of one that is a JSON object, templates may name
    a member: {{secrets.id.member}}. No answer ever has it. Not [REDACTED].
    """
    kind: CredentialKind | None = None
    """For people; nothing follows from it. Default: "api_key"."""
    description: str | None = None
    expires_at: datetime | None = None
    """From then on it is as if it did not exist."""
    refresh_url: str | None = None
    """Kept for those who renew it, with oauth2 only. A public address."""
    refresh_token: str | None = None
    """Kept like the value, and as secret. Not [REDACTED]."""


class CreateExecution(Model):
    tenant_id: str | None = None
    instance_id: str
    runtime_id: str


class CreateHandoff(Model):
    """Everything as it was previewed. policy and classification are other spellings."""

    tenant_id: str | None = None
    requirements: Requirements | None = None
    policy: LocalityPolicy | None = None
    locality_policy: LocalityPolicy | None = None
    classification: CreateHandoffClassification | None = None
    data_classification: CreateHandoffClassification | None = None
    """Default: "internal"."""
    continuity_id: str | None = None
    placement_decision_id: str
    preview_sha256: str
    destination_runtime_id: str


class CreateInstance(Model):
    """Of a creation, alone or in a batch. Exactly one of sequence_id and sequence; version goes
    with sequence.
    """

    sequence_id: str | None = None
    """Of this version, from which a release may lead to another one. Exactly one of sequence_id
    and sequence must be there.
    """
    sequence: str | None = None
    """The name of a sequence of the namespace, in place of sequence_id."""
    version: int | None = None
    """With sequence: pins this version of it, from which no release leads elsewhere. When
    absent: the newest that is not deprecated, not on hold, and that no release holds back.
    """
    tenant_id: str
    """The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces
    and tabs around it.
    """
    namespace: str
    priority: Priority | None = None
    """Any case is accepted. Default: "normal"."""
    timezone: str | None = None
    """IANA time zone, such as Europe/Berlin. Default: "UTC"."""
    metadata: dict[str, Any] | None = None
    context: CreateInstanceContext | None = None
    """At most 256 KiB as JSON, unless the deployment sets another limit."""
    next_fire_at: datetime | None = None
    """When to start; now when absent."""
    timeout: int | None = None
    """How long it may take from its first step on, pauses not counted; past it, it fails.
    Milliseconds.
    """
    concurrency_key: str | None = None
    """Instances of the tenant with this key share their slots."""
    max_concurrency: int | None = None
    """How many of them run at once."""
    idempotency_key: str | None = None
    """When an instance of the tenant has it, the answer names that one with deduplicated true.
    An empty text stands for none.
    """
    dry_run: bool | None = None
    """Default: False."""
    dry_run_auto_approve: bool | None = None
    """Of a dry run: whoever is asked gives the first choice, at once. Default: False."""
    budget: Literal[False] | None = None
    """Not supported."""


class CreateInstanceContext(Model):
    """At most 256 KiB as JSON, unless the deployment sets another limit."""

    data: dict[str, Any] | None = None
    config: dict[str, Any] | None = None


class CreateRelease(Model):
    """Baseline and candidate are versions of one name in one namespace."""

    tenant_id: str | None = None
    """The same as in the header x-tenant-id when that is sent."""
    baseline_sequence_id: str
    candidate_sequence_id: str
    gates: list[Gate] | None = None
    """Default: []."""
    in_flight_policy: CreateReleaseInFlightPolicy | None = None
    """Neither moves a running instance: with operator_decision an operator migrates them
    explicitly. Default: "pin".
    """


class CreateSchedule(Model):
    """A schedule that creates an instance of the sequence at each of its instants. Exactly one
    of sequence_id and sequence; version goes with sequence.
    """

    tenant_id: str
    """Not . or .., and without spaces and tabs around it."""
    namespace: str
    sequence_id: str | None = None
    """Of this version, from which a release may lead to another one. Exactly one of sequence_id
    and sequence must be there.
    """
    sequence: str | None = None
    """The name of a sequence of the namespace, in place of sequence_id."""
    version: int | None = None
    """With sequence: pins this version of it, from which no release leads elsewhere. When
    absent: the newest that is not deprecated, not on hold, and that no release holds back.
    """
    cron_expr: str
    """Seven fields: second minute hour day month day_of_week year. Six (without year), five
    (without second and year), ? and @hourly, @daily, @weekly, @monthly, @yearly are taken
    too.
    """
    timezone: str | None = None
    """IANA time zone, such as Europe/Berlin. Default: "UTC"."""
    metadata: dict[str, Any] | None = None
    """Copied to the instances that it creates."""
    context: CreateInstanceContext | None = None
    """What its instances begin with; the input_schema must accept its data."""
    timeout: int | None = None
    """How long it may take from its first step on, pauses not counted; past it, it fails.
    Milliseconds.
    """
    priority: Priority | None = None
    """Any case is accepted. Default: "normal"."""
    enabled: bool | None = None
    """Default: True."""
    overlap_policy: OverlapPolicy | None = None
    """What a fire does while an earlier run has not ended. Default: "allow"."""


class CreateSequence(Model):
    """A definition; immutable once stored."""

    id: str | None = None
    """Made by the server when absent."""
    tenant_id: str
    """Must be there, may be blank when the header x-tenant-id is sent; else both must be the
    same. Not . or .., and without spaces and tabs around it.
    """
    namespace: str
    name: str
    version: int
    """Unique together with tenant, namespace and name."""
    blocks: list[Block]
    """At most 5000 blocks in all, nested at most 64 levels deep."""
    deprecated: bool | None = None
    """Default: False."""
    hold: bool | None = None
    """No name leads to it: only its id, or its name with version, until the hold is lifted or a
    release promotes it. Default: False.
    """
    status: SequenceStatus | None = None
    """Default: "production"."""
    input_schema: dict[str, Any] | None = None
    """What context.data of a new instance must conform to, else 422. JSON Schema 2020-12 without
    pattern, patternProperties and recursive references. At most 65536 bytes, and with
    references followed 5000 values, 1000 schemas, keywords and listed names, and 100 schemas
    within one another.
    """
    created_at: datetime | None = None
    on_failure: list[FailureHook] | None = None
    """What runs in the server after an instance has failed, one after the other, whatever each
    comes to.
    """
    on_cancel: list[CancelHook] | None = None
    """What runs in the server after an instance was cancelled, one after the other, whatever
    each comes to.
    """
    interceptors: Literal[False] | None = None
    """Not supported."""
    sla: Literal[False] | None = None
    """Not supported."""


class CreateSubscription(Model):
    tenant_id: str | None = None
    """The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces
    and tabs around it.
    """
    url: str
    """http or https, without credentials; a public address unless the deployment says else."""
    events: list[WebhookEvent] | None = None
    """All that there are when absent."""
    secret: str | None = None
    """Made by the server when absent. What its webhooks are signed with. Not [REDACTED]."""


class CreateTrigger(Model):
    slug: str
    """Part of the address, unique on the server: letters, digits, dots, _, ~ and -. Not . or .."""
    tenant_id: str
    """The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces
    and tabs around it.
    """
    sequence_name: str
    """Looked up at each fire."""
    version: int | None = None
    """Pins this version. When absent: as a creation by name chooses one."""
    namespace: str | None = None
    """Default: "default"."""
    trigger_type: TriggerType | None = None
    """webhook: by a signed request to /webhooks/{slug}. event: by every event with a name.
    Default: "webhook".
    """
    secret: str | None = None
    """What callers prove themselves with. No answer ever has it. Not [REDACTED]."""
    config: dict[str, Any] | None = None
    """Of an event trigger: event_name, and correlation_key if only events with that key start
    it.
    """
    enabled: bool | None = None
    """Default: True."""


class Credential(Model):
    """Without what is secret in it."""

    id: str
    tenant_id: str
    name: str
    kind: CredentialKind
    description: str | None
    enabled: bool
    expires_at: datetime | None
    refresh_url: str | None
    has_refresh_token: bool
    created_at: datetime
    updated_at: datetime


class CronSchedule(Model):
    id: str
    tenant_id: str
    namespace: str
    sequence_id: str | None
    sequence: str | None
    version: int | None
    cron_expr: str
    timezone: str
    enabled: bool
    metadata: dict[str, Any]
    context: CronScheduleContext
    priority: ShownPriority
    timeout: int | None
    overlap_policy: OverlapPolicy
    """What a fire does while an earlier run has not ended."""
    skipped_fires: int
    last_skipped_at: datetime | None
    last_triggered_at: datetime | None
    next_fire_at: datetime | None
    last_error: str | None
    created_at: datetime
    updated_at: datetime


class CronScheduleContext(Model):
    data: dict[str, Any]
    config: dict[str, Any]


class DefinitionRefused(Model):
    """The lists are there when the definition was validated, or stored strictly; each only if it
    has any.
    """

    error: str
    """Has the first ten, with what was probably meant."""
    errors: list[DefinitionWarning] | None = None
    """At most 100; one more says how many are left out."""
    warnings: list[DefinitionWarning] | None = None
    """At most 100; one more says how many are left out."""


class DefinitionWarning(Model):
    """Something in a definition that is or may be a mistake."""

    path: str
    """Such as blocks[2].branches[0][1].retry.initialBackoff."""
    message: str
    suggestion: str | None = None
    """What was probably meant."""


class Delay(Model):
    """Waits before the first try."""

    duration: int | None = None
    """How long to wait. Milliseconds."""
    fire_at_local: str | None = None
    """Waits until this time: YYYY-MM-DDTHH:MM:SS. Not together with a duration."""
    timezone: str | None = None
    """Of fire_at_local; else the zone of the instance. IANA time zone, such as Europe/Berlin."""
    business_days_only: bool | None = None
    """Saturdays, Sundays and holidays move the end of the wait to the next business day.
    Default: False.
    """
    jitter: int | None = None
    """The end of the wait is moved by a random time, by at most this much either way.
    Milliseconds.
    """
    holidays: list[str] | None = None
    """Days that are no business days, beside those in context.config.holidays."""


class DeliveryAttempt(Model):
    id: str
    delivery_id: str
    url: str
    event_type: WebhookEvent
    instance_id: str | None = None
    attempt_number: int
    """Counts from 1."""
    attempted_at: datetime
    duration_ms: int
    success: bool
    status_code: int | None = None
    error_class: DeliveryAttemptErrorClass | None = None
    error_excerpt: str | None = None
    signed: bool
    subscription_id: str | None = None


class DeliverySummary(Model):
    delivery_id: str
    url: str
    event_type: WebhookEvent
    instance_id: str | None = None
    attempts: int
    delivered: bool
    first_attempted_at: datetime
    last_attempted_at: datetime
    status_code: int | None = None
    error_class: DeliveryAttemptErrorClass | None = None
    subscription_id: str | None = None


class DiffEntry(Model):
    category: DiffEntryCategory
    severity: DiffEntrySeverity
    block_id: str | None = None
    summary: str


class Divergence(Model):
    """A run that went another way with the candidate."""

    instance_id: str
    recorded_state: InstanceState
    replayed_state: InstanceState
    blocks_added: list[str]
    blocks_removed: list[str]
    calls_changed: list[ChangedCall] | None = None
    """Steps that ask for something else than was recorded; left out without any."""


class EffectReceipt(Model):
    """What a try of a step did outside: prepared while nobody has it, dispatched while somebody
    is at it, then committed, failed where that is known, or unknown.
    """

    id: str
    tenant_id: str
    continuity_id: str
    epoch: int
    instance_id: str
    block_id: str
    attempt: int
    kind: EffectReceiptKind
    state: EffectReceiptState
    destination_fingerprint: str
    idempotency_key: str | None
    request_sha256: str
    provider_receipt_id: str | None
    created_at: datetime
    updated_at: datetime


class EndedCounts(Model):
    """How many instances of a version ended, and how."""

    total: int
    completed: int
    failed: int
    cancelled: int


class ErrorBody(Model):
    """The body of every answer that is not a success. That of a migration that is refused also
    has its verdict and findings (MigrationFinding).
    """

    error: str


class EvaluationReport(Model):
    """Ended instances since the canary began, and what the gates say of them. baseline_history:
    the newest runs of the baseline before the canary, for gates that have too few since then.
    """

    baseline: EndedCounts
    baseline_history: EndedCounts | None = None
    candidate: EndedCounts
    gates: list[GateJudgement]
    auto_rolled_back: bool
    release_state: ReleaseState


class EventDetails(Model):
    id: str
    tenant_id: str
    event_name: str
    producer_event_id: str
    correlation_key: str | None
    payload: Any
    """What looks like a secret is not shown."""
    status: EventDetailsStatus
    matched: int
    """How many steps it was for."""
    created_at: datetime
    expires_at: datetime
    """Until then it is kept for a step that waits for it."""
    consumed_at: datetime | None
    taken_by: list[EventTaker]
    """The first ones that are still there."""


class EventReceipt(Model):
    """What became of an event when it came."""

    event_id: str
    duplicate: bool
    """An event with this producer_event_id came before; the receipt is about that one."""
    matched_wait: str | None = None
    """The first wait that it is for."""
    satisfied: bool
    """Some step waited for it."""
    matched: int
    """How many steps did."""
    triggers: int | None = None
    """How many triggers it fires; absent: none, or it came before."""


class EventReceipts(Model):
    outcomes: list[EventReceipt]
    """In the order of the events."""


class EventTaker(Model):
    instance_id: str
    block_id: str
    outcome: EventTakerOutcome
    """refused: the payload was none for the step, which went on waiting."""
    taken_at: datetime


class ExchangeTasks(Model):
    """What came of earlier tasks, and a poll for new ones; either may be absent."""

    worker_id: str
    version: str | None = None
    results: list[TaskResult] | None = None
    """Each is judged for itself, in this order."""
    poll: ExchangeTasksPoll | None = None
    """Tasks of any of the handlers, by priority of their instances, then age. At most 100 pairs
    of a handler and a queue.
    """
    end_polls: bool | None = None
    """The worker stops: its polls that wait are answered at once, with what they have. Default:
    False.
    """


class ExchangeTasksPoll(Model):
    """Tasks of any of the handlers, by priority of their instances, then age. At most 100 pairs
    of a handler and a queue.
    """

    handlers: list[str]
    queues: list[str] | None = None
    """Only tasks of these queues; absent: of every queue and none."""
    limit: int | None = None
    """0 gives none. Larger values are lowered to 1000. Default: 1."""
    wait_ms: int | None = None
    """How long to wait for a task when there is none. A result that is refused ends the wait.
    Larger values are lowered to 60000. Default: 0.
    """


class ExplanationWarning(Model):
    kind: Literal["output_truncated"]
    """An output was too large: expressions see a note instead."""
    block_id: str
    summary: str


class ExportHandoff(Model):
    tenant_id: str | None = None
    requirements: Requirements | None = None
    """Those of the placement decision."""
    expires_in_seconds: int | None = None
    """Default: 300."""
    payload_key_base64: str | None = None
    """32 bytes that the destination made for this once; without it only a server with the same
    encryption key opens the capsule.
    """
    capture_checkpoint: bool | None = None
    """First save a checkpoint of the live state. Default: False."""


class FailTask(Model):
    worker_id: str
    """That of the claim."""
    message: str
    retryable: bool | None = None
    """Default: False."""
    claim_epoch: int | None = None
    """That of the claim; asked for by some deployments."""
    logs: list[CompleteTaskLog] | None = None


class FailTaskResult(Model):
    kind: Literal["fail"] = "fail"
    task_id: str
    message: str
    retryable: bool | None = None
    """Default: False."""
    claim_epoch: int | None = None
    """That of the claim; asked for by some deployments."""
    logs: list[CompleteTaskLog] | None = None


class Failure(Model):
    """Why it failed. block_id, path, handler and attempt are null when no block was the reason."""

    block_id: str | None
    """The block that failed, not those around it."""
    path: str | None
    """From the outermost block, as in orders[2]/charge."""
    handler: str | None
    """Of a step."""
    attempt: int | None
    """Of a step: the try, from 0."""
    code: FailureCode
    message: str
    at: datetime


class FailureGroup(Model):
    """Instances that failed for the same reason. Lists and changes of many select just these by
    sequence_id, failure_code, failure_block, failure_handler and failure_reason.
    """

    namespace: str
    sequence_id: str
    sequence_name: str
    version: int
    block_id: str | None
    handler: str | None
    code: str
    """As in the failure of an instance."""
    reason: str
    """The message, with # for numbers and ids, and "…" for what is quoted."""
    count: int
    first_at: datetime
    last_at: datetime
    example_instance_id: str
    """The newest."""
    example_message: str


class FailureGroups(Model):
    groups: list[FailureGroup]
    """The largest first, at most 200."""
    looked_at: int
    """The newest failed instances, at most 10000."""
    complete: bool
    """Whether there are no more failed instances, and no more groups."""


class FailureHook(Model):
    """A step that runs in the server after an instance has failed."""

    type: Literal["step"]
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long it may take; no more than 30000, the default. Milliseconds."""
    handler: CancelHookHandler
    """A built-in handler: hooks have no tasks for workers."""
    params: dict[str, Any] | None = None
    """The parameters of the handler; what a built-in one always refuses is 400. noop: none. log:
    message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event: name
    (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST, PUT,
    PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message, retryable.
    transform: anything. assert: condition (required), message.
    """
    delay: Literal[False] | None = None
    """Not supported."""
    retry: Literal[False] | None = None
    """Not supported."""
    send_window: Literal[False] | None = None
    """Not supported."""
    rate_limit_key: Literal[False] | None = None
    """Not supported."""
    queue_name: Literal[False] | None = None
    """Not supported."""
    cancellable: Literal[False] | None = None
    """Not supported."""
    merge_output: Literal[False] | None = None
    """Not supported."""
    output_schema: Literal[False] | None = None
    """Not supported."""


class FindingOfMany(Model):
    """What keeps some of them where they are."""

    code: str
    count: int
    """Instances."""
    summary: str
    """Of the first one."""
    remedy: str
    example_ids: list[str]


class ForEachBlock(Model):
    """Runs its body for each item of an array of context.data."""

    type: Literal["for_each"] = "for_each"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    collection: str
    """A path in context.data, or a template, of an array. Missing or empty: nothing runs."""
    item_var: str | None = None
    """The key of context.data under which the body sees the item. Not __proto__, constructor or
    prototype. Default: "item".
    """
    body: list[Block]
    """What runs for each item."""
    index_var: str | None = None
    """The key of context.data under which the body sees the number of the item, counted from 0.
    Not __proto__, constructor or prototype.
    """
    concurrency: int | None = None
    """How many items run at once. Default: 1."""
    max_iterations: int | None = None
    """A longer collection fails the block before its first item. Default: 1000."""


class ForkInstance(Model):
    from_block_id: str
    context: dict[str, Any] | None = None
    """For context.data, before anything runs."""
    context_mode: ForkInstanceContextMode | None = None
    """merge: member by member; replace: in place of all data. Default: "merge"."""
    dry_run: bool | None = None
    """Default: True."""
    signals: list[SendSignal] | None = None


class Gate(Model):
    """Judged once both versions have min_sample ended instances: it fails when the rate of the
    candidate is above that of the baseline by more than max_regression.
    """

    metric: GateMetric
    """error_rate: failed among all that ended; cancel_rate: cancelled among them."""
    max_regression: float
    """By how much the rate of the candidate may exceed that of the baseline, 0 to 1."""
    min_sample: int
    """How many ended instances each version needs for a verdict."""


class GateChoice(Model):
    label: str
    """What the person reads."""
    value: str
    """What the answer is then."""


class GateJudgement(Model):
    """What a gate says of both versions."""

    gate: Gate
    baseline_rate: float | None = None
    candidate_rate: float | None = None
    verdict: GateJudgementVerdict


class GateReport(Model):
    """Ended instances since the canary began, and what the gates say of them now.
    baseline_history: the newest runs of the baseline before the canary, for gates that have
    too few since then.
    """

    baseline: EndedCounts
    baseline_history: EndedCounts | None = None
    candidate: EndedCounts
    gates: list[GateJudgement]


class HandlerNames(Model):
    builtin: list[str]
    external: list[str]


class Handoff(Model):
    id: str
    continuity_id: str
    tenant_id: str
    source_runtime_id: str
    destination_runtime_id: str
    expected_epoch: int
    state: HandoffState
    capsule_id: str | None
    placement_decision_id: str
    preview_sha256: str
    version: int
    failure_code: str | None
    data_classification: CreateHandoffClassification
    locality_policy: LocalityPolicy | None = None
    requirements: Requirements
    created_at: datetime
    updated_at: datetime


class HandoffAccepted(Model):
    handoff: Handoff
    execution: ContinuityExecution
    ownership_grant: OwnershipGrant | None = None


class HandoffExported(Model):
    handoff: Handoff
    capsule: Capsule
    payload_base64: str


class HandoffPreview(Model):
    """Holds as long as nothing of what it was computed from changes: the execution, its effects,
    what the destination offers, and the policy. Other runtimes, and a registration with the
    same facts, stale nothing.
    """

    continuity_id: str
    source_runtime_id: str
    destination_runtime_id: str
    compatible: bool
    findings: list[HandoffPreviewFinding]
    unresolved_effects: list[EffectReceipt]
    placement_decision: PlacementDecision
    placement_decision_id: str
    preview_sha256: str


class HandoffPreviewFinding(Model):
    code: str
    status: HandoffPreviewFindingStatus
    summary: str
    remedy: str | None = None
    """What would change that, where the execution itself is in the way."""


class Health(Model):
    status: Literal["ok"]


class HeartbeatAccepted(Model):
    checkpoint_seq: int


class HeartbeatTask(Model):
    """A checkpoint needs the checkpoint_seq that the last answer gave. A checkpoint needs
    checkpoint_seq.
    """

    worker_id: str
    """That of the claim."""
    claim_epoch: int | None = None
    """That of the claim; asked for by some deployments."""
    checkpoint_seq: int | None = None
    checkpoint: dict[str, Any] | None = None
    release: bool | None = None
    """Gives the claim back: the task waits for a worker again, at once. Default: False."""


class HeartbeatTaskResult(Model):
    """A checkpoint needs checkpoint_seq."""

    kind: Literal["heartbeat"] = "heartbeat"
    task_id: str
    claim_epoch: int | None = None
    """That of the claim; asked for by some deployments."""
    checkpoint_seq: int | None = None
    checkpoint: dict[str, Any] | None = None
    release: bool | None = None
    """Gives the claim back: the task waits for a worker again, at once. Default: False."""


class ImportCapsule(Model):
    tenant_id: str | None = None
    destination_runtime_id: str
    expected_epoch: int
    destination_instance_id: str | None = None
    """Made by the server when absent."""
    capsule: Capsule
    payload_base64: str | None = None
    """When absent, what this server sealed itself is taken."""
    payload_key_base64: str | None = None


class ImportReceipt(Model):
    """A signed statement: this server holds the instance of the capsule."""

    statement: str
    """Canonical JSON of what is stated."""
    public_key: str
    signature: str


class InconclusiveRun(Model):
    instance_id: str
    reason: str


class Info(Model):
    version: str
    storage_schema_version: int
    contract_schema_version: int
    cell: str
    cluster: bool
    env_label: str | None
    env_color: str | None
    encryption_key: str | None = None


class InjectBlocks(Model):
    blocks: list[Block]
    """At most 1 MiB as JSON over all injections of an instance."""
    position: int | None = None


class InstanceContext(Model):
    """Of data, config and audit together 256 KiB at most, unless set otherwise."""

    data: dict[str, Any]
    config: dict[str, Any]
    audit: list[Any]
    runtime: InstanceContextRuntime


class InstanceContextRuntime(Model):
    instance_id: str | None = None
    run_id: str | None = None
    current_step: str | None = None
    attempt: int | None = None
    started_at: datetime | None = None
    current_step_started_at: datetime | None = None
    total_steps_executed: int | None = None
    dry_run: bool | None = None
    dry_run_auto_approve: bool | None = None


class InstanceCreated(Model):
    id: str
    deduplicated: bool
    """True: the id is that of an instance that was there already."""


class InstanceExplanation(Model):
    id: str
    sequence_id: str
    state: InstanceState
    since: datetime
    """Of the state."""
    summary: str
    """What it is doing, in a sentence for people."""
    waiting_for: list[Wait]
    waiting_count: int
    """Of all that it waits for."""
    failure: Failure | None
    cancelling: Cancelling | None = None
    parent_instance_id: str | None = None
    """Whose sub_sequence started it; absent: it stands for itself."""
    next: list[NextAction]
    warnings: list[ExplanationWarning] | None = None
    """What may make it do something else than was meant; absent: nothing."""


class InstanceForked(Model):
    id: str
    forked_from: str
    state: Literal["scheduled"]
    copied_blocks: list[str]
    rerun_blocks: list[str]
    dry_run: bool


class InstanceMigrated(Model):
    migrated: Literal[True]
    instance_id: str
    from_sequence_id: str
    to_sequence_id: str


class InstanceRetried(Model):
    id: str
    state: Literal["scheduled"]


class InstancesMigrated(Model):
    """What became of the instances that this call has looked at."""

    count: int
    """All of them."""
    automatic: int
    """Those that could go over."""
    migrated: int
    """Those that did: none in a dry run."""
    approval_required: int
    """Those that go over when they are approved."""
    pinned: int
    incompatible: int
    failed: int
    """Refused for another reason, such as a step at work: ask again."""
    findings: list[FindingOfMany]
    migrations: list[MigrationOfMany]
    """Of those that did, in no order."""
    done: bool
    """False: there are more, behind next_cursor."""
    next_cursor: str | None
    dry_run: bool


class ItemCounts(Model):
    """Of a for_each that is open."""

    total: int
    running: int
    ended: int


class KeyMinted(Model):
    id: str
    """ak_ and 32 hexadecimal digits."""
    tenant_id: str
    name: str
    capabilities: list[Capability]
    secret: str
    """sk_ and 64 hexadecimal digits; shown this once."""
    created_at: datetime
    expires_at: datetime | None


class LocalityPolicy(Model):
    """Where data of a classification may go; all rules of it hold together."""

    version: int
    rules: list[LocalityPolicyRule]


class LocalityPolicyRule(Model):
    classification: CreateHandoffClassification
    allowed_runtime_ids: list[str] | None = None
    allowed_runtime_kinds: list[RuntimeKind] | None = None
    allowed_regions: list[str] | None = None
    minimum_trust: RuntimeTrust | None = None
    require_offline: bool | None = None
    require_hardware: str | None = None
    """At most 256 bytes."""
    allowed_connectivity: list[RuntimeConnectivity] | None = None
    minimum_battery_percent: int | None = None
    maximum_cost_microunits: int | None = None
    maximum_latency_ms: int | None = None


class LoopBlock(Model):
    """Repeats its body while the condition holds."""

    type: Literal["loop"] = "loop"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    condition: str
    """Asked before each iteration; the loop ends when it does not hold."""
    body: list[Block]
    """What is repeated."""
    max_iterations: int | None = None
    """The loop ends, successfully, after this many. Default: 1000."""
    break_on: Literal[False] | None = None
    """Not supported."""
    poll_interval: Literal[False] | None = None
    """Not supported."""
    continue_on_error: Literal[False] | None = None
    """Not supported."""
    retain_iterations: Literal[False] | None = None
    """Not supported."""


class MakeApprovalLink(Model):
    expires_in_seconds: int | None = None
    """Default: 604800."""
    value: str | None = None
    """The link answers this and nothing else. One of the values of its choices."""
    recipient: str | None = None
    """Whom the link is for: noted as who answered."""


class MigrateInstance(Model):
    instance_id: str
    target_sequence_id: str


class MigrateInstances(Model):
    """version or sequence_id must be there; with both, the sequence has that version."""

    version: int | None = None
    """Of the same sequence."""
    sequence_id: str | None = None
    """The version that it goes over to."""
    to_sequence_id: str | None = None
    """The same as sequence_id."""
    target_sequence_id: str | None = None
    """The same as sequence_id."""
    filter: BatchActionFilter | None = None
    approved: bool | None = None
    """Also where the verdict is approval_required. Default: False."""
    dry_run: bool | None = None
    """Only judges: nothing is changed. Default: False."""
    limit: int | None = None
    """Instances that one call looks at. Default: 200."""
    cursor: str | None = None
    """next_cursor of the call before. An empty text stands for none."""


class MigrateTo(Model):
    """version or sequence_id must be there; with both, the sequence has that version."""

    tenant_id: str | None = None
    version: int | None = None
    """Of the same sequence."""
    sequence_id: str | None = None
    """The version that it goes over to."""
    to_sequence_id: str | None = None
    """The same as sequence_id."""
    target_sequence_id: str | None = None
    """The same as sequence_id."""
    transforms: list[Transform] | None = None
    """Default: []."""
    approved: bool | None = None
    """Also where the verdict is approval_required. Default: False."""
    rollback_retention_seconds: int | None = None
    """At least 60 and at most 2,592,000; 86,400 by default. Default: 86400."""
    dry_run: bool | None = None
    """Only judges: nothing is changed. Default: False."""


class MigratedInstance(Model):
    """migrated is false for a dry run, and where the instance has that version already."""

    migrated: bool
    instance_id: str
    from_: MigratedInstanceFrom = Field(alias="from")
    to: MigratedInstanceFrom
    verdict: MigratedInstanceVerdict
    finding_codes: list[str]
    findings: list[MigrationFinding]
    state: InstanceState
    """Of the instance, which it keeps."""
    migration_id: str | None
    """What can be rolled back; null when nothing was migrated."""
    rollback_expires_at: datetime | None
    """Null when it cannot be rolled back."""
    dry_run: Literal[True] | None = None


class MigratedInstanceFrom(Model):
    sequence_id: str
    version: int


class MigrationFinding(Model):
    """Something that keeps a migration from being automatic."""

    code: str
    """Those that are in finding_codes, and further ones."""
    block_id: str | None
    path: str | None
    """With the passes of the loops around it."""
    summary: str
    remedy: str
    """What would change that."""


class MigrationOfMany(Model):
    """One that went over."""

    instance_id: str
    migration_id: str
    """What can be rolled back."""


class MigrationPlan(Model):
    """verdict, also named disposition: automatic may be applied, approval_required with approved
    true, pin and incompatible never.
    """

    id: str
    tenant_id: str
    continuity_id: str
    from_sequence_id: str
    from_version: int
    to_sequence_id: str
    to_version: int
    disposition: MigratedInstanceVerdict
    verdict: MigratedInstanceVerdict
    transforms: list[Transform]
    finding_codes: list[str]
    findings: list[MigrationFinding]
    """What keeps it from being automatic, in words; empty where nothing does."""
    rollback_capsule_required: bool
    created_at: datetime


class MigrationRecord(Model):
    """A plan, and what became of it."""

    plan: MigrationPlan
    expected_epoch: int
    source_checkpoint: Checkpoint
    source_context: dict[str, Any]
    source_state: InstanceState
    rollback_capsule: RollbackCapsule | None
    state: MigrationRecordState
    applied_epoch: int | None
    rollback_expires_at: datetime
    applied_at: datetime | None
    rolled_back_at: datetime | None


class MintKey(Model):
    tenant_id: str
    """Not . or .., and without spaces and tabs around it."""
    name: str | None = None
    """Default: ""."""
    capabilities: list[Capability]
    expires_at: datetime | None = None


class NextAction(Model):
    """A request that can be made now, and what it is good for."""

    action: str
    method: str
    path: str
    """Behind the base address of the API."""
    body: Any = None
    why: str
    runs_again: RunsAgain | None = None


class NextFires(Model):
    timezone: str
    fires: list[datetime]


class NotReady(Model):
    """`reason` is there when the database is why, with its SQLSTATE if it answered."""

    error: str
    reason: NotReadyReason | None = None


class NotReadyReason(Model):
    kind: NotReadyReasonKind
    sql_state: str | None = None


class OpenApiDocument(Model):
    openapi: str
    info: OpenApiDocumentInfo
    paths: OpenApiDocumentInfo


class OpenApiDocumentInfo(Model):
    pass


class OutboxEntry(Model):
    id: str
    url: str
    event_type: WebhookEvent
    instance_id: str | None = None
    payload: WebhookBody
    attempts: int
    last_error: str | None = None
    created_at: datetime
    delivery_id: str | None = None
    status: OutboxEntryStatus
    next_attempt_at: datetime | None = None
    claimed_at: datetime | None = None
    subscription_id: str | None = None


class OwnershipGrant(Model):
    """A signed statement: from this epoch on the destination owns the execution."""

    statement: str
    """Canonical JSON of what is stated."""
    public_key: str
    signature: str


class ParallelBlock(Model):
    """Runs all branches, at most 256; fails if one of them fails."""

    type: Literal["parallel"] = "parallel"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    branches: list[list[Block]]
    """Lists of blocks; all lists run."""


class PatchContext(Model):
    """Sections that are sent replace the stored ones; the others are kept."""

    context: PatchContextContext
    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 when it was changed since. When absent: whatever is
    there is changed.
    """


class PatchContextContext(Model):
    data: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    audit: list[Any] | None = None


class PatchState(Model):
    state: InstanceState
    next_fire_at: datetime | None = None
    """For a move to scheduled. When absent: now, or of a paused one when it would go on."""


class PayloadArtifact(Model):
    key: str
    sha256: str
    bytes: int


class PlaceExecution(Model):
    tenant_id: str | None = None
    requirements: Requirements | None = None
    policy: LocalityPolicy | None = None
    locality_policy: LocalityPolicy | None = None
    classification: CreateHandoffClassification | None = None
    data_classification: CreateHandoffClassification | None = None
    """Default: "internal"."""


class PlacementDecision(Model):
    """What was found of every live runtime of the tenant."""

    id: str
    tenant_id: str
    continuity_id: str
    epoch: int
    selected_runtime_id: str | None
    requirements: Requirements
    policy: LocalityPolicy | None = None
    classification: CreateHandoffClassification
    policy_version: int | None
    candidates: list[PlacementDecisionCandidate]
    created_at: datetime


class PlacementDecisionCandidate(Model):
    runtime_id: str
    outcome: PlacementDecisionCandidateOutcome
    score: int
    score_factors: PlacementDecisionCandidateScoreFactors
    finding_codes: list[str]


class PlacementDecisionCandidateScoreFactors(Model):
    trust: int
    current_runtime: int
    offline_capable: int
    battery_rank: int
    cost_rank: int
    latency_rank: int


class PlanMigration(Model):
    """What a checkpoint of the source has is moved to where the target looks for it."""

    tenant_id: str | None = None
    continuity_id: str
    to_sequence_id: str
    to_version: int
    """That of to_sequence_id, else 404."""
    transforms: list[Transform] | None = None
    """Default: []."""
    rollback_retention_seconds: int | None = None
    """At least 60 and at most 2,592,000; 86,400 by default. Default: 86400."""
    capture_checkpoint: bool | None = None
    """First save a checkpoint of the live state. Without one, and with none saved, 409. First
    save a checkpoint of the live state. Default: False.
    """


class PollQueue(Model):
    handler_name: str
    worker_id: str
    limit: int | None = None
    """0 gives none. Larger values are lowered to 1000. Default: 1."""
    wait_ms: int | None = None
    """How long to wait for a task when there is none. Larger values are lowered to 60000.
    Default: 0.
    """
    version: str | None = None
    queue_name: str


class PollTasks(Model):
    handler_name: str
    worker_id: str
    limit: int | None = None
    """0 gives none. Larger values are lowered to 1000. Default: 1."""
    wait_ms: int | None = None
    """How long to wait for a task when there is none. Larger values are lowered to 60000.
    Default: 0.
    """
    version: str | None = None


class PreviewHandoff(Model):
    tenant_id: str | None = None
    requirements: Requirements | None = None
    policy: LocalityPolicy | None = None
    locality_policy: LocalityPolicy | None = None
    classification: CreateHandoffClassification | None = None
    data_classification: CreateHandoffClassification | None = None
    """Default: "internal"."""
    destination_runtime_id: str


class PreviewSchedule(Model):
    cron_expr: str
    """Seven fields: second minute hour day month day_of_week year. Six (without year), five
    (without second and year), ? and @hourly, @daily, @weekly, @monthly, @yearly are taken
    too.
    """
    timezone: str | None = None
    """IANA time zone, such as Europe/Berlin. Default: "UTC"."""
    count: int | None = None
    """Default: 5."""
    from_: datetime | None = Field(default=None, alias="from")
    """Fires after this instant. When absent: after now."""


class PreviewedFire(Model):
    at: datetime
    """In UTC."""
    local: datetime
    """The same instant as clocks in the zone show it, with their offset."""


class PromoteRelease(Model):
    force: bool | None = None
    """Noted in the decision; evidence that does not pass is refused all the same. Default:
    False.
    """


class ProvenanceEntry(Model):
    """One decision; holds the hash of the entry before it."""

    id: str
    continuity_id: str
    tenant_id: str
    epoch: int
    kind: str
    redacted_summary: str | None = None
    payload_sha256: str
    previous_sha256: str | None
    entry_sha256: str
    signing_key_id: str | None
    signature: str | None
    created_at: datetime


class ProvenanceVerdict(Model):
    """code says what is wrong with the first entry that is not right."""

    valid: bool
    entries_checked: int
    first_invalid_index: int | None
    code: str | None
    head_sha256: str | None


class PruneCheckpoints(Model):
    keep: int
    dry_run: bool | None = None
    """Only counts: nothing is changed. Default: False."""


class PutRateLimit(Model):
    max_count: int
    window_seconds: int
    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 when it was changed since. When absent: whatever is
    there is changed.
    """


class PutTenantLimits(Model):
    bytes_per_second: int | None = None
    bytes_burst: int | None = None
    rows_per_second: int | None = None
    rows_burst: int | None = None
    blocks_per_second: int | None = None
    blocks_burst: int | None = None
    schedules_per_second: int | None = None
    schedules_burst: int | None = None
    schedules_max: int | None = None
    queue_depth_max: int | None = None
    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 when it was changed since. When absent: whatever is
    there is changed.
    """


class QueueInfo(Model):
    """The open tasks of a handler and a queue."""

    handler: str
    queue: str | None
    """Null: tasks without a queue."""
    waiting: int
    claimed: int
    oldest_waiting_since: datetime | None
    workers: int
    """Those alive that poll for such tasks; with 0 of them nobody serves it."""
    open_polls: int
    """Polls that wait for such a task now, and would be answered with it at once."""


class Queues(Model):
    queues: list[QueueInfo]
    """By handler and queue."""
    complete: bool
    """Whether there are no more open tasks than the oldest 20000, which are counted."""


class RaceBlock(Model):
    """first_to_resolve: the first branch that ends wins, whether it succeeds or fails;
    first_to_succeed: the first that succeeds, failures count once all failed. The other
    branches are cancelled.
    """

    type: Literal["race"] = "race"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    branches: list[list[Block]]
    """Lists of blocks; all lists run until one has won."""
    semantics: RaceBlockSemantics | None = None
    """Which branch wins. Default: "first_to_resolve"."""


class RateLimit(Model):
    tenant_id: str
    key: str
    max_count: int
    window_seconds: int
    updated_at: datetime


class RedeliverPreview(Model):
    url: str
    event_type: WebhookEvent
    payload_bytes: int
    will_be_signed: bool
    previous_delivery_id: str | None = None
    previous_attempts: int
    last_error: str | None


class Redelivered(Model):
    redelivered: Literal[True]
    delivery_id: str


class RegisterRuntime(Model):
    tenant_id: str | None = None
    capabilities: RegisterRuntimeCapabilities
    """observed_at at most 30 s ahead, expires_at at most 5 min after it. trust is unverified or
    registered. Of each list at most 256 entries of at most 256 bytes.
    """


class RegisterRuntimeCapabilities(Model):
    """observed_at at most 30 s ahead, expires_at at most 5 min after it. trust is unverified or
    registered. Of each list at most 256 entries of at most 256 bytes.
    """

    runtime_id: str
    kind: RuntimeKind
    trust: RegisterRuntimeCapabilitiesTrust
    handlers: list[str] | None = None
    plugins: list[str] | None = None
    credentials: list[str] | None = None
    regions: list[str] | None = None
    hardware: list[str] | None = None
    offline_capable: bool | None = None
    draining: bool | None = None
    connectivity: RuntimeConnectivity | None = None
    battery_percent: int | None = None
    estimated_cost_microunits: int | None = None
    estimated_latency_ms: int | None = None
    capsule_signing_public_key: str | None = None
    observed_at: datetime
    expires_at: datetime


class Release(Model):
    """Leads new instances from the baseline to the candidate."""

    id: str
    tenant_id: str
    namespace: str
    sequence_name: str
    baseline_sequence_id: str
    baseline_version: int
    candidate_sequence_id: str
    candidate_version: int
    state: ReleaseState
    canary_percent: int
    """What was asked for last; 0 before the first canary."""
    gates: list[Gate] | None = None
    """Left out when there are none."""
    in_flight_policy: CreateReleaseInFlightPolicy
    """Neither moves a running instance: with operator_decision an operator migrates them
    explicitly.
    """
    validation_summary: ValidationSummary | None = None
    canary_started_at: datetime | None = None
    """Of the last start of the canary; left out until the first."""
    created_at: datetime
    updated_at: datetime


class ReleaseDecision(Model):
    """A change of state; never altered."""

    id: str
    release_id: str
    from_state: ReleaseState
    to_state: ReleaseState
    actor: str
    """operator, validation, deprecation, or gate:<metric>."""
    reason: str
    decided_at: datetime


class ReleasePoint(Model):
    at: datetime
    """When the interval begins in which the instances were created."""
    variant: str
    """baseline or candidate."""
    ended: int
    failed: int
    cancelled: int
    error_rate: float
    cancel_rate: float
    duration_p50_ms: float
    """From creation to the end."""
    duration_p95_ms: float
    share: float
    """Of what has ended of both versions."""


class ReleaseSeries(Model):
    """Both versions since the canary began, in each interval in which instances were created
    that have ended.
    """

    since: datetime
    step_secs: int
    points: list[ReleasePoint]
    """Oldest first."""
    complete: bool
    """Whether there are no more ended instances than the newest 10000, which are counted."""


class Requirements(Model):
    """What a runtime must offer: all of each list, but any one of the regions."""

    handlers: list[str] | None = None
    plugins: list[str] | None = None
    credentials: list[str] | None = None
    regions: list[str] | None = None
    hardware: list[str] | None = None
    requires_network: bool | None = None
    requires_human_ui: bool | None = None
    minimum_trust: RuntimeTrust | None = None


class ResolveEffect(Model):
    tenant_id: str | None = None
    state: EffectReceiptState
    provider_receipt_id: str | None = None


class ResumeFrom(Model):
    context: dict[str, Any] | None = None
    """For context.data, before anything runs."""
    context_mode: ForkInstanceContextMode | None = None
    """merge: member by member; replace: in place of all data. Default: "merge"."""
    signals: list[SendSignal] | None = None


class ResumedFrom(Model):
    id: str
    state: Literal["scheduled"]
    resumed_from: str
    outputs_deleted: int
    signals_enqueued: int


class Retry(Model):
    """What is done after a failed try. initial_backoff must not be above max_backoff."""

    max_attempts: int
    """Tries in total."""
    initial_backoff: int | None = None
    """The wait after the first try. Milliseconds. Default: 1000."""
    max_backoff: int | None = None
    """No wait is longer. Milliseconds. Default: 60000."""
    backoff_multiplier: float | None = None
    """Each wait is this many times the one before. Default: 2."""
    retry_if: str | None = None
    """Asked after each failure, which it sees as _error. No further try if false."""
    non_retryable_codes: list[str] | None = None
    """An error with one of these codes is not tried again."""


class RetryInstance(Model):
    context: dict[str, Any] | None = None
    """For context.data, before anything runs."""
    context_mode: ForkInstanceContextMode | None = None
    """merge: member by member; replace: in place of all data. Default: "merge"."""


class RollbackCapsule(Model):
    capsule_id: str
    payload_artifact: PayloadArtifact
    manifest_sha256: str
    public_key: str
    signature: str


class Route(Model):
    condition: str
    """When the route is taken."""
    blocks: list[Block]
    """What runs then."""


class RouterBlock(Model):
    """Runs the blocks of the first route whose condition holds, else default. At least one route
    or a default.
    """

    type: Literal["router"] = "router"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    routes: list[Route] | None = None
    """Asked in order; the first that holds runs."""
    default: list[Block] | None = None
    """What runs when no condition holds."""


class RunSchedule(Model):
    idempotency_key: str | None = None
    """A repeated request of the same key is answered by the instance of the first one. An empty
    text stands for none.
    """


class RunsAgain(Model):
    """Of a retry, or a resume that is one: what it runs once more, and what it leaves as it is."""

    blocks: list[RunsAgainBlock]
    blocks_count: int
    """Of all that run again."""
    stays: list[str]
    """Paths of the outermost blocks that completed and do not run again."""
    stays_count: int
    """Of all that stay."""
    repeats_effects: bool
    """Whether something that had completed and acts outside runs a second time, or a child goes
    on whose parent has gone on without it: ask before.
    """
    parent: RunsAgainParent | None = None
    ends: RunsAgainEnds | None = None
    """What the instance comes to once this has gone well; absent: it goes on."""


class RunsAgainBlock(Model):
    """A block that a retry runs once more."""

    kind: RunsAgainBlockKind
    summary: str
    block_id: str
    path: str
    """From the outermost block, as in orders[2]/charge."""
    repeats: list[str]
    """Paths of steps that had completed and act outside once more, under other idempotency keys;
    of a child that is retried, in the child.
    """
    repeats_effects: bool
    """Whether what had happened outside happens once more."""
    child_id: str | None = None
    """The child that is retried, or whose end is taken or waited for; absent: none is, or
    another one is started.
    """
    cleans_up: Literal[True] | None = None
    """The child goes on only with what it has to clean up."""


class RunsAgainParent(Model):
    """Of a child that is retried by itself: what its parent makes of it."""

    id: str
    stands: RunsAgainParentStands
    summary: str


class RuntimeCapabilities(Model):
    """What a runtime says of itself; live until expires_at."""

    runtime_id: str
    kind: RuntimeKind
    trust: RuntimeTrust
    handlers: list[str] | None = None
    plugins: list[str] | None = None
    credentials: list[str] | None = None
    regions: list[str] | None = None
    hardware: list[str] | None = None
    offline_capable: bool
    draining: bool
    connectivity: RuntimeConnectivity | None = None
    battery_percent: int | None = None
    estimated_cost_microunits: int | None = None
    estimated_latency_ms: int | None = None
    capsule_signing_public_key: str | None = None
    observed_at: datetime
    expires_at: datetime


class SagaBlock(Model):
    """Runs its actions in order. When one fails, the compensations of those that completed run,
    the last one first, and the saga fails.
    """

    type: Literal["saga"] = "saga"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    steps: list[SagaStep]
    """Actions, each with what takes it back. None: the saga completes."""


class SagaStep(Model):
    id: str
    """Of the step of the saga; unique in the sequence, among those of blocks too. Not __proto__,
    constructor or prototype.
    """
    action: Block | list[Block]
    """A block, or a list of blocks."""
    compensation: Block | list[Block] | None = None
    """What takes back what the action did; likewise."""


class SaveCheckpoint(Model):
    checkpoint_data: Any
    """At most 256 KiB as JSON."""


class ScheduleCreated(Model):
    id: str
    next_fire_at: datetime | None


class SchedulePreview(Model):
    """Fewer fires than were asked for are the last ones that the expression has."""

    timezone: str
    fires: list[PreviewedFire]


class ScheduleRun(Model):
    id: str
    deduplicated: bool
    """True: the id is that of an instance that was there already."""
    instance_id: str


class SemanticDiff(Model):
    """What changes from one definition to another, the gravest first."""

    entries: list[DiffEntry]
    max_severity: DiffEntrySeverity | None = None
    entries_omitted: int | None = None
    """Present when there are more than 10000: the least severe are left out."""
    candidate_lint: list[str] | None = None


class SendEvent(Model):
    tenant_id: str | None = None
    """The same as in the header x-tenant-id when that is sent. Not . or .., and without spaces
    and tabs around it.
    """
    event_name: str
    producer_event_id: str
    """What the producer calls it: sent again, it is the same event."""
    correlation_key: str | None = None
    """Whom it is for: steps that wait for the name and this key."""
    payload: Any = None
    """What the steps give as their output."""
    ttl_seconds: int | None = None
    """How long it is kept for a step that has yet to wait for it. Default: 86400."""


class SendEvents(Model):
    events: list[SendEvent]


class SendSignal(Model):
    signal_type: str | SendSignalSignalType
    """pause, resume, cancel, update_context or custom:<name>, whose name is free. The form
    {"custom": name} is taken too.
    """
    payload: Any = None


class SendSignalSignalType(Model):
    custom: str


class SendWindow(Model):
    """Waits until an hour in which the step may start. The two hours must differ; a window may
    go over midnight.
    """

    start_hour: int | None = None
    """The first hour in which it is open. Default: 9."""
    end_hour: int | None = None
    """The hour in which it closes: no longer open. Default: 17."""
    days: list[int] | None = None
    """On which days: 0 is Monday, 6 is Sunday. Empty: every day."""


class SequenceCreated(Model):
    id: str
    warnings: list[DefinitionWarning] | None = None
    """At most 100; one more says how many are left out."""


class SequenceDefinition(Model):
    """A stored definition."""

    id: str
    tenant_id: str
    namespace: str
    name: str
    version: int
    deprecated: bool
    hold: bool
    """No name leads to it."""
    status: SequenceStatus
    blocks: list[Block]
    input_schema: dict[str, Any] | None = None
    """JSON Schema 2020-12 without pattern, patternProperties and recursive references. At most
    65536 bytes, and with references followed 5000 values, 1000 schemas, keywords and listed
    names, and 100 schemas within one another.
    """
    on_failure: list[FailureHook] | None = None
    """What runs in the server after an instance has failed, one after the other, whatever each
    comes to.
    """
    on_cancel: list[CancelHook] | None = None
    """What runs in the server after an instance was cancelled, one after the other, whatever
    each comes to.
    """
    created_at: datetime


class SequenceDeletionPreview(Model):
    count: int
    """Instances that would go with the sequence."""
    ended: int
    """Completed and cancelled ones among them."""
    failed: int
    """Failed ones among them."""
    dry_run: Literal[True]


class SequenceListed(Model):
    """A stored definition, or what it is known by where the definition was left out."""

    id: str
    tenant_id: str
    namespace: str
    name: str
    version: int
    deprecated: bool
    hold: bool
    """No name leads to it."""
    status: SequenceStatus
    input_schema: dict[str, Any] | None = None
    """JSON Schema 2020-12 without pattern, patternProperties and recursive references. At most
    65536 bytes, and with references followed 5000 values, 1000 schemas, keywords and listed
    names, and 100 schemas within one another.
    """
    on_failure: list[FailureHook] | None = None
    """What runs in the server after an instance has failed, one after the other, whatever each
    comes to.
    """
    on_cancel: list[CancelHook] | None = None
    """What runs in the server after an instance was cancelled, one after the other, whatever
    each comes to.
    """
    created_at: datetime
    blocks: list[Block] | None = None
    versions: int | None = None
    """With newest_only: how many the name has."""


class SequenceValidated(Model):
    """The definition can be stored."""

    valid: Literal[True]
    warnings: list[DefinitionWarning]


class SignalAccepted(Model):
    signal_id: str


class SplitVariant(Model):
    name: str
    """Unique in the block; shown in its output."""
    weight: int
    """Its share is this of the sum of all weights."""
    blocks: list[Block]
    """What runs for this variant."""


class StartCanary(Model):
    percent: int
    """Of new instances of the baseline, those that the candidate gets."""


class StepAttempt(Model):
    """A try of a step: of a worker from its dispatch on, of the process once it has ended."""

    id: str
    source: StepAttemptSource
    block_id: str
    iteration: str
    """The counters of the loops around it; '' outside of loops."""
    attempt: int
    """Counted from 0 in each iteration."""
    state: StepAttemptState
    handler_name: str | None
    """Null of a sub_sequence, or when it is not known."""
    queue_name: str | None
    task_id: str | None
    worker_id: str | None
    """Who had it last."""
    queued_at: datetime | None
    """The dispatch to workers."""
    started_at: datetime | None
    """The last claim, or when a request left the process; null: not yet, or not kept."""
    ended_at: datetime | None
    timeout_ms: int | None
    params: Any = None
    """As they were rendered for the worker."""
    overlay: Any = None
    """What a for_each adds to context.data for it."""
    output: Any = None
    error: StepAttemptError | None


class StepAttemptError(Model):
    message: str
    retryable: bool | None


class StepBlock(Model):
    """Runs a handler: a built-in one (noop, log, sleep, wait_for_event, http_request, fail,
    transform, assert) in the server, any other by an external worker.
    """

    type: Literal["step"] = "step"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long one try may take, of a task from its claim on; past it, the try has failed.
    Milliseconds.
    """
    handler: str
    """A name that is not built in is served by external workers."""
    params: dict[str, Any] | None = None
    """The parameters of the handler; what a built-in one always refuses is 400. noop: none. log:
    message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event: name
    (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST, PUT,
    PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message, retryable.
    transform: anything. assert: condition (required), message.
    """
    delay: Delay | None = None
    """Waits before the first try."""
    retry: Retry | None = None
    """What is done after a failed try. initial_backoff must not be above max_backoff."""
    queue_timeout: int | None = None
    """How long a task may wait for a worker; past it, the try has failed. Milliseconds."""
    deadline: int | None = None
    """How long the step may take with all of its waits and tries; past it, it has failed.
    Milliseconds.
    """
    on_deadline_breach: StepBlockOnDeadlineBreach | None = None
    """What is called, once, when the deadline has passed."""
    send_window: SendWindow | None = None
    """Waits until an hour in which the step may start. The two hours must differ; a window may
    go over midnight.
    """
    rate_limit_key: str | None = None
    """Steps with the same key share a limit per time. Past the limit a step waits. An empty text
    stands for none.
    """
    cancellable: bool | None = None
    """If false, the signal cancel lets the step end first. Default: True."""
    queue_name: str | None = None
    """The queue of the task. Polls may ask for the tasks of one queue only."""
    output_schema: dict[str, Any] | None = None
    """What the output must conform to; another one fails the step for good. JSON Schema 2020-12
    without pattern, patternProperties and recursive references. At most 65536 bytes, and with
    references followed 5000 values, 1000 schemas, keywords and listed names, and 100 schemas
    within one another.
    """
    merge_output: bool | None = None
    """Whether a worker's output is merged into context.data. Default: True."""
    wait_for_input: WaitForInput | None = None
    """A person has to answer before the first try."""
    context_access: Literal[False] | None = None
    """Not supported."""
    fallback_handler: Literal[False] | None = None
    """Not supported."""
    cache_key: Literal[False] | None = None
    """Not supported."""
    compensation: Literal[False] | None = None
    """Not supported."""


class StepBlockOnDeadlineBreach(Model):
    """What is called, once, when the deadline has passed."""

    handler: str
    """A built-in handler; not one that waits."""
    params: dict[str, Any] | None = None
    """Its parameters, with templates; the server adds _breach_block_id, _breach_instance_id,
    _breach_elapsed_ms and _breach_deadline_ms.
    """


class StepLogLine(Model):
    block_id: str
    ts: datetime
    level: str
    message: str


class StoredEvent(Model):
    id: str
    tenant_id: str
    event_name: str
    producer_event_id: str
    correlation_key: str | None
    payload: Any
    """What looks like a secret is not shown."""
    status: EventDetailsStatus
    matched: int
    """How many steps it was for."""
    created_at: datetime
    expires_at: datetime
    """Until then it is kept for a step that waits for it."""
    consumed_at: datetime | None


class StoredSignal(Model):
    """A signal that an instance was sent."""

    id: str
    instance_id: str
    signal_type: str
    payload: Any
    created_at: datetime
    status: StoredSignalStatus
    """kept: waits for a step that waits for it; taken, refused: by taken_by; applied: it took
    effect when it came.
    """
    taken_at: datetime | None
    taken_by: str | None
    """The block whose wait took it."""
    sent_by: str | None
    """The name of the key that sent it; null: not known."""


class SubSequenceBlock(Model):
    """Starts another sequence as a child instance, and waits for its end."""

    type: Literal["sub_sequence"] = "sub_sequence"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    sequence_name: str
    """The sequence of the child, in the namespace of this instance."""
    version: int | None = None
    """Pins this version. Absent: as a creation by name chooses one when the child starts."""
    input: dict[str, Any] | None = None
    """The context.data of the child; texts in it may be templates."""


class SubscriptionCreated(Model):
    id: str
    tenant_id: str
    url: str
    events: list[WebhookEvent]
    created_at: datetime
    updated_at: datetime
    secret: str
    """Shown this once."""


class TaskInstance(Model):
    """A run of a sequence."""

    id: str
    sequence_id: str
    tenant_id: str
    namespace: str
    state: InstanceState
    next_fire_at: datetime | None
    priority: ShownPriority
    timezone: str
    metadata: dict[str, Any]
    context: InstanceContext
    concurrency_key: str | None = None
    max_concurrency: int | None = None
    idempotency_key: str | None = None
    parent_instance_id: str | None = None
    timeout: int | None = None
    """As it was given."""
    failure: Failure | None
    """Why it failed; null when it did not, or was retried since."""
    cancelling: Cancelling | None = None
    created_at: datetime
    updated_at: datetime


class TaskOutcome(Model):
    """What became of one result."""

    task_id: str | None
    """As it was sent; null when it was no text."""
    status: int
    """That of the route of one result."""
    checkpoint_seq: int | None = None
    """Of a heartbeat."""
    error: str | None = None
    code: str | None = None
    """As in x-error-code."""


class TaskStats(Model):
    by_state: dict[str, int]
    by_handler: dict[str, dict[str, int]]
    active_workers: list[str]


class TasksExchanged(Model):
    outcomes: list[TaskOutcome]
    """In the order of the results."""
    tasks: list[WorkerTask]
    """As a poll answers them."""
    max_body_bytes: int | None = None
    """The largest body of an exchange that the server accepts."""


class Tenant(Model):
    tenant_id: str


class TenantBody(Model):
    tenant_id: str | None = None


class TenantLimits(Model):
    tenant_id: str
    bytes_per_second: int | None
    bytes_burst: int | None
    rows_per_second: int | None
    rows_burst: int | None
    blocks_per_second: int | None
    blocks_burst: int | None
    schedules_per_second: int | None
    schedules_burst: int | None
    schedules_max: int | None
    queue_depth_max: int | None
    updated_at: datetime | None


class TenantMove(Model):
    id: str
    tenant_id: str
    from_cell: str
    to_cell: str
    state: TenantMoveState
    rows: Any
    """What was copied, by table; null before it was."""
    error: str | None
    started_at: datetime
    updated_at: datetime
    ended_at: datetime | None


class Timeline(Model):
    instance: TimelineInstance
    state_transitions: list[TimelineStateTransition]
    entries: list[TimelineEntry]
    offset: int
    limit: int
    has_more: bool


class TimelineEntry(Model):
    block_id: str
    attempt: int
    iteration: str | None = None
    """The counters of the loops around it, as in 2.0."""
    completed_at: datetime
    output: Any = None
    output_ref: str | None = None
    is_sentinel: bool


class TimelineInstance(Model):
    id: str
    sequence_id: str
    state: InstanceState
    created_at: datetime
    updated_at: datetime
    context: InstanceContext | None = None


class TimelineStateTransition(Model):
    from_state: InstanceState | None = None
    to_state: InstanceState | None = None
    at: datetime


class Transform(Model):
    """Paths are dotted and lead into checkpoint_data; what stands under context_snapshot becomes
    context.data.
    """

    version: Literal[1] | None = None
    """Default: 1."""
    transform: TransformTransform
    from_path: str
    to_path: str | None = None
    """Of copy and move; none of drop."""


class TreeNode(Model):
    id: str
    instance_id: str
    block_id: str
    parent_id: str | None
    block_type: str
    branch_index: int | None
    state: NodeState
    child_instance_id: str | None = None
    """Of a sub_sequence: the instance that it started last."""
    started_at: datetime | None
    completed_at: datetime | None
    items: ItemCounts | None = None
    iteration: int | None = None
    """Of a loop that is open: the pass that it is at, from 0."""
    output_count: int | None = None
    """Of a block in loops: the rows that it has left, over all passes."""


class Trigger(Model):
    slug: str
    tenant_id: str
    namespace: str
    sequence_name: str
    version: int | None
    trigger_type: TriggerType
    secret: str | None
    """[REDACTED] when there is one."""
    config: dict[str, Any]
    enabled: bool
    created_at: datetime
    updated_at: datetime


class TriggerFired(Model):
    instance_id: str
    trigger: str
    sequence_name: str


class TryCatchBlock(Model):
    """catch_block runs only if try_block failed, finally_block always."""

    type: Literal["try_catch"] = "try_catch"
    """The kind of the block."""
    id: str
    """Unique in the sequence. Expressions find its output by it. Not __proto__, constructor,
    prototype, . or ..
    """
    when: str | None = None
    """An expression; the block is skipped when it does not hold."""
    timeout: int | None = None
    """How long the block may take; past it, all inside is cut off and it has failed.
    Milliseconds.
    """
    try_block: list[Block]
    """What runs first."""
    catch_block: list[Block]
    """What runs if try_block failed."""
    finally_block: list[Block] | None = None
    """What always runs last, also when cancelled."""


class UpdateCredential(Model):
    """Absent members stay as they are; null gives back what a creation without the member has.
    Refused, because they cannot be changed: id, tenant_id, has_refresh_token, created_at,
    updated_at.
    """

    name: str | None = None
    value: str | None = None
    """The secret: a text, at most 262144 bytes. Of one that is a JSON object, templates may name
    a member: {{secrets.id.member}}. No answer ever has it. Not [REDACTED].
    """
    kind: CredentialKind | None = None
    description: str | None = None
    expires_at: datetime | None = None
    """From then on it is as if it did not exist."""
    refresh_url: str | None = None
    """Kept for those who renew it, with oauth2 only. A public address."""
    refresh_token: str | None = None
    """Kept like the value, and as secret. Not [REDACTED]."""
    enabled: bool | None = None
    """While false it is as if the credential did not exist."""


class UpdateSchedule(Model):
    """Absent members stay as they are; null gives back what a creation without the member has.
    Refused, because they cannot be changed: id, tenant_id, namespace, sequence_id, sequence,
    version, skipped_fires, last_skipped_at, last_triggered_at, next_fire_at, last_error,
    created_at, updated_at.
    """

    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 when it was changed since. When absent: whatever is
    there is changed.
    """
    cron_expr: str | None = None
    """Seven fields: second minute hour day month day_of_week year. Six (without year), five
    (without second and year), ? and @hourly, @daily, @weekly, @monthly, @yearly are taken
    too.
    """
    timezone: str | None = None
    """IANA time zone, such as Europe/Berlin."""
    enabled: bool | None = None
    metadata: dict[str, Any] | None = None
    """Copied to the instances that it creates."""
    context: CreateInstanceContext | None = None
    """What its instances begin with; the input_schema must accept its data."""
    timeout: int | None = None
    """How long it may take from its first step on, pauses not counted; past it, it fails.
    Milliseconds.
    """
    priority: Priority | None = None
    """Any case is accepted."""
    overlap_policy: OverlapPolicy | None = None
    """What a fire does while an earlier run has not ended."""


class UpdateSequence(Model):
    """Lifts the hold of a version. The rest of it never changes; deprecate one to take it out of
    the choice again.
    """

    hold: Literal[False]


class UpdateSubscription(Model):
    """Absent members stay as they are; null gives back what a creation without the member has.
    Refused, because they cannot be changed: id, tenant_id, created_at, updated_at.
    """

    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 when it was changed since. When absent: whatever is
    there is changed.
    """
    url: str | None = None
    """http or https, without credentials; a public address unless the deployment says else."""
    events: list[WebhookEvent] | None = None
    secret: str | None = None
    """What its webhooks are signed with. Not [REDACTED]."""


class UpdateTrigger(Model):
    """Absent members stay as they are; null gives back what a creation without the member has.
    Refused, because they cannot be changed: slug, tenant_id, namespace, trigger_type,
    created_at, updated_at.
    """

    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 when it was changed since. When absent: whatever is
    there is changed.
    """
    sequence_name: str | None = None
    version: int | None = None
    secret: str | None = None
    """What callers prove themselves with. No answer ever has it. Not [REDACTED]."""
    config: dict[str, Any] | None = None
    """Of an event trigger: event_name, and correlation_key if only events with that key start
    it.
    """
    enabled: bool | None = None


class ValidateRelease(Model):
    sample: int | None = None
    """How many of the newest ended runs are replayed: at least 1, at most 50. Default: 10."""
    skip: bool | None = None
    """Makes the release ready without a replay. Default: False."""


class ValidationReport(Model):
    """What replays of ended runs of the baseline showed."""

    replayed: int
    """The inconclusive ones among them."""
    matches: int
    diverged: int
    """All, of which divergences lists the first 20."""
    inconclusive: int
    divergences: list[Divergence]
    inconclusive_runs: list[InconclusiveRun] | None = None
    """The first 20 of those that show nothing, and why; left out without any."""
    release_state: ReleaseState


class ValidationSummary(Model):
    """The evidence of the last validation."""

    replayed: int
    """The inconclusive ones among them."""
    matches: int
    diverged: int
    """All, of which divergences lists the first 20."""
    inconclusive: int
    divergences: list[Divergence]
    inconclusive_runs: list[InconclusiveRun] | None = None
    """The first 20 of those that show nothing, and why; left out without any."""
    validated_at: datetime


class Wait(Model):
    """One thing that an instance waits for. Members that do not fit the kind are absent."""

    kind: WaitKind
    summary: str
    block_id: str | None
    """Null when the instance as a whole waits."""
    path: str | None
    """From the outermost block, as in orders[2]/charge."""
    since: datetime | None
    until: datetime | None
    """When it is over by itself, at the latest; null: by nothing but what it waits for."""
    attempt: int | None = None
    """The try, from 0; of a retry the next one."""
    max_attempts: int | None = None
    """Null: no retry policy."""
    last_error: str | None = None
    """Of the try before."""
    handler: str | None = None
    queue: str | None = None
    task_id: str | None = None
    worker_id: str | None = None
    heartbeat_at: datetime | None = None
    lost_claims: int | None = None
    """Of a task: claims of this try whose workers fell silent; absent: none."""
    workers: WaitWorkers | None = None
    reason: WaitReason | None = None
    """Of a handoff: on its way, gone, or here and not owned yet."""
    name: str | None = None
    """Of the event."""
    approval_id: str | None = None
    prompt: str | None = None
    """What is asked."""
    choices: list[str] | None = None
    child_id: str | None = None
    child_state: InstanceState | None = None
    key: str | None = None
    max_concurrency: int | None = None
    holders: list[WaitHolder] | None = None
    ahead: int | None = None
    """Instances that wait before it, 10000 at most."""
    limit: WaitLimit | None = None


class WaitForInput(Model):
    """A person has to answer before the first try."""

    prompt: str | None = None
    """What the person is asked; may hold templates. Default: ""."""
    choices: list[GateChoice] | None = None
    """What can be answered. When absent: Yes (yes) and No (no). Each value once."""
    store_as: str | None = None
    """The key of context.data for the value; the id of the block when absent. Not __proto__,
    constructor or prototype.
    """
    timeout: int | None = None
    """How long to wait for the answer; for ever when absent. Milliseconds."""
    escalation_handler: str | None = None
    """When the time is over, the step completes with an output that names it, and does not fail."""
    allow_comment: bool | None = None
    """Whether the answer may have a comment. Default: False."""


class WaitHolder(Model):
    instance_id: str
    state: InstanceState


class WaitLimit(Model):
    max_count: int
    window_seconds: int


class WaitWorkers(Model):
    polled_lately: int
    """Workers that may take the task and polled within 60 s."""
    last_polled_at: datetime | None


class WebhookBody(Model):
    event_type: WebhookEvent
    instance_id: str
    timestamp: datetime
    tenant_id: str | None = None
    namespace: str | None = None
    sequence_id: str | None = None
    sequence_name: str | None = None
    sequence_version: int | None = None
    metadata: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    """Why it failed; null when it did not."""
    data: Any


class WebhookSubscription(Model):
    id: str
    tenant_id: str
    url: str
    events: list[WebhookEvent]
    created_at: datetime
    updated_at: datetime


class WebhookTaken(Model):
    instance_id: str
    trigger: str


class WhoAmI(Model):
    is_root: bool
    """The root key, or nobody is asked for a key."""
    is_insecure: bool
    """The server asks for no keys (--insecure-auth)."""
    tenant_id: str | None
    """Of the key; null: any, named by x-tenant-id."""
    requires_tenant: bool
    """Requests must name a tenant, by x-tenant-id (ENGINE_REQUIRE_TENANT_HEADER)."""
    capabilities: list[Capability]
    """Of root: all of them."""
    key: WhoAmIKey | None


class WhoAmIKey(Model):
    id: str
    """ak_ and 32 hexadecimal digits."""
    name: str
    expires_at: datetime | None


class WorkerAttempt(Model):
    id: str
    task_id: str
    claim_epoch: int
    worker_id: str | None = None
    event: WorkerAttemptEvent
    reason: str | None = None
    created_at: datetime


class WorkerInfo(Model):
    worker_id: str
    handlers: list[str]
    queues: list[str]
    version: str | None
    last_seen_at: datetime
    alive: bool
    in_flight: int


class WorkerTask(Model):
    """A step that an external worker runs."""

    id: str
    instance_id: str
    block_id: str
    handler_name: str
    queue_name: str | None = None
    params: Any
    context: CronScheduleContext
    attempt: int
    idempotency_key: str
    """The same for all tries of one execution of the step; another one for each item and
    iteration, and when it runs anew.
    """
    timeout_ms: int | None
    state: TaskState
    worker_id: str | None
    claim_epoch: int
    lost_claims: int
    """Claims of this try whose workers fell silent; too many fail it for good."""
    claimed_at: datetime | None
    heartbeat_at: datetime | None
    completed_at: datetime | None
    output: dict[str, Any] | None
    error_message: str | None
    error_retryable: bool | None
    checkpoint_seq: int
    resume_checkpoint: Any = None
    traceparent: str | None = None
    created_at: datetime


Block = Annotated[
    StepBlock
    | ParallelBlock
    | RaceBlock
    | RouterBlock
    | TryCatchBlock
    | LoopBlock
    | ForEachBlock
    | SubSequenceBlock
    | CancellationScopeBlock
    | SagaBlock
    | AbSplitBlock,
    Field(discriminator="type"),
]
TaskResult = Annotated[
    CompleteTaskResult | FailTaskResult | HeartbeatTaskResult,
    Field(discriminator="kind"),
]
