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
        "events",
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
CreateSequenceConcurrencyWhenFull = Annotated[
    Literal[
        "queue",
        "skip",
        "cancel_oldest",
        "cancel_newest",
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
        "limits_changed",
        "cancel_on_changed",
        "collecting_changed",
        "searchable_changed",
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
EventCancelOutcome = Annotated[
    Literal[
        "pending",
        "cancelled",
        "withdrawn",
        "ended",
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
PendingStartKind = Annotated[
    Literal[
        "debounce",
        "batch",
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
SearchHitKind = Annotated[
    Literal[
        "instance",
        "sequence",
    ],
    Open,
]
SearchHitMatchedBy = Annotated[
    Literal[
        "id",
        "idempotency_key",
        "value",
        "name",
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
TriggerVerificationAlgorithm = Annotated[
    Literal[
        "sha256",
        "sha1",
        "sha512",
    ],
    Open,
]
TriggerVerificationEncoding = Annotated[
    Literal[
        "hex",
        "base64",
        "base64url",
    ],
    Open,
]
TriggerVerificationScheme = Annotated[
    Literal[
        "engine",
        "standard_webhooks",
        "stripe",
        "github",
        "slack",
        "hmac",
        "basic",
        "bearer",
    ],
    Open,
]
UiLinkOn = Annotated[
    Literal[
        "instance",
        "step",
    ],
    Open,
]
WaitKind = Annotated[
    Literal[
        "pause",
        "start",
        "handoff",
        "slot",
        "throttle",
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
    """Runs one of its variants, chosen in proportion to the weights by a hash of instance and
    block id. Names are unique, and at least one weight is above 0.
    """

    type: Literal["ab_split", "a_b_split"] = "ab_split"
    """Kind of the block; both names mean the same."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    variants: list[SplitVariant]
    """Variants, one of which is chosen."""


class AcceptHandoff(Model):
    tenant_id: str | None = None
    destination_instance_id: str
    import_receipt: ImportReceipt | None = None
    """For an instance on another server."""


class Action(Model):
    """A change by a request of a person or a program."""

    id: str
    tenant_id: str
    at: datetime
    by: str
    """Name of the key, or its id if it has none; root: the root key or none; of a link: the
    recipient.
    """
    key_id: str | None
    """Id of the key; null: the root key, no key or a link."""
    operation: str
    """Operation of the request, such as sequences.deprecate."""
    kind: str
    """Kind of the changed object, one of those of the filter."""
    target: str
    """Id of the changed object, or its name if it has no id."""
    name: str | None
    """Name and version of the sequence of the object; block of an approval; null: none, or
    deleted.
    """
    instance_id: str | None
    """The instance, for an instance or an approval."""
    details: dict[str, Any]
    """Some members of the request, and in changed the names of others."""
    summary: str
    """The action as a sentence without subject."""


class Activity(Model):
    """Created and finished instances by interval."""

    since: datetime
    step_secs: int
    intervals: list[ActivityInterval]
    """Oldest first, including empty intervals."""
    complete: bool
    """False: the oldest intervals are incomplete."""


class ActivityInterval(Model):
    at: datetime
    """Start of the interval."""
    created: int
    completed: int
    failed: int
    cancelled: int
    duration_p50_ms: float | None
    """Time from creation to completion or failure, within 10 %; null if none finished."""
    duration_p95_ms: float | None


class AnswerApproval(Model):
    value: str
    """One of the values in choices."""
    comment: str | None = None
    """Comment, allowed only with allow_comment. An empty text counts as absent."""
    answer_id: str | None = None
    """A repetition with the same id returns the first answer. An empty text counts as absent."""


class AnswerByLink(Model):
    value: str | None = None
    """One of the values in choices."""
    comment: str | None = None
    """Comment, allowed only with allow_comment. An empty text counts as absent."""


class ApiKey(Model):
    id: str
    """Id of a key: ak_ and 32 hexadecimal digits."""
    tenant_id: str
    name: str
    capabilities: list[Capability]
    groups: list[str]
    """Groups for which the key answers approvals."""
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
    """A step that waits for a person's answer."""

    id: str
    instance_id: str
    tenant_id: str
    namespace: str
    sequence_id: str
    sequence_name: str | None
    block_id: str
    path: str
    """Path from the outermost block, such as orders[2]/charge."""
    prompt: str
    """Question to the person."""
    choices: list[GateChoice]
    store_as: str
    """Key of context.data that receives the value."""
    timeout_seconds: float | None
    escalation_handler: str | None
    allow_comment: bool
    approvers: list[str]
    """Groups whose members may answer; empty: every key that may answer."""
    waiting_since: datetime
    deadline: datetime | None
    """Time of the time-out; null: never."""
    metadata: dict[str, Any]
    """Metadata of the instance."""


class ApprovalAnswered(Model):
    """The accepted answer."""

    id: str
    instance_id: str
    block_id: str
    value: str
    comment: str | None
    answered_by: str | None
    """Name of the key, or recipient of the link."""
    answered_at: datetime
    repeated: bool
    """True: the answer with this answer_id was accepted before."""


class ApprovalLink(Model):
    url: str
    """Allows its holder to answer once, without a key."""
    expires_at: datetime


class ApprovalPage(Model):
    items: list[Approval]
    total: int
    """Number of approvals, counted up to 10000."""


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
    """Present for a change to failed."""
    created_at: datetime


class BatchAction(Model):
    """The action signal requires signal_type."""

    filter: BatchActionFilter
    action: BatchActionAction
    signal_type: str | None = None
    payload: Any = None
    dry_run: bool | None = None
    """Only counts: nothing is changed. Default: False."""
    orphans: bool | None = None
    """Also retries children whose parents continued without them. Default: skips them. Default:
    False.
    """
    per_minute: int | None = None
    """Maximum number of instances changed per minute, spread evenly; runs as a job."""
    limit: int | None = None
    """Default: 1000."""


class BatchActionFilter(Model):
    tenant_id: str | None = None
    namespace: str | None = None
    sequence_id: str | None = None
    sequence_name: str | None = None
    """Includes every version of the sequences with this name."""
    sequence: str | None = None
    """Alias of sequence_name."""
    sequence_version: int | None = None
    """Version of the sequence."""
    parent_instance_id: str | None = None
    """Children of this instance."""
    ids: list[str] | None = None
    """At most 1000 instances."""
    waiting_for: BatchActionFilterWaitingFor | None = None
    """Instances with a step that waits for it (see explain)."""
    created_after: datetime | None = None
    """Only objects created after this time."""
    created_before: datetime | None = None
    """Only objects created before this time."""
    updated_after: datetime | None = None
    """Only instances changed after this time."""
    updated_before: datetime | None = None
    """Only instances changed before this time."""
    failed_after: datetime | None = None
    """Only instances that failed after this time."""
    failed_before: datetime | None = None
    """Only instances that failed before this time."""
    failure: str | None = None
    """Part of the failure's message or code; case-insensitive."""
    failure_code: str | None = None
    """Code of the failure."""
    failure_block: str | None = None
    """block_id of the failure."""
    failure_handler: str | None = None
    """Handler of the failure."""
    failure_reason: str | None = None
    """Reason of the failure, as in /instances/failures."""
    metadata: dict[str, str] | None = None
    states: list[InstanceState] | None = None


class BatchActionResult(Model):
    matched: int
    applied: int
    skipped: int
    failed: int
    dry_run: bool
    repeats_effects: int
    """With dry_run: retried instances that would repeat external effects; else 0."""
    job_id: str | None = None
    """The record of the change; absent with dry_run."""
    refusals: list[ChangeRefusal] | None = None
    """The first failures; absent if none."""


class BatchCreated(Model):
    count: int
    """Number of accepted items."""
    created: int
    """Number of new instances."""
    skipped: int | None = None
    """Number of items that created nothing (when_full: skip)."""


class BlockOutput(Model):
    """Output of a block. attempt counts from 0."""

    id: str
    instance_id: str
    block_id: str
    output: Any
    output_ref: str | None
    output_size: int
    attempt: int
    iteration: str | None = None
    """Counters of the enclosing loops, such as 2.0."""
    created_at: datetime


class BlocksInjected(Model):
    injected_block_ids: list[str]
    position: int
    total_injected: int
    warnings: list[DefinitionWarning] | None = None
    """At most 100; the last counts the rest."""


class BulkJob(Model):
    """A change of many instances."""

    id: str
    tenant_id: str
    operation: BulkJobOperation
    request: dict[str, Any]
    """Body of the request."""
    state: BulkJobState
    matched: int
    """Number of matches so far: applied, skipped and failed."""
    applied: int
    """Number of instances changed or, with dry_run, to be changed."""
    skipped: int
    """Number of matches that needed no change or were deleted."""
    failed: int
    """Number of matches whose change was refused."""
    repeats_effects: int
    """With dry_run: retried instances that would repeat external effects; else 0."""
    error: str | None
    """Why the job failed."""
    requested_by: str | None
    """Name of the key; null: unknown."""
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    next_at: datetime | None
    """When a job with per_minute changes the next instances."""
    outcome: RetryOutcome | None = None
    """Null unless it retries. Only in the job by its id."""


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
    """Also retries children whose parents continued without them. Default: skips them. Default:
    False.
    """


class BulkUpdated(Model):
    count: int
    """Number of instances changed or, with dry_run, to be changed."""
    updated: int
    """Alias of count for older clients; 0 with dry_run."""
    dry_run: Literal[True] | None = None
    repeats_effects: int | None = None
    """Absent: 0. With dry_run: retried instances that would repeat external effects; else 0."""


class CancelHook(Model):
    """A step that runs in the server after an instance was cancelled."""

    type: Literal["step"]
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms. Default and maximum: 30000."""
    handler: CancelHookHandler
    """A built-in handler; hooks cannot use workers."""
    params: dict[str, Any] | None = None
    """Parameters of the handler. Invalid ones of built-in handlers are answered 400. noop: none.
    log: message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event:
    name (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST,
    PUT, PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message,
    retryable. transform: anything. assert: condition (required), message.
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


class CancelOn(Model):
    """An event that cancels the instances of the sequence."""

    event: str
    """Name of the event."""
    key: str | None = None
    """Correlation key of the event. A template over the data and config of the instance at its
    creation. Default: every event with the name.
    """


class CancellationScopeBlock(Model):
    """Runs its blocks in order; the signal cancel takes effect after them."""

    type: Literal["cancellation_scope"] = "cancellation_scope"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    blocks: list[Block]
    """Blocks to run."""


class Cancelling(Model):
    """Protected work of a cancelled instance."""

    since: datetime
    reason: CancellingReason
    waiting_for: list[str]
    """Ids of running blocks, at most 20."""


class Capsule(Model):
    """Content, recipient and expiry, signed by its sealer."""

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
    """Also the name of its Postgres schema."""
    state: CellState
    database_url: str
    """Address of the database, without password."""
    addresses: list[str]
    """Addresses of its engines, for proxies."""
    engines: list[CellEngine]
    tenants: int
    """Number of tenants of the cell."""
    moves_under_way: int
    """Number of tenants that move from or to the cell."""
    created_at: datetime


class CellEngine(Model):
    """An engine of a cell, as it last reported."""

    address: str
    role: CellEngineRole
    version: str
    lag_ms: int | None
    """Delay in ms of uncommitted writes; null: no writes."""
    seen_at: datetime
    is_silent: bool
    """True: no report for 15 seconds; considered down."""


class Cells(Model):
    cluster: bool
    """False: without a directory there are no cells."""
    own: str
    """The cell of the answering engine."""
    cells: list[Cell]


class ChangeRefusal(Model):
    instance_id: str
    error: str
    """Error, as in the response to a change of only this instance."""


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
    """A checkpoint at an epoch of its instance."""

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
    boundary: CheckpointBoundary
    checkpoint_data: Any
    """Value of the checkpoint; not redacted, unlike the diff."""
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
    worker_id: str
    """Must equal the claim's worker_id."""
    output: dict[str, Any]
    """Its top-level keys are merged into context.data."""
    claim_epoch: int | None = None
    """Must equal the claim's epoch; required by some deployments."""
    logs: list[CompleteTaskLog] | None = None


class CompleteTaskLog(Model):
    ts: datetime | None = None
    level: str | None = None
    message: str


class CompleteTaskResult(Model):
    kind: Literal["complete"] = "complete"
    task_id: str
    output: dict[str, Any]
    """Its top-level keys are merged into context.data."""
    claim_epoch: int | None = None
    """Must equal the claim's epoch; required by some deployments."""
    logs: list[CompleteTaskLog] | None = None


class ContextPatched(Model):
    context: InstanceContext


class ContinuityExecution(Model):
    """Portable identity of an instance."""

    continuity_id: str
    tenant_id: str
    current_instance_id: str
    owner_runtime_id: str
    epoch: int
    """Ownership epoch, raised by changes of owner or version."""
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
    """Creates all instances or none, except items that may be skipped."""

    instances: list[CreateInstance]


class CreateCredential(Model):
    tenant_id: str | None = None
    """Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with
    spaces or tabs.
    """
    id: str | None = None
    """Default: the name. Used in templates as {{secrets.id}}. Letters, digits, dots, _ and -.
    Must not be . or ..
    """
    name: str | None = None
    """Default: the id."""
    value: str
    """The secret: a text of at most 262144 bytes. If it is a JSON object, templates can use
    {{secrets.id.member}}. Never returned. Must not be [REDACTED].
    """
    kind: CredentialKind | None = None
    """Kind, a label for people. Default: "api_key"."""
    description: str | None = None
    expires_at: datetime | None = None
    """Time from which steps cannot use the credential."""
    refresh_url: str | None = None
    """Public address, for clients that renew the secret; with oauth2 only."""
    refresh_token: str | None = None
    """Refresh token, sealed like the value. Must not be [REDACTED]."""


class CreateExecution(Model):
    tenant_id: str | None = None
    instance_id: str
    runtime_id: str


class CreateHandoff(Model):
    """Must equal the previewed terms."""

    tenant_id: str | None = None
    requirements: Requirements | None = None
    policy: LocalityPolicy | None = None
    """Alias of locality_policy."""
    locality_policy: LocalityPolicy | None = None
    classification: CreateHandoffClassification | None = None
    """Alias of data_classification."""
    data_classification: CreateHandoffClassification | None = None
    """Default: "internal"."""
    continuity_id: str | None = None
    placement_decision_id: str
    preview_sha256: str
    destination_runtime_id: str


class CreateInstance(Model):
    """One instance, alone or in a batch. Exactly one of sequence_id and sequence; version goes
    with sequence.
    """

    sequence_id: str | None = None
    """Id of a version, from which a release may route to another one. Exactly one of sequence_id
    and sequence is required.
    """
    sequence: str | None = None
    """Name of a sequence in the namespace, instead of sequence_id."""
    version: int | None = None
    """With sequence: pins this version; no release routes it elsewhere. Default: the newest
    version that is not deprecated, on hold, or held back by a release.
    """
    tenant_id: str
    """Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with
    spaces or tabs.
    """
    namespace: str
    priority: Priority | None = None
    """Case-insensitive. Default: "normal"."""
    timezone: str | None = None
    """IANA time zone, such as Europe/Berlin. Default: "UTC"."""
    metadata: dict[str, Any] | None = None
    context: CreateInstanceContext | None = None
    """At most 256 KiB as JSON; deployments may set another limit."""
    next_fire_at: datetime | None = None
    """Start time; default: now."""
    timeout: int | None = None
    """Maximum duration in ms from the first step, without pauses; then it fails."""
    concurrency_key: str | None = None
    """Instances with this key share max_concurrency."""
    max_concurrency: int | None = None
    """Maximum number of these instances that run at once."""
    idempotency_key: str | None = None
    """A repeated key returns the id of the first instance. An empty text counts as absent."""
    dry_run: bool | None = None
    """Default: False."""
    dry_run_auto_approve: bool | None = None
    """In a dry run, approvals get their first choice. Default: False."""
    budget: Literal[False] | None = None
    """Not supported."""


class CreateInstanceContext(Model):
    """At most 256 KiB as JSON; deployments may set another limit."""

    data: dict[str, Any] | None = None
    config: dict[str, Any] | None = None


class CreateRelease(Model):
    """Two versions of one sequence."""

    tenant_id: str | None = None
    """Must equal the header x-tenant-id, if sent."""
    baseline_sequence_id: str
    candidate_sequence_id: str
    gates: list[Gate] | None = None
    """Default: []."""
    in_flight_policy: CreateReleaseInFlightPolicy | None = None
    """Neither migrates running instances: with operator_decision an operator does so explicitly.
    Default: "pin".
    """


class CreateSchedule(Model):
    """A schedule that creates an instance of the sequence at each fire. Exactly one of
    sequence_id and sequence; version goes with sequence.
    """

    tenant_id: str
    """Must not be . or .., or begin or end with spaces or tabs."""
    namespace: str
    sequence_id: str | None = None
    """Id of a version, from which a release may route to another one. Exactly one of sequence_id
    and sequence is required.
    """
    sequence: str | None = None
    """Name of a sequence in the namespace, instead of sequence_id."""
    version: int | None = None
    """With sequence: pins this version; no release routes it elsewhere. Default: the newest
    version that is not deprecated, on hold, or held back by a release.
    """
    cron_expr: str
    """Seven fields: second minute hour day month day_of_week year. Also accepted: six (without
    year) or five (without second and year), ?, and @hourly, @daily, @weekly, @monthly,
    @yearly.
    """
    timezone: str | None = None
    """IANA time zone, such as Europe/Berlin. Default: "UTC"."""
    metadata: dict[str, Any] | None = None
    """Metadata of the created instances."""
    context: CreateInstanceContext | None = None
    """Initial context; data must conform to the input_schema."""
    timeout: int | None = None
    """Maximum duration in ms from the first step, without pauses; then it fails."""
    priority: Priority | None = None
    """Case-insensitive. Default: "normal"."""
    enabled: bool | None = None
    """Default: True."""
    overlap_policy: OverlapPolicy | None = None
    """Action of a fire while an earlier run has not finished. Default: "allow"."""


class CreateSequence(Model):
    """A definition; immutable once stored."""

    id: str | None = None
    """Default: generated."""
    tenant_id: str
    """Required. May be blank with the header x-tenant-id; else both must be equal. Must not be .
    or .., or begin or end with spaces or tabs.
    """
    namespace: str
    name: str
    version: int
    """Unique with tenant, namespace and name."""
    blocks: list[Block]
    """At most 5000 blocks in total, 64 levels deep."""
    deprecated: bool | None = None
    """Default: False."""
    hold: bool | None = None
    """Lookups by name without version exclude it until lifted or promoted. Default: False."""
    status: SequenceStatus | None = None
    """Default: "production"."""
    input_schema: dict[str, Any] | None = None
    """Schema of context.data; other data is answered 422. JSON Schema 2020-12 without pattern,
    patternProperties and recursive references. At most 65536 bytes, and with references
    followed 5000 values, 1000 schemas, keywords and listed names, and 100 schemas within one
    another.
    """
    created_at: datetime | None = None
    on_failure: list[FailureHook] | None = None
    """Steps that run in the server after an instance has failed, in order. A failed step does
    not stop the next.
    """
    on_cancel: list[CancelHook] | None = None
    """Steps that run in the server after an instance was cancelled, in order. A failed step does
    not stop the next.
    """
    concurrency: CreateSequenceConcurrency | None = None
    """Limits how many instances of the sequence, in all versions, run at once."""
    throttle: CreateSequenceThrottle | None = None
    """Puts off starts of instances of the sequence, in all versions."""
    cancel_on: list[CancelOn] | None = None
    """Events, sent after the creation of an instance, that cancel it."""
    debounce: CreateSequenceDebounce | None = None
    """Of creations in quick succession, only the last one starts an instance."""
    batch: CreateSequenceBatch | None = None
    """One instance starts with the data of several creations: context.data.items is their list."""
    searchable: list[str] | None = None
    """Paths below context.data, such as customer.email, or with metadata as their first name
    below the metadata. Instances are found by the texts and numbers there.
    """
    interceptors: Literal[False] | None = None
    """Not supported."""
    sla: Literal[False] | None = None
    """Not supported."""


class CreateSequenceBatch(Model):
    """One instance starts with the data of several creations: context.data.items is their list."""

    key: str | None = None
    """Template over data and config of a creation. Creations with different keys are collected
    separately. Default: one key.
    """
    size: int
    """Number of creations with which the instance starts at once."""
    wait_ms: int
    """Maximum time from the first creation to the start."""


class CreateSequenceConcurrency(Model):
    """Limits how many instances of the sequence, in all versions, run at once."""

    key: str | None = None
    """Template over data and config of the creation; default: one key for all."""
    limit: int
    """Maximum number of instances of a key that run at once."""
    when_full: CreateSequenceConcurrencyWhenFull | None = None
    """Action of a creation while no slot is free. Default: "queue"."""


class CreateSequenceDebounce(Model):
    """Of creations in quick succession, only the last one starts an instance."""

    key: str | None = None
    """Template over data and config of a creation. Creations with different keys are collected
    separately. Default: one key.
    """
    wait_ms: int
    """Time without another creation after which the last one starts."""
    max_wait_ms: int | None = None
    """Maximum time from the first creation to the start; at least wait_ms. Default: none."""


class CreateSequenceThrottle(Model):
    """Puts off starts of instances of the sequence, in all versions."""

    key: str | None = None
    """Template over data and config of the creation; default: one key for all."""
    limit: int
    """Maximum number of starts in any window of per_ms."""
    per_ms: int
    burst: int | None = None
    """Maximum number of starts at once, at most limit; further ones are per_ms / limit apart.
    Default: limit.
    """


class CreateSubscription(Model):
    tenant_id: str | None = None
    """Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with
    spaces or tabs.
    """
    url: str
    """http or https, without credentials; a public address unless the deployment allows others."""
    events: list[WebhookEvent] | None = None
    """Default: all events."""
    secret: str | None = None
    """Default: generated. Key of the webhooks' signatures. Must not be [REDACTED]."""


class CreateTrigger(Model):
    slug: str
    """Part of the address, unique on the server: letters, digits, dots, _, ~ and -. Must not be
    . or ..
    """
    tenant_id: str
    """Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with
    spaces or tabs.
    """
    sequence_name: str | None = None
    """Name of the sequence, resolved at each fire. Exactly one of sequence_name and publish."""
    publish: TriggerPublish | None = None
    """Publishes an event instead."""
    verify: TriggerVerify | None = None
    """Of webhook triggers, instead of secret: how requests are verified."""
    version: int | None = None
    """Pins this version. Default: as for an instance created by name."""
    namespace: str | None = None
    """Default: "default"."""
    trigger_type: TriggerType | None = None
    """webhook: a signed request to /webhooks/{slug}. event: every event with a given name.
    Default: "webhook".
    """
    secret: str | None = None
    """Authenticates callers. Never returned. Must not be [REDACTED]."""
    config: dict[str, Any] | None = None
    """For event triggers: event_name, and optionally correlation_key to filter events."""
    enabled: bool | None = None
    """Default: True."""


class Credential(Model):
    """A credential without its secrets."""

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
    """Action of a fire while an earlier run has not finished."""
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
    """Has the lists only if the definition was validated, or stored with strict; empty lists are
    absent.
    """

    error: str
    """Message with the first ten findings and suggestions."""
    errors: list[DefinitionWarning] | None = None
    """At most 100; the last counts the rest."""
    warnings: list[DefinitionWarning] | None = None
    """At most 100; the last counts the rest."""


class DefinitionWarning(Model):
    """An error or probable mistake in a definition."""

    path: str
    """Such as blocks[2].branches[0][1].retry.initialBackoff."""
    message: str
    suggestion: str | None = None
    """Name or value that was probably meant."""


class Delay(Model):
    """Waits before the first attempt."""

    duration: int | None = None
    """Duration of the delay in ms."""
    fire_at_local: str | None = None
    """Local end YYYY-MM-DDTHH:MM:SS; instead of duration."""
    timezone: str | None = None
    """Time zone of fire_at_local; default: the instance's. IANA time zone, such as
    Europe/Berlin.
    """
    business_days_only: bool | None = None
    """Moves ends on weekends or holidays to the next business day. Default: False."""
    jitter: int | None = None
    """Moves the end by a random time up to this many ms, either way."""
    holidays: list[str] | None = None
    """Holidays besides those in context.config.holidays."""


class DeliveryAttempt(Model):
    id: str
    delivery_id: str
    url: str
    event_type: WebhookEvent
    instance_id: str | None = None
    attempt_number: int
    """Number of the attempt, from 1."""
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
    """A run that differs with the candidate."""

    instance_id: str
    recorded_state: InstanceState
    replayed_state: InstanceState
    blocks_added: list[str]
    blocks_removed: list[str]
    calls_changed: list[ChangedCall] | None = None
    """Steps with a changed request; absent if none."""


class DryRun(Model):
    """The end of a dry run; times are virtual."""

    state: InstanceState
    """Not an end state if it waits for what does not come."""
    failure: Failure | None
    data: dict[str, Any]
    """context.data at the end."""
    tree: list[TreeNode]
    outputs: dict[str, Any]
    """The last output of each block, by block id."""


class EffectReceipt(Model):
    """An external effect of a step attempt."""

    id: str
    tenant_id: str
    continuity_id: str
    epoch: int
    instance_id: str
    block_id: str
    attempt: int
    kind: EffectReceiptKind
    state: EffectReceiptState
    """prepared: unclaimed; dispatched: in progress."""
    destination_fingerprint: str
    idempotency_key: str | None
    request_sha256: str
    provider_receipt_id: str | None
    created_at: datetime
    updated_at: datetime


class EndedCounts(Model):
    """Finished instances by final state."""

    total: int
    completed: int
    failed: int
    cancelled: int


class EndpointState(Model):
    pass


class EndpointStatus(Model):
    state: EndpointState
    in_flight: int
    """Claimed tasks whose delivery has not ended."""
    last_error: str | None
    last_success_at: datetime | None
    paused_until: datetime | None


class ErrorBody(Model):
    """Body of every error. A refused migration adds its verdict and findings (MigrationFinding)."""

    error: str


class EvaluationReport(Model):
    """Finished instances since the canary started, and verdicts. baseline_history: the
    baseline's newest runs before the canary, for gates with too few since then.
    """

    baseline: EndedCounts
    baseline_history: EndedCounts | None = None
    candidate: EndedCounts
    gates: list[GateJudgement]
    auto_rolled_back: bool
    release_state: ReleaseState


class EventCancel(Model):
    """An instance that the event cancels."""

    instance_id: str
    outcome: EventCancelOutcome
    """pending: about to be cancelled; withdrawn: only creations of its batch, before it started;
    ended: it had ended, or moved elsewhere, before.
    """
    cancelled_at: datetime | None


class EventDetails(Model):
    id: str
    tenant_id: str
    event_name: str
    producer_event_id: str
    correlation_key: str | None
    payload: Any
    """Payload, in which probable secrets are redacted."""
    status: EventDetailsStatus
    matched: int
    """Number of matched steps."""
    created_at: datetime
    expires_at: datetime
    """Time until which a later wait can match the event."""
    consumed_at: datetime | None
    cancelled: list[EventCancel]
    """The first instances that it cancels by cancel_on and that still exist."""
    taken_by: list[EventTaker]
    """The first consumers that still exist."""


class EventReceipt(Model):
    """Result of sending an event."""

    event_id: str
    duplicate: bool
    """True: the receipt of an earlier event with this producer_event_id."""
    matched_wait: str | None = None
    """Id of the first matched wait."""
    satisfied: bool
    """Whether a step waited for it."""
    matched: int
    """Number of waiting steps."""
    cancelled: int | None = None
    """Number of instances that it cancels, started or not; absent: none."""
    triggers: int | None = None
    """Number of triggers fired; absent: none, or a duplicate."""


class EventReceipts(Model):
    outcomes: list[EventReceipt]
    """Results in the order of the events."""


class EventTaker(Model):
    instance_id: str
    block_id: str
    outcome: EventTakerOutcome
    """refused: the payload does not conform to the step's schema; the step continues to wait."""
    taken_at: datetime


class ExchangeTasks(Model):
    worker_id: str
    """Must not begin with endpoint:."""
    version: str | None = None
    results: list[TaskResult] | None = None
    """Results, each checked separately, in this order."""
    poll: ExchangeTasksPoll | None = None
    """At most 100 pairs of a handler and a queue."""
    end_polls: bool | None = None
    """For a worker that stops: answers its waiting polls at once. Default: False."""


class ExchangeTasksPoll(Model):
    """At most 100 pairs of a handler and a queue."""

    handlers: list[str]
    """Claims tasks of these handlers by priority, then age."""
    queues: list[str] | None = None
    """Restricts the poll to these queues. Default: all tasks."""
    limit: int | None = None
    """Maximum number of tasks; 0 claims none. Larger values are lowered to 1000. Default: 1."""
    wait_ms: int | None = None
    """Maximum wait in ms for a task. A refused result ends it. Larger values are lowered to
    60000. Default: 0.
    """


class ExplanationWarning(Model):
    kind: Literal["output_truncated"]
    """An output exceeded its limit; expressions see a note."""
    block_id: str
    summary: str


class ExportHandoff(Model):
    tenant_id: str | None = None
    requirements: Requirements | None = None
    """Findings of the placement decision."""
    expires_in_seconds: int | None = None
    """Default: 300."""
    payload_key_base64: str | None = None
    """A single-use key of 32 bytes, made by the destination. Default: only servers with the same
    encryption key can open the capsule.
    """
    capture_checkpoint: bool | None = None
    """First saves a checkpoint of the live state. Default: False."""


class FailTask(Model):
    worker_id: str
    """Must equal the claim's worker_id."""
    message: str
    retryable: bool | None = None
    """Default: False."""
    claim_epoch: int | None = None
    """Must equal the claim's epoch; required by some deployments."""
    logs: list[CompleteTaskLog] | None = None


class FailTaskResult(Model):
    kind: Literal["fail"] = "fail"
    task_id: str
    message: str
    retryable: bool | None = None
    """Default: False."""
    claim_epoch: int | None = None
    """Must equal the claim's epoch; required by some deployments."""
    logs: list[CompleteTaskLog] | None = None


class Failure(Model):
    """The reason of a failure. block_id, path, handler and attempt are null if it was not a
    block.
    """

    block_id: str | None
    """The failed block, not the blocks around it."""
    path: str | None
    """Path from the outermost block, such as orders[2]/charge."""
    handler: str | None
    """Handler of the step."""
    attempt: int | None
    """Attempt of the step, from 0."""
    code: FailureCode
    message: str
    at: datetime


class FailureAttribute(Model):
    """An attribute of failed instances."""

    name: str
    """version, block, attempt, queue, worker, worker_version, or metadata. and a key of
    metadata.
    """
    distinct: int
    """Number of different values."""
    values: list[FailureAttributeValue]
    """Most frequent first, at most five."""


class FailureAttributeValue(Model):
    value: str
    count: int
    """Failed instances with it."""
    share: float
    """Share of the failed instances."""
    share_of_runs: float | None
    """Share of the runs they are compared with; null: not known."""


class FailureAttributes(Model):
    """What failed instances have in common."""

    failed: int
    """Examined newest instances, at most 500."""
    runs: int
    """Newest runs of the same sequences since failed_after, at most 500."""
    complete: bool
    """Whether all instances of the cause were examined."""
    attributes: list[FailureAttribute]


class FailureGroup(Model):
    """Instances with the same reason of failure. To select them in lists and bulk changes:
    sequence_id, failure_code, failure_block, failure_handler and failure_reason.
    """

    namespace: str
    sequence_id: str
    sequence_name: str
    version: int
    block_id: str | None
    handler: str | None
    code: str
    """Code of the failure."""
    reason: str
    """The message, with # for numbers and ids, and "…" for quoted text."""
    count: int
    first_at: datetime
    last_at: datetime
    example_instance_id: str
    """Instance with the newest failure."""
    example_message: str
    counts: list[int]
    """Failures in 24 equal intervals from failed_after to failed_before or now, oldest first;
    empty without failed_after.
    """
    new: bool | None
    """Whether no instance of any sequence that failed with this code, handler and reason in as
    long before failed_after is still failed; null if unknown.
    """
    runs: FailureGroupRuns | None
    """Of the newest 500 runs of this version that were created after failed_after; null without
    it, and but for the 20 versions with the most failures.
    """


class FailureGroupRuns(Model):
    """Of the newest 500 runs of this version that were created after failed_after; null without
    it, and but for the 20 versions with the most failures.
    """

    finished: int
    failed: int
    """Of them, failed instances of this group."""


class FailureGroups(Model):
    groups: list[FailureGroup]
    """Largest first, at most 200."""
    looked_at: int
    """Examined newest failed instances, at most 10000."""
    complete: bool
    """Whether all failed instances of the period and all groups are included."""


class FailureHook(Model):
    """A step that runs in the server after an instance has failed."""

    type: Literal["step"]
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms. Default and maximum: 30000."""
    handler: CancelHookHandler
    """A built-in handler; hooks cannot use workers."""
    params: dict[str, Any] | None = None
    """Parameters of the handler. Invalid ones of built-in handlers are answered 400. noop: none.
    log: message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event:
    name (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST,
    PUT, PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message,
    retryable. transform: anything. assert: condition (required), message.
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
    """A reason why some instances were not migrated."""

    code: str
    count: int
    """Number of affected instances."""
    summary: str
    """Summary for the first affected instance."""
    remedy: str
    example_ids: list[str]


class ForEachBlock(Model):
    """Runs its body for each item of a context.data array."""

    type: Literal["for_each"] = "for_each"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    collection: str
    """An array: path in context.data, or template. May be missing."""
    item_var: str | None = None
    """Key of context.data with the item, in the body. Must not be __proto__, constructor or
    prototype. Default: "item".
    """
    body: list[Block]
    """Blocks that run for each item."""
    index_var: str | None = None
    """Key of context.data with the index of the item, from 0. Must not be __proto__, constructor
    or prototype.
    """
    concurrency: int | None = None
    """Number of items that run concurrently. Default: 1."""
    max_iterations: int | None = None
    """Maximum number of items; more fail the block at once. Default: 1000."""


class ForkInstance(Model):
    from_block_id: str
    context: dict[str, Any] | None = None
    """Changes context.data before anything runs."""
    context_mode: ForkInstanceContextMode | None = None
    """merge: top-level members; replace: all data. Default: "merge"."""
    dry_run: bool | None = None
    """Default: True."""
    signals: list[SendSignal] | None = None


class Gate(Model):
    """Evaluated once both versions have min_sample finished instances. Fails if the candidate's
    rate exceeds the baseline's by more than max_regression.
    """

    metric: GateMetric
    """error_rate: share of failed instances among finished ones; cancel_rate: share of cancelled
    ones.
    """
    max_regression: float
    """Allowed excess of the candidate's rate over the baseline's, 0 to 1."""
    min_sample: int
    """Finished instances of each version required for a verdict."""


class GateChoice(Model):
    label: str
    """Text of the choice, for people."""
    value: str
    """Value of the answer, if a person selects this choice."""


class GateJudgement(Model):
    """Verdict of a gate with both rates."""

    gate: Gate
    baseline_rate: float | None = None
    candidate_rate: float | None = None
    verdict: GateJudgementVerdict


class GateReport(Model):
    """Finished instances since the canary started, and current verdicts. baseline_history: the
    baseline's newest runs before the canary, for gates with too few since then.
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
    """Valid while the execution, its effects, the destination's facts and the policy are
    unchanged.
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
    """How to resolve a finding about the execution."""


class Health(Model):
    status: Literal["ok"]


class HeartbeatAccepted(Model):
    checkpoint_seq: int


class HeartbeatTask(Model):
    """A checkpoint requires checkpoint_seq."""

    worker_id: str
    """Must equal the claim's worker_id."""
    claim_epoch: int | None = None
    """Must equal the claim's epoch; required by some deployments."""
    checkpoint_seq: int | None = None
    """Value of the last response."""
    checkpoint: dict[str, Any] | None = None
    release: bool | None = None
    """Releases the claim: the task can be claimed again immediately. Default: False."""


class HeartbeatTaskResult(Model):
    """A checkpoint requires checkpoint_seq."""

    kind: Literal["heartbeat"] = "heartbeat"
    task_id: str
    claim_epoch: int | None = None
    """Must equal the claim's epoch; required by some deployments."""
    checkpoint_seq: int | None = None
    """Value of the last response."""
    checkpoint: dict[str, Any] | None = None
    release: bool | None = None
    """Releases the claim: the task can be claimed again immediately. Default: False."""


class ImportCapsule(Model):
    tenant_id: str | None = None
    destination_runtime_id: str
    expected_epoch: int
    destination_instance_id: str | None = None
    """Default: generated."""
    capsule: Capsule
    payload_base64: str | None = None
    """Default: the capsule that this server sealed."""
    payload_key_base64: str | None = None


class ImportReceipt(Model):
    """A signed statement: this server has the instance of the capsule."""

    statement: str
    """Canonical JSON of the statement."""
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
    """The Postgres schema of its tables."""
    cluster: bool
    """Whether other cells are known."""
    env_label: str | None
    env_color: str | None
    ui_links: list[UiLink] | None = None
    encryption_key: str | None = None


class InjectBlocks(Model):
    blocks: list[Block]
    """At most 1 MiB as JSON over all injections of an instance."""
    position: int | None = None


class InstanceContext(Model):
    """data, config and audit: together at most 256 KiB, unless the deployment sets another
    limit.
    """

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


class InstanceCounts(Model):
    """Matching instances by state."""

    scheduled: int
    running: int
    waiting: int
    paused: int
    completed: int
    failed: int
    cancelled: int
    looked_at: int
    """Examined newest instances, at most 10000."""
    complete: bool
    """False: there may be further matches among older instances."""


class InstanceCreated(Model):
    id: str
    deduplicated: bool
    """True: id is that of an existing instance."""
    skipped: Literal[True] | None = None
    """Nothing was created, since all slots are taken (when_full: skip)."""
    collected: Literal[True] | None = None
    """The sequence collects creations: the instance with this id starts later."""
    starts_at: datetime | None = None
    """With collected: when the instance starts, unless a later creation changes it."""


class InstanceExplanation(Model):
    id: str
    sequence_id: str
    state: InstanceState
    since: datetime
    """Time of the change to this state."""
    summary: str
    """Current activity in one sentence."""
    waiting_for: list[Wait]
    waiting_count: int
    """Number of all waits."""
    failure: Failure | None
    cancelling: Cancelling | None = None
    parent_instance_id: str | None = None
    """The parent, if a sub_sequence created it."""
    cancel_on: list[InstanceExplanationCancelOn] | None = None
    """Events that cancel it, with their correlation keys; absent: none."""
    next: list[NextAction]
    warnings: list[ExplanationWarning] | None = None
    """Probable causes of unexpected behavior; absent: none."""


class InstanceExplanationCancelOn(Model):
    event: str
    key: str | None = None


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


class InstanceResult(Model):
    """What became of a creation that waited. Without state nothing was created (skipped)."""

    id: str
    deduplicated: bool
    """True: id is that of an existing instance."""
    skipped: Literal[True] | None = None
    """Nothing was created, since all slots are taken (when_full: skip)."""
    collected: Literal[True] | None = None
    """The sequence collects creations: the instance with this id starts later."""
    starts_at: datetime | None = None
    """With collected: when the instance starts, unless a later creation changes it."""
    state: InstanceState | None = None
    outputs: dict[str, Any] | None = None
    """The last output of each block, by block id, once the instance has ended. Absent if they
    are together larger than 1 MiB: read /outputs.
    """
    failure: Failure | None = None
    """The failure; null if it has not failed."""


class InstanceRetried(Model):
    id: str
    state: Literal["scheduled"]


class InstancesMigrated(Model):
    count: int
    """Number of examined instances."""
    automatic: int
    """Number of instances that can be migrated."""
    migrated: int
    """Number of migrated instances; 0 in a dry run."""
    approval_required: int
    """Number of instances that need approval."""
    pinned: int
    incompatible: int
    failed: int
    """Number refused for another reason, such as a running step."""
    findings: list[FindingOfMany]
    migrations: list[MigrationOfMany]
    """The migrated instances, in no order."""
    done: bool
    """False: continue with next_cursor."""
    next_cursor: str | None
    dry_run: bool


class ItemCounts(Model):
    """Items of an open for_each."""

    total: int
    running: int
    ended: int


class KeyMinted(Model):
    id: str
    """Id of a key: ak_ and 32 hexadecimal digits."""
    tenant_id: str
    name: str
    capabilities: list[Capability]
    groups: list[str]
    """Groups for which the key answers approvals."""
    secret: str
    """The key: sk_ and 64 hexadecimal digits; shown only in this response."""
    created_at: datetime
    expires_at: datetime | None


class LocalityPolicy(Model):
    """All matching rules apply."""

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


class LogLine(Model):
    """A log line of a step."""

    instance_id: str
    sequence_id: str
    sequence_name: str
    block_id: str
    ts: datetime
    """Its time, set by the worker."""
    level: str
    message: str


class LoopBlock(Model):
    """Repeats its body while the condition is true."""

    type: Literal["loop"] = "loop"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    condition: str
    """Evaluated before each iteration; false ends the loop."""
    body: list[Block]
    """Blocks of each iteration."""
    max_iterations: int | None = None
    """Maximum number of iterations; the loop then succeeds. Default: 1000."""
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
    """Restricts the link to this value. One of the values in choices."""
    recipient: str | None = None
    """Name of the recipient, recorded as answered_by."""


class MigrateInstance(Model):
    instance_id: str
    target_sequence_id: str


class MigrateInstances(Model):
    """Requires version or sequence_id; with both, the sequence has that version."""

    version: int | None = None
    """Version of the same sequence."""
    sequence_id: str | None = None
    """Id of the target version."""
    to_sequence_id: str | None = None
    """Alias of sequence_id."""
    target_sequence_id: str | None = None
    """Alias of sequence_id."""
    filter: BatchActionFilter | None = None
    approved: bool | None = None
    """Also migrates where the verdict is approval_required. Default: False."""
    dry_run: bool | None = None
    """Only returns the verdict: nothing is changed. Default: False."""
    limit: int | None = None
    """Maximum number of instances examined by one request. Default: 200."""
    cursor: str | None = None
    """The previous next_cursor. An empty text counts as absent."""


class MigrateTo(Model):
    """Requires version or sequence_id; with both, the sequence has that version."""

    tenant_id: str | None = None
    version: int | None = None
    """Version of the same sequence."""
    sequence_id: str | None = None
    """Id of the target version."""
    to_sequence_id: str | None = None
    """Alias of sequence_id."""
    target_sequence_id: str | None = None
    """Alias of sequence_id."""
    transforms: list[Transform] | None = None
    """Default: []."""
    approved: bool | None = None
    """Also migrates where the verdict is approval_required. Default: False."""
    rollback_retention_seconds: int | None = None
    """Time for a rollback in seconds: 60 to 2,592,000; default: 86,400. Default: 86400."""
    dry_run: bool | None = None
    """Only returns the verdict: nothing is changed. Default: False."""


class MigratedInstance(Model):
    migrated: bool
    """False in a dry run, or if the version is the same."""
    instance_id: str
    from_: MigratedInstanceFrom = Field(alias="from")
    to: MigratedInstanceFrom
    verdict: MigratedInstanceVerdict
    finding_codes: list[str]
    findings: list[MigrationFinding]
    state: InstanceState
    """State of the instance, which does not change."""
    migration_id: str | None
    """Required for a rollback; null if nothing was migrated."""
    rollback_expires_at: datetime | None
    """Deadline of a rollback; null: none."""
    dry_run: Literal[True] | None = None


class MigratedInstanceFrom(Model):
    sequence_id: str
    version: int


class MigrationFinding(Model):
    """Why a migration is not automatic."""

    code: str
    """One of finding_codes, or another code."""
    block_id: str | None
    path: str | None
    """Path with the iterations of enclosing loops."""
    summary: str
    remedy: str
    """How to resolve the finding."""


class MigrationOfMany(Model):
    """A migrated instance."""

    instance_id: str
    migration_id: str
    """Id of the migration, for a rollback."""


class MigrationPlan(Model):
    id: str
    tenant_id: str
    continuity_id: str
    from_sequence_id: str
    from_version: int
    to_sequence_id: str
    to_version: int
    disposition: MigratedInstanceVerdict
    """Alias of verdict."""
    verdict: MigratedInstanceVerdict
    """automatic: can be applied; approval_required: with approved true; pin, incompatible:
    never.
    """
    transforms: list[Transform]
    finding_codes: list[str]
    findings: list[MigrationFinding]
    """Why the migration is not automatic; empty if it is."""
    rollback_capsule_required: bool
    created_at: datetime


class MigrationRecord(Model):
    """A plan and its result."""

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
    """Must not be . or .., or begin or end with spaces or tabs."""
    name: str | None = None
    """Default: ""."""
    capabilities: list[Capability]
    groups: list[str] | None = None
    """Groups for which the key answers approvals; only with the capability approver."""
    expires_at: datetime | None = None


class NextAction(Model):
    """A suggested request."""

    action: str
    method: str
    path: str
    """Path, relative to the base address of the API."""
    body: Any = None
    why: str
    runs_again: RunsAgain | None = None


class NextFires(Model):
    timezone: str
    fires: list[datetime]


class NotReady(Model):
    """`reason` is present if the database is the cause, with its SQLSTATE if it answered."""

    error: str
    reason: NotReadyReason | None = None


class NotReadyReason(Model):
    kind: NotReadyReasonKind
    sql_state: str | None = None


class OpenApiDocument(Model):
    openapi: str
    info: EndpointState
    paths: EndpointState


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
    """Canonical JSON of the statement."""
    public_key: str
    signature: str


class ParallelBlock(Model):
    """Runs all branches concurrently; fails if one fails."""

    type: Literal["parallel"] = "parallel"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    branches: list[list[Block]]
    """Lists of blocks that run concurrently."""


class PatchContext(Model):
    """Replaces the given sections of the context."""

    context: PatchContextContext
    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 if it has changed."""


class PatchContextContext(Model):
    data: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    audit: list[Any] | None = None


class PatchState(Model):
    state: InstanceState
    next_fire_at: datetime | None = None
    """For a change to scheduled. Default: now, or for a paused instance the time at which it
    would continue.
    """


class PayloadArtifact(Model):
    key: str
    sha256: str
    bytes: int


class PendingStart(Model):
    """An instance that is yet to start, from creations that its sequence collects."""

    id: str
    """Id of the instance."""
    tenant_id: str
    namespace: str
    sequence: str
    """Name of the sequence."""
    kind: PendingStartKind
    key: str | None
    """The key that these creations share; null without one."""
    count: int
    """Number of collected creations."""
    cancelled: int
    """Number of creations that events took out of the batch (cancel_on)."""
    created_at: datetime
    """When the first creation was collected."""
    starts_at: datetime
    error: str | None
    """Why the instance could not start; it is tried again. Null: nothing."""


class PlaceExecution(Model):
    tenant_id: str | None = None
    requirements: Requirements | None = None
    policy: LocalityPolicy | None = None
    """Alias of locality_policy."""
    locality_policy: LocalityPolicy | None = None
    classification: CreateHandoffClassification | None = None
    """Alias of data_classification."""
    data_classification: CreateHandoffClassification | None = None
    """Default: "internal"."""


class PlacementDecision(Model):
    """Evaluation of all live runtimes."""

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
    tenant_id: str | None = None
    continuity_id: str
    to_sequence_id: str
    to_version: int
    """Version of to_sequence_id, else 404."""
    transforms: list[Transform] | None = None
    """Default: []."""
    rollback_retention_seconds: int | None = None
    """Time for a rollback in seconds: 60 to 2,592,000; default: 86,400. Default: 86400."""
    capture_checkpoint: bool | None = None
    """First saves a checkpoint of the live state. Without any checkpoint: 409. First saves a
    checkpoint of the live state. Default: False.
    """


class PollQueue(Model):
    handler_name: str
    worker_id: str
    """Must not begin with endpoint:."""
    limit: int | None = None
    """Maximum number of tasks; 0 claims none. Larger values are lowered to 1000. Default: 1."""
    wait_ms: int | None = None
    """Maximum wait in ms if there is no task. Larger values are lowered to 60000. Default: 0."""
    version: str | None = None
    queue_name: str


class PollTasks(Model):
    handler_name: str
    worker_id: str
    """Must not begin with endpoint:."""
    limit: int | None = None
    """Maximum number of tasks; 0 claims none. Larger values are lowered to 1000. Default: 1."""
    wait_ms: int | None = None
    """Maximum wait in ms if there is no task. Larger values are lowered to 60000. Default: 0."""
    version: str | None = None


class PreviewHandoff(Model):
    tenant_id: str | None = None
    requirements: Requirements | None = None
    policy: LocalityPolicy | None = None
    """Alias of locality_policy."""
    locality_policy: LocalityPolicy | None = None
    classification: CreateHandoffClassification | None = None
    """Alias of data_classification."""
    data_classification: CreateHandoffClassification | None = None
    """Default: "internal"."""
    destination_runtime_id: str


class PreviewSchedule(Model):
    cron_expr: str
    """Seven fields: second minute hour day month day_of_week year. Also accepted: six (without
    year) or five (without second and year), ?, and @hourly, @daily, @weekly, @monthly,
    @yearly.
    """
    timezone: str | None = None
    """IANA time zone, such as Europe/Berlin. Default: "UTC"."""
    count: int | None = None
    """Default: 5."""
    from_: datetime | None = Field(default=None, alias="from")
    """Time after which fires are listed; default: now."""


class PreviewedFire(Model):
    at: datetime
    """Time of the fire in UTC."""
    local: datetime
    """The same time with the offset of the time zone."""


class PromoteRelease(Model):
    force: bool | None = None
    """Recorded in the decision; failing evidence is refused regardless. Default: False."""


class ProvenanceEntry(Model):
    """A decision, with the previous hash."""

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
    valid: bool
    entries_checked: int
    first_invalid_index: int | None
    code: str | None
    """Error code of the first invalid entry."""
    head_sha256: str | None


class PruneCheckpoints(Model):
    keep: int
    dry_run: bool | None = None
    """Only counts: nothing is changed. Default: False."""


class PutRateLimit(Model):
    max_count: int
    window_seconds: int
    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 if it has changed."""


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
    """The updated_at that was read: 409 if it has changed."""


class PutWorkerEndpoint(Model):
    """Replaces the endpoint; only an absent secret stays as it is."""

    tenant_id: str | None = None
    """Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with
    spaces or tabs.
    """
    handlers: list[str]
    """The handlers whose tasks are delivered, from every queue."""
    url: str
    """http or https, without credentials; a public address unless the deployment allows others."""
    secret: str | None = None
    """Key of the signatures: whsec_ and base64 as in Standard Webhooks, or any text. Required
    for a new endpoint; never returned. Must not be [REDACTED].
    """
    concurrency: int | None = None
    """Maximum number of requests at a time. Default: 10."""
    timeout_ms: int | None = None
    """Maximum time until the end of the response, in ms. Default: 30000."""
    enabled: bool | None = None
    """False: no new tasks are delivered. Default: True."""
    receives_secrets: bool | None = None
    """True: tasks are delivered with the secrets that they name. Requires the capability
    secrets. Default: False.
    """
    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 if it has changed."""


class QueueInfo(Model):
    """Open tasks of a handler and queue."""

    handler: str
    queue: str | None
    """Null: tasks without a queue."""
    waiting: int
    claimed: int
    oldest_waiting_since: datetime | None
    workers: int
    """Live workers that poll for such tasks."""
    open_polls: int
    """Long polls that would receive such a task immediately."""


class QueueInterval(Model):
    at: datetime
    """Start of the interval."""
    arrived: int
    """Tasks that came to the queue, or returned to it."""
    taken: int
    """Tasks that workers claimed."""
    withdrawn: int
    """Tasks that were withdrawn before a worker claimed them."""
    ended: int
    """Claimed tasks that ended."""
    longest_wait_ms: float
    """Longest time from creation to claim; 0 if none was claimed."""


class QueueSeries(Model):
    """Tasks of a handler and queue by interval."""

    since: datetime
    step_secs: int
    intervals: list[QueueInterval]
    """Oldest first, including empty intervals."""
    complete: bool
    """False: the oldest intervals are incomplete."""


class Queues(Model):
    queues: list[QueueInfo]
    """Sorted by handler and queue."""
    complete: bool
    """False: only the oldest 20000 open tasks count."""


class RaceBlock(Model):
    """first_to_resolve: the first branch to finish wins, even by failing. first_to_succeed: the
    first branch to succeed wins; the block fails if all fail. The other branches are
    cancelled.
    """

    type: Literal["race"] = "race"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    branches: list[list[Block]]
    """Lists of blocks that run until one has won."""
    semantics: RaceBlockSemantics | None = None
    """Which branch wins. Default: "first_to_resolve"."""


class RateLimit(Model):
    tenant_id: str
    key: str
    max_count: int
    window_seconds: int
    updated_at: datetime
    pattern: str | None = None
    """The pattern whose limit applies to the requested key. Absent: it has its own limit."""


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
    """observed_at: at most 30 s ahead. expires_at: 5 min later at most. trust: unverified or
    registered. Lists: at most 256 entries of 256 bytes.
    """


class RegisterRuntimeCapabilities(Model):
    """observed_at: at most 30 s ahead. expires_at: 5 min later at most. trust: unverified or
    registered. Lists: at most 256 entries of 256 bytes.
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
    """Routes new instances from baseline to candidate."""

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
    """Last requested percentage; 0 before the first canary."""
    gates: list[Gate] | None = None
    """Gates of the release; absent if none."""
    in_flight_policy: CreateReleaseInFlightPolicy
    """Neither migrates running instances: with operator_decision an operator does so explicitly."""
    validation_summary: ValidationSummary | None = None
    canary_started_at: datetime | None = None
    """Last start of the canary; absent before the first."""
    created_at: datetime
    updated_at: datetime


class ReleaseDecision(Model):
    """A state change; immutable."""

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
    """Start of the interval in which the instances were created."""
    variant: str
    """baseline or candidate."""
    ended: int
    failed: int
    cancelled: int
    error_rate: float
    cancel_rate: float
    duration_p50_ms: float
    """Time from creation to the end."""
    duration_p95_ms: float
    share: float
    """Share of all finished instances."""


class ReleaseSeries(Model):
    """Both versions since the canary started."""

    since: datetime
    step_secs: int
    points: list[ReleasePoint]
    """Intervals, oldest first."""
    complete: bool
    """False: only the newest 10000 finished instances count."""


class Requirements(Model):
    """All of each list; one of the regions."""

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
    """Changes context.data before anything runs."""
    context_mode: ForkInstanceContextMode | None = None
    """merge: top-level members; replace: all data. Default: "merge"."""
    signals: list[SendSignal] | None = None


class ResumedFrom(Model):
    id: str
    state: Literal["scheduled"]
    resumed_from: str
    outputs_deleted: int
    signals_enqueued: int


class Retry(Model):
    """Retries after failed attempts. initial_backoff must not be above max_backoff."""

    max_attempts: int
    """Maximum number of attempts, including the first."""
    initial_backoff: int | None = None
    """Wait in ms before the second attempt. Default: 1000."""
    max_backoff: int | None = None
    """Maximum wait in ms between two attempts. Default: 60000."""
    backoff_multiplier: float | None = None
    """Factor by which the wait grows with each attempt. Default: 2."""
    retry_if: str | None = None
    """Condition for a retry; it can read the error as _error."""
    non_retryable_codes: list[str] | None = None
    """Error codes that are not retried."""


class RetryInstance(Model):
    context: dict[str, Any] | None = None
    """Changes context.data before anything runs."""
    context_mode: ForkInstanceContextMode | None = None
    """merge: top-level members; replace: all data. Default: "merge"."""


class RetryOutcome(Model):
    """Retried instances by their present state."""

    completed: int
    failed: int
    """Failed again."""
    cancelled: int
    open: int
    """Not finished yet."""


class RollbackCapsule(Model):
    capsule_id: str
    payload_artifact: PayloadArtifact
    manifest_sha256: str
    public_key: str
    signature: str


class Route(Model):
    condition: str
    """Condition of the route."""
    blocks: list[Block]
    """Blocks of the route."""


class RouterBlock(Model):
    """Runs the first route whose condition is true, else default. Requires a route or a default."""

    type: Literal["router"] = "router"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    routes: list[Route] | None = None
    """The first route whose condition is true runs."""
    default: list[Block] | None = None
    """Blocks that run if no condition is true."""


class RunSchedule(Model):
    idempotency_key: str | None = None
    """A repetition with the same key returns the first instance. An empty text counts as absent."""


class RunsAgain(Model):
    """Effect of a retry, or of a resume that retries."""

    blocks: list[RunsAgainBlock]
    blocks_count: int
    """Number of all blocks that run again."""
    stays: list[str]
    """Paths of completed outermost blocks that do not run again."""
    stays_count: int
    """Number of all blocks that do not run again."""
    repeats_effects: bool
    """Whether a completed step repeats external effects, or a child continues whose parent
    ignores it: ask for confirmation.
    """
    parent: RunsAgainParent | None = None
    ends: RunsAgainEnds | None = None
    """Final state after the retry; absent: it continues."""


class RunsAgainBlock(Model):
    """A block that a retry runs again."""

    kind: RunsAgainBlockKind
    summary: str
    block_id: str
    path: str
    """Path from the outermost block, such as orders[2]/charge."""
    repeats: list[str]
    """Paths of completed steps whose external effects are repeated with new idempotency keys;
    for a retried child, paths in the child.
    """
    repeats_effects: bool
    """Whether external effects are repeated."""
    child_id: str | None = None
    """The child that is retried or awaited; absent: none, or a new one."""
    cleans_up: Literal[True] | None = None
    """The child runs only its cleanup."""


class RunsAgainParent(Model):
    """Effect of a retry on the parent."""

    id: str
    stands: RunsAgainParentStands
    summary: str


class RuntimeCapabilities(Model):
    """Facts of a live runtime."""

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
    """Runs its actions in order. If one fails, the compensations of the completed ones run in
    reverse order, and the saga fails.
    """

    type: Literal["saga"] = "saga"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    steps: list[SagaStep]
    """Actions with their compensations. If empty, the saga completes."""


class SagaStep(Model):
    id: str
    """Id of the saga's step, unique in the sequence among all block ids. Must not be __proto__,
    constructor or prototype.
    """
    action: Block | list[Block]
    """A block, or a list of blocks."""
    compensation: Block | list[Block] | None = None
    """A block, or a list of blocks, that undoes the action."""


class SaveCheckpoint(Model):
    checkpoint_data: Any
    """Value of the checkpoint, at most 256 KiB as JSON."""


class ScheduleCreated(Model):
    id: str
    next_fire_at: datetime | None


class SchedulePreview(Model):
    """Has fewer fires than requested if the expression has no more."""

    timezone: str
    fires: list[PreviewedFire]


class ScheduleRun(Model):
    id: str
    deduplicated: bool
    """True: id is that of an existing instance."""
    skipped: Literal[True] | None = None
    """Nothing was created, since all slots are taken (when_full: skip)."""
    collected: Literal[True] | None = None
    """The sequence collects creations: the instance with this id starts later."""
    starts_at: datetime | None = None
    """With collected: when the instance starts, unless a later creation changes it."""
    instance_id: str


class SearchHit(Model):
    """An instance or sequence that a search found."""

    kind: SearchHitKind
    id: str
    """Of a sequence: the id of its newest version."""
    tenant_id: str
    namespace: str
    sequence: str
    """Name of the sequence."""
    version: int
    """Version of the sequence."""
    state: InstanceState | None = None
    """Of an instance."""
    created_at: datetime
    matched_by: SearchHitMatchedBy
    """value: a value of a searchable member or of metadata. name: the name of a sequence."""
    matched: str
    """The id, key, value or name that matches; values are in lower case."""


class SemanticDiff(Model):
    """Differences, most severe first."""

    entries: list[DiffEntry]
    max_severity: DiffEntrySeverity | None = None
    entries_omitted: int | None = None
    """Present above 10000 entries: the least severe are omitted."""
    candidate_lint: list[str] | None = None


class SendEvent(Model):
    tenant_id: str | None = None
    """Must equal the header x-tenant-id, if sent. Must not be . or .., or begin or end with
    spaces or tabs.
    """
    event_name: str
    producer_event_id: str
    """Producer's id: a repeated id is a duplicate."""
    correlation_key: str | None = None
    """Matches steps that wait for the name and this key."""
    payload: Any = None
    """Becomes the output of the steps."""
    ttl_seconds: int | None = None
    """Seconds for which a later wait can match the event. Default: 86400."""


class SendEvents(Model):
    events: list[SendEvent]


class SendSignal(Model):
    signal_type: str | SendSignalSignalType
    """pause, resume, cancel, update_context or custom:<name> with any name. The form {"custom":
    name} is accepted too.
    """
    payload: Any = None


class SendSignalSignalType(Model):
    custom: str


class SendWindow(Model):
    """Hours in which the step may start. It waits for them. The two hours must differ; a window
    may span midnight.
    """

    start_hour: int | None = None
    """First hour of the window. Default: 9."""
    end_hour: int | None = None
    """First hour after the window. Default: 17."""
    days: list[int] | None = None
    """Days of the window. Empty: every day."""


class SequenceCreated(Model):
    id: str
    warnings: list[DefinitionWarning] | None = None
    """At most 100; the last counts the rest."""


class SequenceDefinition(Model):
    """A stored definition."""

    id: str
    tenant_id: str
    namespace: str
    name: str
    version: int
    deprecated: bool
    hold: bool
    """True: excluded from lookups by name."""
    status: SequenceStatus
    blocks: list[Block]
    input_schema: dict[str, Any] | None = None
    """JSON Schema 2020-12 without pattern, patternProperties and recursive references. At most
    65536 bytes, and with references followed 5000 values, 1000 schemas, keywords and listed
    names, and 100 schemas within one another.
    """
    on_failure: list[FailureHook] | None = None
    """Steps that run in the server after an instance has failed, in order. A failed step does
    not stop the next.
    """
    on_cancel: list[CancelHook] | None = None
    """Steps that run in the server after an instance was cancelled, in order. A failed step does
    not stop the next.
    """
    concurrency: CreateSequenceConcurrency | None = None
    """Limits how many instances of the sequence, in all versions, run at once."""
    throttle: CreateSequenceThrottle | None = None
    """Puts off starts of instances of the sequence, in all versions."""
    cancel_on: list[CancelOn] | None = None
    """Events, sent after the creation of an instance, that cancel it."""
    debounce: CreateSequenceDebounce | None = None
    """Of creations in quick succession, only the last one starts an instance."""
    batch: CreateSequenceBatch | None = None
    """One instance starts with the data of several creations: context.data.items is their list."""
    searchable: list[str] | None = None
    """Paths below context.data, such as customer.email, or with metadata as their first name
    below the metadata. Instances are found by the texts and numbers there.
    """
    created_at: datetime


class SequenceDeletionPreview(Model):
    count: int
    """Number of instances that would be deleted."""
    ended: int
    """Number of completed and cancelled instances."""
    failed: int
    """Number of failed instances."""
    dry_run: Literal[True]


class SequenceListed(Model):
    """A stored definition, full or partial."""

    id: str
    tenant_id: str
    namespace: str
    name: str
    version: int
    deprecated: bool
    hold: bool
    """True: excluded from lookups by name."""
    status: SequenceStatus
    input_schema: dict[str, Any] | None = None
    """JSON Schema 2020-12 without pattern, patternProperties and recursive references. At most
    65536 bytes, and with references followed 5000 values, 1000 schemas, keywords and listed
    names, and 100 schemas within one another.
    """
    on_failure: list[FailureHook] | None = None
    """Steps that run in the server after an instance has failed, in order. A failed step does
    not stop the next.
    """
    on_cancel: list[CancelHook] | None = None
    """Steps that run in the server after an instance was cancelled, in order. A failed step does
    not stop the next.
    """
    concurrency: CreateSequenceConcurrency | None = None
    """Limits how many instances of the sequence, in all versions, run at once."""
    throttle: CreateSequenceThrottle | None = None
    """Puts off starts of instances of the sequence, in all versions."""
    cancel_on: list[CancelOn] | None = None
    """Events, sent after the creation of an instance, that cancel it."""
    debounce: CreateSequenceDebounce | None = None
    """Of creations in quick succession, only the last one starts an instance."""
    batch: CreateSequenceBatch | None = None
    """One instance starts with the data of several creations: context.data.items is their list."""
    searchable: list[str] | None = None
    """Paths below context.data, such as customer.email, or with metadata as their first name
    below the metadata. Instances are found by the texts and numbers there.
    """
    created_at: datetime
    blocks: list[Block] | None = None
    versions: int | None = None
    """With newest_only: number of versions of the name."""


class SequenceSteps(Model):
    """Where the time of a sequence goes."""

    since: datetime
    """Start of the first counted interval of five minutes."""
    steps: list[StepStatistics]
    """The blocks of the version in their order, then other blocks with runs. Without hooks."""
    complete: bool
    """False: only the newest 5000 stored intervals count."""
    here_complete: bool
    """False: open executions of the newest 3000 instances only."""


class SequenceValidated(Model):
    """The definition can be stored."""

    valid: Literal[True]
    warnings: list[DefinitionWarning]


class SignalAccepted(Model):
    signal_id: str


class SignalAnswer(Model):
    """What became of a signal while its sender waited."""

    signal_id: str
    taken: bool
    """Whether a step has taken it, or it took effect immediately."""
    block_id: str | None = None
    """The step that took it or, if taken is false, refused its payload."""
    reply: Any = None
    """The rendered `reply` of the step."""


class SlowRun(Model):
    instance_id: str
    state: InstanceState
    created_at: datetime
    duration_ms: float
    """Of the instance, or of its last execution of the block; until now if it is open."""
    is_open: bool
    """Whether the instance, or the block, has not ended."""


class SlowestRuns(Model):
    """Instances of a version by duration."""

    runs: list[SlowRun]
    """Longest first."""
    complete: bool
    """False: only the newest 3000 instances were examined."""


class SplitVariant(Model):
    name: str
    """Unique in the block; part of its output."""
    weight: int
    """Share of the total weight."""
    blocks: list[Block]
    """Blocks of this variant."""


class StartCanary(Model):
    percent: int
    """Percentage of the baseline's new instances routed to the candidate."""


class StepAttempt(Model):
    id: str
    source: StepAttemptSource
    """task: for a worker, from its dispatch; process: of a built-in handler, once it has
    finished.
    """
    block_id: str
    iteration: str
    """Counters of the enclosing loops; '' outside loops."""
    attempt: int
    """Counted from 0 in each iteration."""
    state: StepAttemptState
    handler_name: str | None
    """Null for a sub_sequence, or if unknown."""
    queue_name: str | None
    task_id: str | None
    worker_id: str | None
    """The last worker to claim the task."""
    queued_at: datetime | None
    """Time of the dispatch to workers."""
    started_at: datetime | None
    """Last claim or outgoing request; null: none, or unknown."""
    ended_at: datetime | None
    timeout_ms: int | None
    params: Any = None
    """Parameters as rendered for the worker."""
    overlay: Any = None
    """Members that for_each adds to context.data for this item."""
    output: Any = None
    error: StepAttemptError | None


class StepAttemptError(Model):
    message: str
    retryable: bool | None


class StepBlock(Model):
    """Runs a handler: a built-in one (noop, log, sleep, wait_for_event, http_request, fail,
    transform, assert) in the server, any other in an external worker.
    """

    type: Literal["step"] = "step"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit of an attempt in ms, for a task from its claim."""
    handler: str
    """Name of a built-in handler, or of one that external workers serve."""
    params: dict[str, Any] | None = None
    """Parameters of the handler. Invalid ones of built-in handlers are answered 400. noop: none.
    log: message, level (debug, info, warn). sleep: duration_ms (default 100). wait_for_event:
    name (required), key, timeout_ms, schema. http_request: url (required), method (GET, POST,
    PUT, PATCH, DELETE, HEAD), headers, body, timeout_ms (default 10000). fail: message,
    retryable. transform: anything. assert: condition (required), message.
    """
    delay: Delay | None = None
    """Waits before the first attempt."""
    retry: Retry | None = None
    """Retries after failed attempts. initial_backoff must not be above max_backoff."""
    queue_timeout: int | None = None
    """Time limit in ms for a worker to claim the task."""
    deadline: int | None = None
    """Time limit of the step in ms, with all waits and attempts."""
    on_deadline_breach: StepBlockOnDeadlineBreach | None = None
    """Called once when the deadline passes."""
    send_window: SendWindow | None = None
    """Hours in which the step may start. It waits for them. The two hours must differ; a window
    may span midnight.
    """
    rate_limit_key: str | None = None
    """Steps with the same key share a rate limit, and wait for it. A template. An empty text
    counts as absent.
    """
    cancellable: bool | None = None
    """False: the signal cancel waits for the step. Default: True."""
    queue_name: str | None = None
    """Queue of the task. A poll can select one queue."""
    output_schema: dict[str, Any] | None = None
    """Schema of the output; a violation fails the step. JSON Schema 2020-12 without pattern,
    patternProperties and recursive references. At most 65536 bytes, and with references
    followed 5000 values, 1000 schemas, keywords and listed names, and 100 schemas within one
    another.
    """
    merge_output: bool | None = None
    """Merges a worker's output into context.data. Default: True."""
    wait_for_input: WaitForInput | None = None
    """Requires a person's answer before the first attempt."""
    reply: Any = None
    """For wait_for_input and wait_for_event: the answer to a sender of the signal who waits,
    with templates.
    """
    context_access: Literal[False] | None = None
    """Not supported."""
    fallback_handler: Literal[False] | None = None
    """Not supported."""
    cache_key: Literal[False] | None = None
    """Not supported."""
    compensation: Literal[False] | None = None
    """Not supported."""


class StepBlockOnDeadlineBreach(Model):
    """Called once when the deadline passes."""

    handler: str
    """A built-in handler that does not wait."""
    params: dict[str, Any] | None = None
    """Parameters, with templates. The server adds _breach_block_id, _breach_instance_id,
    _breach_elapsed_ms and _breach_deadline_ms.
    """


class StepLogLine(Model):
    block_id: str
    ts: datetime
    level: str
    message: str


class StepStatistics(Model):
    """Runs of one block of a sequence."""

    block_id: str
    runs: int
    """Completed and failed executions; in loops one for each iteration."""
    failures: int
    """Failed ones, after their last attempt."""
    duration_p50_ms: float | None
    """Time from start to end, with waits and retries, within 10 %; null without runs."""
    duration_p95_ms: float | None
    total_ms: float
    """Sum of all durations."""
    share: float
    """Share of the time of all steps; of a block with blocks inside, the share of the steps
    inside.
    """
    here_now: int
    """Open executions."""


class StoredEvent(Model):
    id: str
    tenant_id: str
    event_name: str
    producer_event_id: str
    correlation_key: str | None
    payload: Any
    """Payload, in which probable secrets are redacted."""
    status: EventDetailsStatus
    matched: int
    """Number of matched steps."""
    created_at: datetime
    expires_at: datetime
    """Time until which a later wait can match the event."""
    consumed_at: datetime | None


class StoredSignal(Model):
    """A signal sent to an instance."""

    id: str
    instance_id: str
    signal_type: str
    payload: Any
    created_at: datetime
    status: StoredSignalStatus
    """kept: no step has waited for it yet; taken, refused: consumed by taken_by; applied: took
    effect immediately.
    """
    taken_at: datetime | None
    taken_by: str | None
    """Block that consumed the signal."""
    sent_by: str | None
    """Name of the sender's key; null: unknown."""


class SubSequenceBlock(Model):
    """Starts a child instance of another sequence, and waits for it."""

    type: Literal["sub_sequence"] = "sub_sequence"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    sequence_name: str
    """Sequence of the child, in the namespace of this instance."""
    version: int | None = None
    """Pins this version. Default: chosen as the child starts."""
    input: dict[str, Any] | None = None
    """context.data of the child; strings may be templates."""


class SubscriptionCreated(Model):
    id: str
    tenant_id: str
    url: str
    events: list[WebhookEvent]
    created_at: datetime
    updated_at: datetime
    secret: str
    """Shown only in this response."""


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
    """Time limit in ms, as requested."""
    traceparent: str | None = None
    """The W3C trace that its steps continue: of its creation, or of a later signal."""
    failure: Failure | None
    """The failure; null if it has not failed or was retried since."""
    cancelling: Cancelling | None = None
    created_at: datetime
    updated_at: datetime


class TaskOutcome(Model):
    """Outcome of one result."""

    task_id: str | None
    """Id as sent; null if it was not a string."""
    status: int
    """HTTP status of the equivalent single request."""
    checkpoint_seq: int | None = None
    """Number of the stored checkpoint; only for heartbeats."""
    error: str | None = None
    code: str | None = None
    """Error code, as in the header x-error-code."""


class TaskStats(Model):
    by_state: dict[str, int]
    by_handler: dict[str, dict[str, int]]
    active_workers: list[str]


class TasksExchanged(Model):
    outcomes: list[TaskOutcome]
    """Outcomes in the order of the results."""
    tasks: list[WorkerTask]
    """Tasks claimed by the poll."""
    max_body_bytes: int | None = None
    """Limit of the body of an exchange."""


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
    """Copied rows by table; null before the copy."""
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
    """Counters of the enclosing loops, such as 2.0."""
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
    version: Literal[1] | None = None
    """Default: 1."""
    transform: TransformTransform
    from_path: str
    """Dotted path in checkpoint_data; context_snapshot becomes context.data."""
    to_path: str | None = None
    """Target path, for copy and move only."""


class TreeNode(Model):
    id: str
    instance_id: str
    block_id: str
    parent_id: str | None
    block_type: str
    branch_index: int | None
    state: NodeState
    child_instance_id: str | None = None
    """For a sub_sequence: its last child."""
    started_at: datetime | None
    completed_at: datetime | None
    items: ItemCounts | None = None
    iteration: int | None = None
    """For an open loop: the current iteration, from 0."""
    output_count: int | None = None
    """In loops: output rows over all iterations."""


class Trigger(Model):
    slug: str
    tenant_id: str
    namespace: str
    sequence_name: str | None
    publish: TriggerPublish | None
    version: int | None
    trigger_type: TriggerType
    secret: str | None
    """[REDACTED] if the trigger has a secret."""
    verify: TriggerVerification | None
    config: dict[str, Any]
    enabled: bool
    created_at: datetime
    updated_at: datetime


class TriggerFired(Model):
    trigger: str
    instance_id: str | None = None
    """The instance that was started; with skipped, one that holds the key."""
    skipped: Literal[True] | None = None
    """Nothing was created, since all slots are taken (when_full: skip)."""
    collected: Literal[True] | None = None
    """The sequence collects creations: the instance with this id starts later."""
    starts_at: datetime | None = None
    """With collected: when the instance starts, unless a later creation changes it."""
    event_id: str | None = None
    duplicate: bool | None = None
    """True: the delivery had its effect before, and has no second."""
    matched_wait: str | None = None
    """Id of the first matched wait."""
    satisfied: bool | None = None
    """Whether a step waited for it."""
    matched: int | None = None
    """Number of waiting steps."""
    cancelled: int | None = None
    """Number of instances that it cancels, started or not; absent: none."""
    triggers: int | None = None
    """Number of triggers fired; absent: none, or a duplicate."""
    sequence_name: str | None = None


class TriggerPublish(Model):
    """Templates over `body` and `headers` of the request; headers have names in lower case."""

    event: str
    """Name of the event."""
    key: str | None = None
    """Its correlation key. Default: none."""
    payload: Any = None
    """Its payload. Default: the body."""
    id: str | None = None
    """Its producer_event_id. Default: derived from the id of the delivery, so that a repeated
    delivery is a duplicate.
    """


class TriggerVerification(Model):
    scheme: TriggerVerificationScheme
    """engine: as with `secret`. hmac: a signature of the body. basic: user:password. bearer: a
    token.
    """
    header: str | None = None
    """Of hmac, which requires it, and bearer: the header with the signature or the token."""
    encoding: TriggerVerificationEncoding | None = None
    """Of hmac. Default: hex."""
    prefix: str | None = None
    """Of hmac: precedes the signature in the header, such as sha256=."""
    algorithm: TriggerVerificationAlgorithm | None = None
    """Of hmac. Default: sha256."""
    tolerance_ms: int | None = None
    """Of standard_webhooks, stripe and slack: the greatest age of a request. Default: 300,000."""
    secret: str
    """Always [REDACTED]."""


class TriggerVerify(Model):
    scheme: TriggerVerificationScheme
    """engine: as with `secret`. hmac: a signature of the body. basic: user:password. bearer: a
    token.
    """
    header: str | None = None
    """Of hmac, which requires it, and bearer: the header with the signature or the token."""
    encoding: TriggerVerificationEncoding | None = None
    """Of hmac. Default: hex."""
    prefix: str | None = None
    """Of hmac: precedes the signature in the header, such as sha256=."""
    algorithm: TriggerVerificationAlgorithm | None = None
    """Of hmac. Default: sha256."""
    tolerance_ms: int | None = None
    """Of standard_webhooks, stripe and slack: the greatest age of a request. Default: 300,000."""
    secret: str | list[str]
    """Shared with the sender; a list of two while it is replaced. Never returned."""


class TryCatchBlock(Model):
    """Runs catch_block on failure, and finally_block always."""

    type: Literal["try_catch"] = "try_catch"
    """Kind of the block."""
    id: str
    """Unique in the sequence. Expressions use it to refer to the output. Must not be __proto__,
    constructor, prototype, . or ..
    """
    when: str | None = None
    """If false, skips the block."""
    timeout: int | None = None
    """Time limit in ms; then the block is cancelled, and fails."""
    try_block: list[Block]
    """Blocks that run first."""
    catch_block: list[Block]
    """Blocks that run if try_block failed."""
    finally_block: list[Block] | None = None
    """Blocks that always run last, also after a cancellation."""


class UiLink(Model):
    """A link of the dashboard to another system."""

    label: str
    url: str
    """With placeholders such as {instance_id}."""
    on: UiLinkOn


class UpdateCredential(Model):
    """Absent members stay unchanged; null resets a member to its default. Refused, because they
    cannot be changed: id, tenant_id, has_refresh_token, created_at, updated_at.
    """

    name: str | None = None
    value: str | None = None
    """The secret: a text of at most 262144 bytes. If it is a JSON object, templates can use
    {{secrets.id.member}}. Never returned. Must not be [REDACTED].
    """
    kind: CredentialKind | None = None
    description: str | None = None
    expires_at: datetime | None = None
    """Time from which steps cannot use the credential."""
    refresh_url: str | None = None
    """Public address, for clients that renew the secret; with oauth2 only."""
    refresh_token: str | None = None
    """Refresh token, sealed like the value. Must not be [REDACTED]."""
    enabled: bool | None = None
    """False: steps cannot use the credential."""


class UpdateSchedule(Model):
    """Absent members stay unchanged; null resets a member to its default. Refused, because they
    cannot be changed: id, tenant_id, namespace, sequence_id, sequence, version,
    skipped_fires, last_skipped_at, last_triggered_at, next_fire_at, last_error, created_at,
    updated_at.
    """

    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 if it has changed."""
    cron_expr: str | None = None
    """Seven fields: second minute hour day month day_of_week year. Also accepted: six (without
    year) or five (without second and year), ?, and @hourly, @daily, @weekly, @monthly,
    @yearly.
    """
    timezone: str | None = None
    """IANA time zone, such as Europe/Berlin."""
    enabled: bool | None = None
    metadata: dict[str, Any] | None = None
    """Metadata of the created instances."""
    context: CreateInstanceContext | None = None
    """Initial context; data must conform to the input_schema."""
    timeout: int | None = None
    """Maximum duration in ms from the first step, without pauses; then it fails."""
    priority: Priority | None = None
    """Case-insensitive."""
    overlap_policy: OverlapPolicy | None = None
    """Action of a fire while an earlier run has not finished."""


class UpdateSequence(Model):
    """Lifts the hold, the only change of a version; deprecate it to exclude it again."""

    hold: Literal[False]


class UpdateSubscription(Model):
    """Absent members stay unchanged; null resets a member to its default. Refused, because they
    cannot be changed: id, tenant_id, created_at, updated_at.
    """

    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 if it has changed."""
    url: str | None = None
    """http or https, without credentials; a public address unless the deployment allows others."""
    events: list[WebhookEvent] | None = None
    secret: str | None = None
    """Key of the webhooks' signatures. Must not be [REDACTED]."""


class UpdateTrigger(Model):
    """Absent members stay unchanged; null resets a member to its default. Refused, because they
    cannot be changed: slug, tenant_id, namespace, trigger_type, created_at, updated_at.
    """

    if_unchanged_since: datetime | None = None
    """The updated_at that was read: 409 if it has changed."""
    sequence_name: str | None = None
    """Name of the sequence, resolved at each fire. Exactly one of sequence_name and publish."""
    publish: TriggerPublish | None = None
    """Publishes an event instead."""
    verify: TriggerVerify | None = None
    """Of webhook triggers, instead of secret: how requests are verified."""
    version: int | None = None
    secret: str | None = None
    """Authenticates callers. Never returned. Must not be [REDACTED]."""
    config: dict[str, Any] | None = None
    """For event triggers: event_name, and optionally correlation_key to filter events."""
    enabled: bool | None = None


class ValidateRelease(Model):
    sample: int | None = None
    """Number of newest finished runs to replay: at least 1 and at most 50. Default: 10."""
    skip: bool | None = None
    """Makes the release ready without a replay. Default: False."""


class ValidationReport(Model):
    """Result of replays of finished runs."""

    replayed: int
    """Number of replayed runs, with inconclusive ones."""
    matches: int
    diverged: int
    """Number of diverged runs; divergences lists the first 20."""
    inconclusive: int
    divergences: list[Divergence]
    inconclusive_runs: list[InconclusiveRun] | None = None
    """The first 20; absent if none."""
    release_state: ReleaseState


class ValidationSummary(Model):
    """Evidence of the last validation."""

    replayed: int
    """Number of replayed runs, with inconclusive ones."""
    matches: int
    diverged: int
    """Number of diverged runs; divergences lists the first 20."""
    inconclusive: int
    divergences: list[Divergence]
    inconclusive_runs: list[InconclusiveRun] | None = None
    """The first 20; absent if none."""
    validated_at: datetime


class Wait(Model):
    """One thing that an instance waits for, with members by kind."""

    kind: WaitKind
    summary: str
    block_id: str | None
    """Null if the instance as a whole waits."""
    path: str | None
    """Path from the outermost block, such as orders[2]/charge."""
    since: datetime | None
    until: datetime | None
    """Latest end of the wait; null: no time limit."""
    attempt: int | None = None
    """The attempt, from 0; for a retry the next one."""
    max_attempts: int | None = None
    """Maximum attempts; null: no policy."""
    last_error: str | None = None
    """Error of the previous attempt."""
    handler: str | None = None
    queue: str | None = None
    task_id: str | None = None
    worker_id: str | None = None
    heartbeat_at: datetime | None = None
    lost_claims: int | None = None
    """Claims of this attempt lost to silent workers."""
    workers: WaitWorkers | None = None
    reason: WaitReason | None = None
    """transferring: being handed over; moved: owned elsewhere; imported: not yet owned here."""
    name: str | None = None
    """Name of the event."""
    approval_id: str | None = None
    prompt: str | None = None
    """Question to the person."""
    choices: list[str] | None = None
    approvers: list[str] | None = None
    child_id: str | None = None
    child_state: InstanceState | None = None
    key: str | None = None
    max_concurrency: int | None = None
    holders: list[WaitHolder] | None = None
    ahead: int | None = None
    """Instances ahead in the queue, at most 10000."""
    limit: WaitLimit | None = None


class WaitForInput(Model):
    """Requires a person's answer before the first attempt."""

    prompt: str | None = None
    """The question; may have templates. Default: ""."""
    choices: list[GateChoice] | None = None
    """Possible answers. Default: Yes (yes) and No (no). The values of the choices are unique."""
    store_as: str | None = None
    """Key of context.data for the value; default: block id. Must not be __proto__, constructor
    or prototype.
    """
    timeout: int | None = None
    """Time limit in ms; default: none."""
    escalation_handler: str | None = None
    """After the time limit, the step completes with this handler's name in its output, instead
    of failing.
    """
    allow_comment: bool | None = None
    """Whether the answer may have a comment. Default: False."""
    approvers: list[str] | None = None
    """Groups whose members may answer; default: every key that may answer."""


class WaitHolder(Model):
    instance_id: str
    state: InstanceState


class WaitLimit(Model):
    max_count: int
    window_seconds: int
    pattern: str | None = None
    """The pattern whose limit applies to the key."""


class WaitWorkers(Model):
    polled_lately: int
    """Workers for this task that polled within 60 s."""
    last_polled_at: datetime | None
    endpoints: list[str] | None = None
    """Worker endpoints that get such tasks."""


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
    """The failure; null after a completion."""
    data: Any


class WebhookSubscription(Model):
    id: str
    tenant_id: str
    url: str
    events: list[WebhookEvent]
    created_at: datetime
    updated_at: datetime


class WebhookTaken(Model):
    trigger: str
    instance_id: str | None = None
    """The instance that was started; with skipped, one that holds the key."""
    skipped: Literal[True] | None = None
    """Nothing was created, since all slots are taken (when_full: skip)."""
    collected: Literal[True] | None = None
    """The sequence collects creations: the instance with this id starts later."""
    starts_at: datetime | None = None
    """With collected: when the instance starts, unless a later creation changes it."""
    event_id: str | None = None
    duplicate: bool | None = None
    """True: the delivery had its effect before, and has no second."""
    matched_wait: str | None = None
    """Id of the first matched wait."""
    satisfied: bool | None = None
    """Whether a step waited for it."""
    matched: int | None = None
    """Number of waiting steps."""
    cancelled: int | None = None
    """Number of instances that it cancels, started or not; absent: none."""
    triggers: int | None = None
    """Number of triggers fired; absent: none, or a duplicate."""


class WhoAmI(Model):
    is_root: bool
    """Whether the key is the root key, or the server requires no keys."""
    is_insecure: bool
    """Whether the server requires no keys (--insecure-auth)."""
    tenant_id: str | None
    """Tenant of the key; null: any, named by x-tenant-id."""
    requires_tenant: bool
    """Whether requests must name a tenant (ENGINE_REQUIRE_TENANT_HEADER)."""
    capabilities: list[Capability]
    """Capabilities of the key; the root key has all."""
    key: WhoAmIKey | None


class WhoAmIKey(Model):
    id: str
    """Id of a key: ak_ and 32 hexadecimal digits."""
    name: str
    groups: list[str]
    """Groups for which the key answers approvals."""
    expires_at: datetime | None


class WorkerAttempt(Model):
    id: str
    task_id: str
    claim_epoch: int
    worker_id: str | None = None
    event: WorkerAttemptEvent
    reason: str | None = None
    created_at: datetime


class WorkerEndpoint(Model):
    """An endpoint without its secret."""

    name: str
    tenant_id: str
    handlers: list[str]
    url: str
    concurrency: int
    timeout_ms: int
    enabled: bool
    receives_secrets: bool
    created_at: datetime
    updated_at: datetime
    status: EndpointStatus | None = None


class WorkerInfo(Model):
    worker_id: str
    handlers: list[str]
    queues: list[str]
    version: str | None
    last_seen_at: datetime
    alive: bool
    in_flight: int


class WorkerTask(Model):
    """A step for an external worker."""

    id: str
    instance_id: str
    block_id: str
    handler_name: str
    queue_name: str | None = None
    params: Any
    context: CronScheduleContext
    attempt: int
    idempotency_key: str
    """The same for all attempts of one execution of the step; differs by item, iteration and
    restart.
    """
    timeout_ms: int | None
    state: TaskState
    worker_id: str | None
    claim_epoch: int
    lost_claims: int
    """Claims lost to silent workers; too many fail the attempt permanently."""
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
