"""The asynchronous form of every operation, by the name of its row in the table of operations.

Written by `npm run generate` from docs/openapi.json.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from . import models
from ._model import Null
from ._resource import Caller, JsonObject, Keyed, Resource, path
from .pages import AsyncPages


class AsyncHealthOperations(Resource):
    """The operations `health.*`."""

    async def live(self) -> models.Health:
        """Answer 200 while the process runs.

        Liveness probe. Open to everyone. Served at the root as well: /health/live.
        """
        return await self._call(
            "GET",
            "/health/live",
            models.Health,
            repeatable=True,
        )

    async def ready(self) -> models.Health:
        """Answer 200 while this engine owns the database and can reach it.

        Readiness probe. Open to everyone. Served at the root as well: /health/ready.
        """
        return await self._call(
            "GET",
            "/health/ready",
            models.Health,
            repeatable=True,
        )


class AsyncDocsOperations(Resource):
    """The operations `docs.*`."""

    async def openapi(self) -> models.OpenApiDocument:
        """Get this document.

        Open, unless the deployment protects it by key and tenant. Served at the root as well:
        /api-docs/openapi.json.
        """
        return await self._call(
            "GET",
            "/api-docs/openapi.json",
            models.OpenApiDocument,
            repeatable=True,
        )

    async def ui(self) -> str:
        """Show this document as a page that can send requests.

        Open to everyone. Served at the root as well: /swagger-ui.
        """
        return await self._call(
            "GET",
            "/swagger-ui",
            str,
            repeatable=True,
        )

    async def asset(self, file: str) -> str:
        """Get the scripts and styles of that page.

        Open to everyone. Served at the root as well: /swagger-ui/{file}.
        """
        return await self._call(
            "GET",
            path("/swagger-ui/{file}", file=file),
            str,
            repeatable=True,
        )


class AsyncSequencesOperations(Resource):
    """The operations `sequences.*`."""

    async def create(
        self,
        *,
        name: str,
        version: int,
        blocks: Sequence[models.Block | JsonObject],
        id: str | None = None,
        tenant_id: str | None = None,
        namespace: str | None = None,
        deprecated: bool | None = None,
        hold: bool | None = None,
        status: models.SequenceStatus | None = None,
        input_schema: JsonObject | None = None,
        created_at: datetime | str | None = None,
        on_failure: Sequence[models.FailureHook | JsonObject] | None = None,
        on_cancel: Sequence[models.CancelHook | JsonObject] | None = None,
        concurrency: models.CreateSequenceConcurrency | JsonObject | None = None,
        throttle: models.CreateSequenceThrottle | JsonObject | None = None,
        cancel_on: Sequence[models.CancelOn | JsonObject] | None = None,
        debounce: models.CreateSequenceDebounce | JsonObject | None = None,
        batch: models.CreateSequenceBatch | JsonObject | None = None,
        searchable: Sequence[str] | None = None,
        interceptors: Literal[False] | None = None,
        sla: Literal[False] | None = None,
        strict: bool | None = None,
    ) -> models.SequenceCreated:
        """Store an immutable sequence definition.

        Warnings report parts without effect or that never work as written: unknown members,
        and misspelt functions, filters, blocks or handlers. With strict they are answered
        400. For the root key and for keys with the capability operator or publisher.

        Args:
            version: Unique with tenant, namespace and name.
            blocks: At most 5000 blocks in total, 64 levels deep.
            id: Default: generated.
            tenant_id: Required. May be blank with the header x-tenant-id; else both must be
                equal. Must not be . or .., or begin or end with spaces or tabs.
            deprecated: Default: False.
            hold: Lookups by name without version exclude it until lifted or promoted.
                Default: False.
            status: Default: "production".
            input_schema: Schema of context.data; other data is answered 422. JSON Schema
                2020-12 without pattern, patternProperties and recursive references. At most
                65536 bytes, and with references followed 5000 values, 1000 schemas, keywords
                and listed names, and 100 schemas within one another.
            on_failure: Steps that run in the server after an instance has failed, in order. A
                failed step does not stop the next.
            on_cancel: Steps that run in the server after an instance was cancelled, in order.
                A failed step does not stop the next.
            concurrency: Limits how many instances of the sequence, in all versions, run at
                once.
            throttle: Puts off starts of instances of the sequence, in all versions.
            cancel_on: Events, sent after the creation of an instance, that cancel it.
            debounce: Of creations in quick succession, only the last one starts an instance.
            batch: One instance starts with the data of several creations: context.data.items
                is their list.
            searchable: Paths below context.data, such as customer.email, or with metadata as
                their first name below the metadata. Instances are found by the texts and
                numbers there.
            interceptors: Not supported.
            sla: Not supported.
            strict: Also refuses definitions with warnings. Default: False.
        """
        return await self._call(
            "POST",
            "/sequences",
            models.SequenceCreated,
            query={
                "strict": strict,
            },
            body={
                "id": id,
                "tenant_id": tenant_id or self._tenant,
                "namespace": namespace or self._namespace,
                "name": name,
                "version": version,
                "blocks": blocks,
                "deprecated": deprecated,
                "hold": hold,
                "status": status,
                "input_schema": input_schema,
                "created_at": created_at,
                "on_failure": on_failure,
                "on_cancel": on_cancel,
                "concurrency": concurrency,
                "throttle": throttle,
                "cancel_on": cancel_on,
                "debounce": debounce,
                "batch": batch,
                "searchable": searchable,
                "interceptors": interceptors,
                "sla": sla,
            },
        )

    async def validate(
        self,
        *,
        name: str,
        version: int,
        blocks: Sequence[models.Block | JsonObject],
        id: str | None = None,
        tenant_id: str | None = None,
        namespace: str | None = None,
        deprecated: bool | None = None,
        hold: bool | None = None,
        status: models.SequenceStatus | None = None,
        input_schema: JsonObject | None = None,
        created_at: datetime | str | None = None,
        on_failure: Sequence[models.FailureHook | JsonObject] | None = None,
        on_cancel: Sequence[models.CancelHook | JsonObject] | None = None,
        concurrency: models.CreateSequenceConcurrency | JsonObject | None = None,
        throttle: models.CreateSequenceThrottle | JsonObject | None = None,
        cancel_on: Sequence[models.CancelOn | JsonObject] | None = None,
        debounce: models.CreateSequenceDebounce | JsonObject | None = None,
        batch: models.CreateSequenceBatch | JsonObject | None = None,
        searchable: Sequence[str] | None = None,
        interceptors: Literal[False] | None = None,
        sla: Literal[False] | None = None,
        strict: bool | None = None,
    ) -> models.SequenceValidated:
        """Return the answer to storing the definition, without storing it.

        Does not check whether the id or the version already exists. For the root key and for
        keys with the capability operator or publisher.

        Args:
            version: Unique with tenant, namespace and name.
            blocks: At most 5000 blocks in total, 64 levels deep.
            id: Default: generated.
            tenant_id: Required. May be blank with the header x-tenant-id; else both must be
                equal. Must not be . or .., or begin or end with spaces or tabs.
            deprecated: Default: False.
            hold: Lookups by name without version exclude it until lifted or promoted.
                Default: False.
            status: Default: "production".
            input_schema: Schema of context.data; other data is answered 422. JSON Schema
                2020-12 without pattern, patternProperties and recursive references. At most
                65536 bytes, and with references followed 5000 values, 1000 schemas, keywords
                and listed names, and 100 schemas within one another.
            on_failure: Steps that run in the server after an instance has failed, in order. A
                failed step does not stop the next.
            on_cancel: Steps that run in the server after an instance was cancelled, in order.
                A failed step does not stop the next.
            concurrency: Limits how many instances of the sequence, in all versions, run at
                once.
            throttle: Puts off starts of instances of the sequence, in all versions.
            cancel_on: Events, sent after the creation of an instance, that cancel it.
            debounce: Of creations in quick succession, only the last one starts an instance.
            batch: One instance starts with the data of several creations: context.data.items
                is their list.
            searchable: Paths below context.data, such as customer.email, or with metadata as
                their first name below the metadata. Instances are found by the texts and
                numbers there.
            interceptors: Not supported.
            sla: Not supported.
            strict: Also refuses definitions with warnings. Default: False.
        """
        return await self._call(
            "POST",
            "/sequences/validate",
            models.SequenceValidated,
            query={
                "strict": strict,
            },
            body={
                "id": id,
                "tenant_id": tenant_id or self._tenant,
                "namespace": namespace or self._namespace,
                "name": name,
                "version": version,
                "blocks": blocks,
                "deprecated": deprecated,
                "hold": hold,
                "status": status,
                "input_schema": input_schema,
                "created_at": created_at,
                "on_failure": on_failure,
                "on_cancel": on_cancel,
                "concurrency": concurrency,
                "throttle": throttle,
                "cancel_on": cancel_on,
                "debounce": debounce,
                "batch": batch,
                "searchable": searchable,
                "interceptors": interceptors,
                "sla": sla,
            },
            repeatable=True,
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        name_contains: str | None = None,
        newest_only: bool | None = None,
        include_definition: bool | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.SequenceListed]:
        """List definitions by tenant, namespace, name and descending version.

        For the root key and for keys with the capability operator or publisher or auditor or
        starter. Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            name_contains: Case-insensitive.
            newest_only: Only the newest version of each name, with the number of versions.
                Default: False.
            include_definition: False: omits the definition: blocks, input_schema, hooks,
                limits and the like. Default: True.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 200.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/sequences",
            models.SequenceListed,
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "name": name,
                "name_contains": name_contains,
                "newest_only": newest_only,
                "include_definition": include_definition,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def by_name(
        self,
        *,
        name: str,
        tenant_id: str | None = None,
        namespace: str | None = None,
        version: int | None = None,
    ) -> models.SequenceDefinition:
        """Get a definition by name; default: the newest version not deprecated or on hold.

        For the root key and for keys with the capability operator or publisher or auditor or
        starter.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            version: Default: the newest that is neither deprecated nor on hold.
        """
        return await self._call(
            "GET",
            "/sequences/by-name",
            models.SequenceDefinition,
            query={
                "tenant_id": tenant_id or self._tenant,
                "namespace": namespace or self._namespace,
                "name": name,
                "version": version,
            },
            repeatable=True,
        )

    async def versions(
        self,
        *,
        name: str,
        tenant_id: str | None = None,
        namespace: str | None = None,
    ) -> builtins.list[models.SequenceDefinition]:
        """List the versions of a name that are not deprecated, newest first.

        For the root key and for keys with the capability operator or publisher or auditor or
        starter. Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            "/sequences/versions",
            builtins.list[models.SequenceDefinition],
            query={
                "tenant_id": tenant_id,
                "namespace": namespace or self._namespace,
                "name": name,
            },
            repeatable=True,
        )

    async def get(self, id: str) -> models.SequenceDefinition:
        """Get a definition.

        For the root key and for keys with the capability operator or publisher or auditor or
        starter.
        """
        return await self._call(
            "GET",
            path("/sequences/{id}", id=id),
            models.SequenceDefinition,
            repeatable=True,
        )

    async def update(self, id: str, *, hold: Literal[False]) -> None:
        """Lift the hold of a version, so that lookups by name include it.

        Answered once every creation by name can use it. Repetitions are no error. For the
        root key and for keys with the capability operator or publisher.
        """
        return await self._call(
            "PATCH",
            path("/sequences/{id}", id=id),
            None,
            body={
                "hold": hold,
            },
            repeatable=True,
        )

    async def deprecate(self, id: str) -> None:
        """Deprecate a version: it is no longer the newest for lookups by name.

        For the root key and for keys with the capability operator or publisher.
        """
        return await self._call(
            "POST",
            path("/sequences/{id}/deprecate", id=id),
            None,
            repeatable=True,
        )

    async def delete(
        self,
        id: str,
        *,
        cascade: bool | None = None,
        dry_run: bool | None = None,
    ) -> models.SequenceDeletionPreview | None:
        """Delete a definition that has no live or failed instances, with its finished ones.

        For the root key and for keys with the capability operator or publisher. Unknown
        parameters are refused.

        Args:
            cascade: Deletes failed instances too; otherwise they prevent the deletion.
                Default: False.
            dry_run: Answers 200 with the number of instances to delete, or the error; deletes
                nothing. Default: False.
        """
        return await self._call(
            "DELETE",
            path("/sequences/{id}", id=id),
            models.SequenceDeletionPreview | None,
            query={
                "cascade": cascade,
                "dry_run": dry_run,
            },
            repeatable=True,
        )

    async def migrate_instance(
        self,
        *,
        instance_id: str,
        target_sequence_id: str,
    ) -> models.InstanceMigrated:
        """Move an idle instance to another version of its sequence.

        For the root key and for keys with the capability operator or publisher.
        """
        return await self._call(
            "POST",
            "/sequences/migrate-instance",
            models.InstanceMigrated,
            body={
                "instance_id": instance_id,
                "target_sequence_id": target_sequence_id,
            },
        )

    async def compare(
        self,
        *,
        baseline_sequence_id: str,
        candidate_sequence_id: str,
        tenant_id: str | None = None,
    ) -> models.SemanticDiff:
        """Compare two stored definitions.

        For the root key and for keys with the capability operator or publisher.
        """
        return await self._call(
            "POST",
            "/sequences/releases/diff",
            models.SemanticDiff,
            body={
                "tenant_id": tenant_id,
                "baseline_sequence_id": baseline_sequence_id,
                "candidate_sequence_id": candidate_sequence_id,
            },
            repeatable=True,
        )

    async def migrate_instances(
        self,
        id: str,
        *,
        version: int | None = None,
        sequence_id: str | None = None,
        to_sequence_id: str | None = None,
        target_sequence_id: str | None = None,
        filter: models.BatchActionFilter | JsonObject | None = None,
        approved: bool | None = None,
        dry_run: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.InstancesMigrated:
        """Migrate matching instances of a version to another one, where that is safe.

        For the root key and for keys with the capability operator or publisher.

        Args:
            version: Version of the same sequence.
            sequence_id: Id of the target version.
            to_sequence_id: Alias of sequence_id.
            target_sequence_id: Alias of sequence_id.
            approved: Also migrates where the verdict is approval_required. Default: False.
            dry_run: Only returns the verdict: nothing is changed. Default: False.
            limit: Maximum number of instances examined by one request. Default: 200.
            cursor: The previous next_cursor. An empty text counts as absent.
        """
        return await self._call(
            "POST",
            path("/sequences/{id}/migrate-instances", id=id),
            models.InstancesMigrated,
            body={
                "version": version,
                "sequence_id": sequence_id,
                "to_sequence_id": to_sequence_id,
                "target_sequence_id": target_sequence_id,
                "filter": filter,
                "approved": approved,
                "dry_run": dry_run,
                "limit": limit,
                "cursor": cursor,
            },
        )

    async def steps(
        self,
        id: str,
        *,
        since: datetime | str | None = None,
        all_versions: bool | None = None,
    ) -> models.SequenceSteps:
        """Count runs, failures and durations of each block of a version.

        For the root key and for keys with the capability operator or publisher or auditor or
        starter. Unknown parameters are refused.

        Args:
            since: Default: an hour ago. At most seven days ago.
            all_versions: Runs of all versions of the name. Open executions are always those
                of this version. Default: False.
        """
        return await self._call(
            "GET",
            path("/sequences/{id}/steps", id=id),
            models.SequenceSteps,
            query={
                "since": since,
                "all_versions": all_versions,
            },
            repeatable=True,
        )


class AsyncInstancesOperations(Resource):
    """The operations `instances.*`."""

    async def create(
        self,
        *,
        sequence_id: str | None = None,
        sequence: str | None = None,
        version: int | None = None,
        tenant_id: str | None = None,
        namespace: str | None = None,
        priority: models.Priority | None = None,
        timezone: str | None = None,
        metadata: JsonObject | None = None,
        context: models.CreateInstanceContext | JsonObject | None = None,
        next_fire_at: datetime | str | None = None,
        timeout: int | None = None,
        concurrency_key: str | None = None,
        max_concurrency: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool | None = None,
        dry_run_auto_approve: bool | None = None,
        budget: Literal[False] | None = None,
        wait_ms: int | None = None,
    ) -> models.InstanceResult | models.InstanceCreated:
        """Create an instance of a sequence.

        If idempotency_key matches an instance of the tenant, its id is returned with
        deduplicated true. Repeating a request without such a key may create a second
        instance. For the root key and for keys with the capability operator or starter.

        Args:
            sequence_id: Id of a version, from which a release may route to another one.
                Exactly one of sequence_id and sequence is required.
            sequence: Name of a sequence in the namespace, instead of sequence_id.
            version: With sequence: pins this version; no release routes it elsewhere.
                Default: the newest version that is not deprecated, on hold, or held back by a
                release.
            tenant_id: Must equal the header x-tenant-id, if sent. Must not be . or .., or
                begin or end with spaces or tabs.
            priority: Case-insensitive. Default: "normal".
            timezone: IANA time zone, such as Europe/Berlin. Default: "UTC".
            context: At most 256 KiB as JSON; deployments may set another limit.
            next_fire_at: Start time; default: now.
            timeout: Maximum duration in ms from the first step, without pauses; then it
                fails.
            concurrency_key: Instances with this key share max_concurrency.
            max_concurrency: Maximum number of these instances that run at once.
            idempotency_key: A repeated key returns the id of the first instance. An empty
                text counts as absent.
            dry_run: Default: False.
            dry_run_auto_approve: In a dry run, approvals get their first choice. Default:
                False.
            budget: Not supported.
            wait_ms: Maximum wait in ms for the end of the instance. Larger values are lowered
                to 60000. Default: 0.
        """
        return await self._call(
            "POST",
            "/instances",
            models.InstanceResult | models.InstanceCreated,
            query={
                "wait_ms": wait_ms,
            },
            body={
                "sequence_id": sequence_id,
                "sequence": sequence,
                "version": version,
                "tenant_id": tenant_id or self._tenant,
                "namespace": namespace or self._namespace,
                "priority": priority,
                "timezone": timezone,
                "metadata": metadata,
                "context": context,
                "next_fire_at": next_fire_at,
                "timeout": timeout,
                "concurrency_key": concurrency_key,
                "max_concurrency": max_concurrency,
                "idempotency_key": idempotency_key,
                "dry_run": dry_run,
                "dry_run_auto_approve": dry_run_auto_approve,
                "budget": budget,
            },
            keyed=Keyed("idempotency_key"),
        )

    async def create_batch(
        self,
        *,
        instances: Sequence[models.CreateInstance | JsonObject],
    ) -> models.BatchCreated:
        """Create up to 10,000 instances, all or none.

        For the root key and for keys with the capability operator or starter. The header
        x-tenant-id may be left out. Unknown parameters are refused.
        """
        return await self._call(
            "POST",
            "/instances/batch",
            models.BatchCreated,
            body={
                "instances": instances,
            },
            keyed=Keyed("idempotency_key", "instances", ("tenant_id", "namespace")),
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence_id: str | None = None,
        sequence_name: str | None = None,
        sequence: str | None = None,
        sequence_version: int | None = None,
        parent_instance_id: str | None = None,
        ids: Sequence[str] | None = None,
        waiting_for: models.BatchActionFilterWaitingFor | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        updated_after: datetime | str | None = None,
        updated_before: datetime | str | None = None,
        failed_after: datetime | str | None = None,
        failed_before: datetime | str | None = None,
        failure: str | None = None,
        failure_code: str | None = None,
        failure_block: str | None = None,
        failure_handler: str | None = None,
        failure_reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
        state: Sequence[models.InstanceState] | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.TaskInstance]:
        """List instances, newest first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            sequence_name: Includes every version of the sequences with this name.
            sequence: Alias of sequence_name.
            sequence_version: Version of the sequence.
            parent_instance_id: Children of this instance.
            ids: At most 1000 instances.
            waiting_for: Instances with a step that waits for it (see explain).
            created_after: Only objects created after this time.
            created_before: Only objects created before this time.
            updated_after: Only instances changed after this time.
            updated_before: Only instances changed before this time.
            failed_after: Only instances that failed after this time.
            failed_before: Only instances that failed before this time.
            failure: Part of the failure's message or code; case-insensitive.
            failure_code: Code of the failure.
            failure_block: block_id of the failure.
            failure_handler: Handler of the failure.
            failure_reason: Reason of the failure, as in /instances/failures.
            metadata: One parameter metadata.<key>=<value> for each equality on a top-level
                text of the metadata; all must hold, and at most 16 are possible.
            state: Separated by commas; default: all.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/instances",
            models.TaskInstance,
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "sequence_id": sequence_id,
                "sequence_name": sequence_name,
                "sequence": sequence,
                "sequence_version": sequence_version,
                "parent_instance_id": parent_instance_id,
                "ids": ids,
                "waiting_for": waiting_for,
                "created_after": created_after,
                "created_before": created_before,
                "updated_after": updated_after,
                "updated_before": updated_before,
                "failed_after": failed_after,
                "failed_before": failed_before,
                "failure": failure,
                "failure_code": failure_code,
                "failure_block": failure_block,
                "failure_handler": failure_handler,
                "failure_reason": failure_reason,
                "metadata": metadata,
                "state": state,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    def dead_letters(
        self,
        *,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence_id: str | None = None,
        sequence_name: str | None = None,
        sequence: str | None = None,
        sequence_version: int | None = None,
        parent_instance_id: str | None = None,
        ids: Sequence[str] | None = None,
        waiting_for: models.BatchActionFilterWaitingFor | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        updated_after: datetime | str | None = None,
        updated_before: datetime | str | None = None,
        failed_after: datetime | str | None = None,
        failed_before: datetime | str | None = None,
        failure: str | None = None,
        failure_code: str | None = None,
        failure_block: str | None = None,
        failure_handler: str | None = None,
        failure_reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
        state: Sequence[models.InstanceState] | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.TaskInstance]:
        """List failed instances, newest first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            sequence_name: Includes every version of the sequences with this name.
            sequence: Alias of sequence_name.
            sequence_version: Version of the sequence.
            parent_instance_id: Children of this instance.
            ids: At most 1000 instances.
            waiting_for: Instances with a step that waits for it (see explain).
            created_after: Only objects created after this time.
            created_before: Only objects created before this time.
            updated_after: Only instances changed after this time.
            updated_before: Only instances changed before this time.
            failed_after: Only instances that failed after this time.
            failed_before: Only instances that failed before this time.
            failure: Part of the failure's message or code; case-insensitive.
            failure_code: Code of the failure.
            failure_block: block_id of the failure.
            failure_handler: Handler of the failure.
            failure_reason: Reason of the failure, as in /instances/failures.
            metadata: One parameter metadata.<key>=<value> for each equality on a top-level
                text of the metadata; all must hold, and at most 16 are possible.
            state: Separated by commas; default: all.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/instances/dlq",
            models.TaskInstance,
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "sequence_id": sequence_id,
                "sequence_name": sequence_name,
                "sequence": sequence,
                "sequence_version": sequence_version,
                "parent_instance_id": parent_instance_id,
                "ids": ids,
                "waiting_for": waiting_for,
                "created_after": created_after,
                "created_before": created_before,
                "updated_after": updated_after,
                "updated_before": updated_before,
                "failed_after": failed_after,
                "failed_before": failed_before,
                "failure": failure,
                "failure_code": failure_code,
                "failure_block": failure_block,
                "failure_handler": failure_handler,
                "failure_reason": failure_reason,
                "metadata": metadata,
                "state": state,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def counts(
        self,
        *,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence_id: str | None = None,
        sequence_name: str | None = None,
        sequence: str | None = None,
        sequence_version: int | None = None,
        parent_instance_id: str | None = None,
        ids: Sequence[str] | None = None,
        waiting_for: models.BatchActionFilterWaitingFor | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        updated_after: datetime | str | None = None,
        updated_before: datetime | str | None = None,
        failed_after: datetime | str | None = None,
        failed_before: datetime | str | None = None,
        failure: str | None = None,
        failure_code: str | None = None,
        failure_block: str | None = None,
        failure_handler: str | None = None,
        failure_reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> models.InstanceCounts:
        """Count matching instances by state.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            sequence_name: Includes every version of the sequences with this name.
            sequence: Alias of sequence_name.
            sequence_version: Version of the sequence.
            parent_instance_id: Children of this instance.
            ids: At most 1000 instances.
            waiting_for: Instances with a step that waits for it (see explain).
            created_after: Only objects created after this time.
            created_before: Only objects created before this time.
            updated_after: Only instances changed after this time.
            updated_before: Only instances changed before this time.
            failed_after: Only instances that failed after this time.
            failed_before: Only instances that failed before this time.
            failure: Part of the failure's message or code; case-insensitive.
            failure_code: Code of the failure.
            failure_block: block_id of the failure.
            failure_handler: Handler of the failure.
            failure_reason: Reason of the failure, as in /instances/failures.
            metadata: One parameter metadata.<key>=<value> for each equality on a top-level
                text of the metadata; all must hold, and at most 16 are possible.
        """
        return await self._call(
            "GET",
            "/instances/counts",
            models.InstanceCounts,
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "sequence_id": sequence_id,
                "sequence_name": sequence_name,
                "sequence": sequence,
                "sequence_version": sequence_version,
                "parent_instance_id": parent_instance_id,
                "ids": ids,
                "waiting_for": waiting_for,
                "created_after": created_after,
                "created_before": created_before,
                "updated_after": updated_after,
                "updated_before": updated_before,
                "failed_after": failed_after,
                "failed_before": failed_before,
                "failure": failure,
                "failure_code": failure_code,
                "failure_block": failure_block,
                "failure_handler": failure_handler,
                "failure_reason": failure_reason,
                "metadata": metadata,
            },
            repeatable=True,
        )

    async def bulk_state(
        self,
        *,
        filter: models.BatchActionFilter | JsonObject,
        state: models.InstanceState,
        dry_run: bool | None = None,
        orphans: bool | None = None,
        async_: bool | None = None,
    ) -> models.BulkUpdated | models.BulkJob:
        """Set the state of all matching instances that are neither completed nor cancelled.

        For the root key and for keys with the capability operator.

        Args:
            dry_run: Only counts: nothing is changed. Default: False.
            orphans: Also retries children whose parents continued without them. Default:
                skips them. Default: False.
            async_: Answers 202 with a job immediately, as does the header Prefer:
                respond-async. Default: False.
        """
        return await self._call(
            "PATCH",
            "/instances/bulk/state",
            models.BulkUpdated | models.BulkJob,
            query={
                "async": async_,
            },
            body={
                "filter": filter,
                "state": state,
                "dry_run": dry_run,
                "orphans": orphans,
            },
        )

    async def get(self, id: str) -> models.TaskInstance:
        """Get an instance.

        For the root key and for keys with the capability operator or auditor or starter.
        """
        return await self._call(
            "GET",
            path("/instances/{id}", id=id),
            models.TaskInstance,
            repeatable=True,
        )

    async def patch_state(
        self,
        id: str,
        *,
        state: models.InstanceState,
        next_fire_at: datetime | str | None = None,
    ) -> models.TaskInstance:
        """Change the state of an instance.

        A transition that the state does not allow is answered 400. For the root key and for
        keys with the capability operator.

        Args:
            next_fire_at: For a change to scheduled. Default: now, or for a paused instance
                the time at which it would continue.
        """
        return await self._call(
            "PATCH",
            path("/instances/{id}/state", id=id),
            models.TaskInstance,
            body={
                "state": state,
                "next_fire_at": next_fire_at,
            },
        )

    async def patch_context(
        self,
        id: str,
        *,
        context: models.PatchContextContext | JsonObject,
        if_unchanged_since: datetime | str | None = None,
    ) -> models.ContextPatched:
        """Replace sections of the context.

        For the root key and for keys with the capability operator.

        Args:
            if_unchanged_since: The updated_at that was read: 409 if it has changed.
        """
        return await self._call(
            "PATCH",
            path("/instances/{id}/context", id=id),
            models.ContextPatched,
            body={
                "context": context,
                "if_unchanged_since": if_unchanged_since,
            },
            repeatable=True,
        )

    async def signal(
        self,
        id: str,
        *,
        signal_type: str | models.SendSignalSignalType | JsonObject,
        payload: Any = None,
        wait_ms: int | None = None,
    ) -> models.SignalAnswer | models.SignalAccepted:
        """Send a signal to an instance.

        pause pauses, resume resumes a paused instance, cancel cancels, update_context merges
        the payload into context.data, custom:<name> is free for any use, and
        custom:human_input:<block> answers the approval of that step, the only signal allowed
        to keys with approver only. For the root key and for keys with the capability operator
        or approver or starter.

        Args:
            signal_type: pause, resume, cancel, update_context or custom:<name> with any name.
                The form {"custom": name} is accepted too.
            wait_ms: Maximum wait in ms for a step to take the signal. Larger values are
                lowered to 60000. Default: 0.
        """
        return await self._call(
            "POST",
            path("/instances/{id}/signals", id=id),
            models.SignalAnswer | models.SignalAccepted,
            query={
                "wait_ms": wait_ms,
            },
            body={
                "signal_type": signal_type,
                "payload": payload,
            },
        )

    def signals(
        self,
        id: str,
        *,
        signal_type: str | None = None,
        status: models.StoredSignalStatus | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.StoredSignal]:
        """List the signals of an instance, oldest first, with their status.

        For the root key and for keys with the capability operator or approver or auditor or
        starter. Unknown parameters are refused.

        Args:
            status: kept: no step has waited for it yet; taken, refused: consumed by taken_by;
                applied: took effect immediately.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            path("/instances/{id}/signals", id=id),
            models.StoredSignal,
            query={
                "signal_type": signal_type,
                "status": status,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def tree(
        self,
        id: str,
        *,
        block_id: str | None = None,
        depth: int | None = None,
    ) -> builtins.list[models.TreeNode]:
        """Get the nodes of the execution tree.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            block_id: Only this block and the blocks inside.
            depth: Number of levels below the first.
        """
        return await self._call(
            "GET",
            path("/instances/{id}/tree", id=id),
            builtins.list[models.TreeNode],
            query={
                "block_id": block_id,
                "depth": depth,
            },
            repeatable=True,
        )

    def outputs(
        self,
        id: str,
        *,
        block_id: str | None = None,
        iteration: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        max_bytes: int | None = None,
    ) -> AsyncPages[models.BlockOutput]:
        """List block outputs, oldest first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            iteration: Counters of the enclosing loops, such as 2.0.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
            max_bytes: Maximum size of the response, which has at least one row.
        """
        return self._pages(
            "GET",
            path("/instances/{id}/outputs", id=id),
            models.BlockOutput,
            query={
                "block_id": block_id,
                "iteration": iteration,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
                "max_bytes": max_bytes,
            },
            repeatable=True,
        )

    def children(
        self,
        id: str,
        *,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        state: Sequence[models.InstanceState] | None = None,
    ) -> AsyncPages[models.TaskInstance]:
        """List the child instances, oldest first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
            state: Separated by commas; default: all.
        """
        return self._pages(
            "GET",
            path("/instances/{id}/children", id=id),
            models.TaskInstance,
            query={
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
                "state": state,
            },
            repeatable=True,
        )

    def audit(
        self,
        id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.AuditEntry]:
        """List the audit entries of an instance, newest first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 200.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            path("/instances/{id}/audit", id=id),
            models.AuditEntry,
            query={
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def timeline(
        self,
        id: str,
        *,
        block_id: str | None = None,
        iteration: str | None = None,
        cursor: str | None = None,
        max_bytes: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
        include_outputs: bool | None = None,
    ) -> models.Timeline:
        """Get state transitions and outputs in chronological order.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            iteration: Counters of the enclosing loops, such as 2.0.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
            max_bytes: Maximum size of the response, which has at least one row.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 200.
            include_outputs: False: omits the values of outputs. Default: True.
        """
        return await self._call(
            "GET",
            path("/instances/{id}/timeline", id=id),
            models.Timeline,
            query={
                "block_id": block_id,
                "iteration": iteration,
                "cursor": cursor,
                "max_bytes": max_bytes,
                "offset": offset,
                "limit": limit,
                "include_outputs": include_outputs,
            },
            repeatable=True,
        )

    def attempts(
        self,
        id: str,
        *,
        block_id: str | None = None,
        iteration: str | None = None,
        iteration_from: int | None = None,
        iteration_to: int | None = None,
        state: Sequence[models.StepAttemptState] | None = None,
        order: Literal["oldest", "newest"] | None = None,
        include_payloads: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.StepAttempt]:
        """List the step attempts of an instance in the order of their start.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            iteration: Counters of the enclosing loops, such as 2.0.
            iteration_from: With block_id: iteration of its outermost loop, from 0; a range
                has at most 1000.
            iteration_to: Last iteration of the range; default: iteration_from.
            state: Separated by commas; default: all.
            order: Sort order. Default: "oldest".
            include_payloads: False: omits params, overlay and output. Default: True.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            path("/instances/{id}/attempts", id=id),
            models.StepAttempt,
            query={
                "block_id": block_id,
                "iteration": iteration,
                "iteration_from": iteration_from,
                "iteration_to": iteration_to,
                "state": state,
                "order": order,
                "include_payloads": include_payloads,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def explain(self, id: str) -> models.InstanceExplanation:
        """Explain what an instance does and waits for, with suggested actions.

        For the root key and for keys with the capability operator or auditor or starter.
        """
        return await self._call(
            "GET",
            path("/instances/{id}/explain", id=id),
            models.InstanceExplanation,
            repeatable=True,
        )

    async def bulk_reschedule(
        self,
        *,
        filter: models.BatchActionFilter | JsonObject,
        offset_secs: int,
        dry_run: bool | None = None,
        async_: bool | None = None,
    ) -> models.BulkUpdated | models.BulkJob:
        """Shift the start of every matching scheduled instance.

        For the root key and for keys with the capability operator.

        Args:
            dry_run: Only counts: nothing is changed. Default: False.
            async_: Answers 202 with a job immediately, as does the header Prefer:
                respond-async. Default: False.
        """
        return await self._call(
            "PATCH",
            "/instances/bulk/reschedule",
            models.BulkUpdated | models.BulkJob,
            query={
                "async": async_,
            },
            body={
                "filter": filter,
                "offset_secs": offset_secs,
                "dry_run": dry_run,
            },
        )

    async def batch_action(
        self,
        *,
        filter: models.BatchActionFilter | JsonObject,
        action: models.BatchActionAction,
        signal_type: str | None = None,
        payload: Any = None,
        dry_run: bool | None = None,
        orphans: bool | None = None,
        per_minute: int | None = None,
        limit: int | None = None,
        async_: bool | None = None,
    ) -> models.BatchActionResult | models.BulkJob:
        """Retry, pause, resume, cancel or signal matching instances.

        For the root key and for keys with the capability operator.

        Args:
            dry_run: Only counts: nothing is changed. Default: False.
            orphans: Also retries children whose parents continued without them. Default:
                skips them. Default: False.
            per_minute: Maximum number of instances changed per minute, spread evenly; runs as
                a job.
            limit: Default: 1000.
            async_: Answers 202 with a job immediately, as does the header Prefer:
                respond-async. Default: False.
        """
        return await self._call(
            "POST",
            "/instances/batch-action",
            models.BatchActionResult | models.BulkJob,
            query={
                "async": async_,
            },
            body={
                "filter": filter,
                "action": action,
                "signal_type": signal_type,
                "payload": payload,
                "dry_run": dry_run,
                "orphans": orphans,
                "per_minute": per_minute,
                "limit": limit,
            },
        )

    def logs(
        self,
        id: str,
        *,
        block_id: str | None = None,
        level: Sequence[str] | None = None,
        text: str | None = None,
        order: Literal["oldest", "newest"] | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        max_bytes: int | None = None,
    ) -> AsyncPages[models.StepLogLine]:
        """List the log lines of steps, oldest first unless order says otherwise.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            level: Any of these levels, such as warn,error.
            text: Part of the message; case-insensitive.
            order: Sort order. Default: "oldest".
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
            max_bytes: Maximum size of the response, which has at least one row.
        """
        return self._pages(
            "GET",
            path("/instances/{id}/logs", id=id),
            models.StepLogLine,
            query={
                "block_id": block_id,
                "level": level,
                "text": text,
                "order": order,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
                "max_bytes": max_bytes,
            },
            repeatable=True,
        )

    async def inject_blocks(
        self,
        id: str,
        *,
        blocks: Sequence[models.Block | JsonObject],
        position: int | None = None,
    ) -> models.BlocksInjected:
        """Add blocks to this instance, after those of its sequence.

        For the root key and for keys with the capability operator.

        Args:
            blocks: At most 1 MiB as JSON over all injections of an instance.
        """
        return await self._call(
            "POST",
            path("/instances/{id}/inject-blocks", id=id),
            models.BlocksInjected,
            body={
                "blocks": blocks,
                "position": position,
            },
        )

    async def retry(
        self,
        id: str,
        *,
        context: JsonObject | None = None,
        context_mode: models.ForkInstanceContextMode | None = None,
    ) -> models.InstanceRetried:
        """Retry a failed instance where it failed, optionally with changed data.

        Answers 400 unless the instance has failed. It is due immediately. For the root key
        and for keys with the capability operator.

        Args:
            context: Changes context.data before anything runs.
            context_mode: merge: top-level members; replace: all data. Default: "merge".
        """
        return await self._call(
            "POST",
            path("/instances/{id}/retry", id=id),
            models.InstanceRetried,
            body={
                "context": context,
                "context_mode": context_mode,
            },
        )

    async def resume_from(
        self,
        id: str,
        block_id: str,
        *,
        context: JsonObject | None = None,
        context_mode: models.ForkInstanceContextMode | None = None,
        signals: Sequence[models.SendSignal | JsonObject] | None = None,
    ) -> models.ResumedFrom:
        """Run an instance again from one of its top-level blocks.

        For the root key and for keys with the capability operator.

        Args:
            context: Changes context.data before anything runs.
            context_mode: merge: top-level members; replace: all data. Default: "merge".
        """
        return await self._call(
            "POST",
            path("/instances/{id}/resume-from/{block_id}", id=id, block_id=block_id),
            models.ResumedFrom,
            body={
                "context": context,
                "context_mode": context_mode,
                "signals": signals,
            },
        )

    async def fork(
        self,
        id: str,
        *,
        from_block_id: str,
        context: JsonObject | None = None,
        context_mode: models.ForkInstanceContextMode | None = None,
        dry_run: bool | None = None,
        signals: Sequence[models.SendSignal | JsonObject] | None = None,
    ) -> models.InstanceForked:
        """Create a copy of an instance that continues from one of its top-level blocks.

        For the root key and for keys with the capability operator.

        Args:
            context: Changes context.data before anything runs.
            context_mode: merge: top-level members; replace: all data. Default: "merge".
            dry_run: Default: True.
        """
        return await self._call(
            "POST",
            path("/instances/{id}/fork", id=id),
            models.InstanceForked,
            body={
                "from_block_id": from_block_id,
                "context": context,
                "context_mode": context_mode,
                "dry_run": dry_run,
                "signals": signals,
            },
        )

    async def save_checkpoint(self, id: str, *, checkpoint_data: Any) -> models.CheckpointSaved:
        """Save a value as a checkpoint of the instance.

        For the root key and for keys with the capability operator.

        Args:
            checkpoint_data: Value of the checkpoint, at most 256 KiB as JSON.
        """
        return await self._call(
            "POST",
            path("/instances/{id}/checkpoints", id=id),
            models.CheckpointSaved,
            body={
                "checkpoint_data": checkpoint_data,
            },
        )

    async def checkpoints(self, id: str) -> builtins.list[models.Checkpoint]:
        """List the newest 100 checkpoints, newest first.

        For the root key and for keys with the capability operator or auditor or starter.
        """
        return await self._call(
            "GET",
            path("/instances/{id}/checkpoints", id=id),
            builtins.list[models.Checkpoint],
            repeatable=True,
        )

    async def latest_checkpoint(self, id: str) -> models.Checkpoint:
        """Get the newest checkpoint.

        For the root key and for keys with the capability operator or auditor or starter.
        """
        return await self._call(
            "GET",
            path("/instances/{id}/checkpoints/latest", id=id),
            models.Checkpoint,
            repeatable=True,
        )

    async def prune_checkpoints(
        self,
        id: str,
        *,
        keep: int,
        dry_run: bool | None = None,
    ) -> models.CheckpointsPruned:
        """Delete all but the newest checkpoints.

        For the root key and for keys with the capability operator.

        Args:
            dry_run: Only counts: nothing is changed. Default: False.
        """
        return await self._call(
            "POST",
            path("/instances/{id}/checkpoints/prune", id=id),
            models.CheckpointsPruned,
            body={
                "keep": keep,
                "dry_run": dry_run,
            },
        )

    async def dry_run(
        self,
        instance_id: str,
        *,
        name: str,
        version: int,
        blocks: Sequence[models.Block | JsonObject],
        id: str | None = None,
        tenant_id: str | None = None,
        namespace: str | None = None,
        deprecated: bool | None = None,
        hold: bool | None = None,
        status: models.SequenceStatus | None = None,
        input_schema: JsonObject | None = None,
        created_at: datetime | str | None = None,
        on_failure: Sequence[models.FailureHook | JsonObject] | None = None,
        on_cancel: Sequence[models.CancelHook | JsonObject] | None = None,
        concurrency: models.CreateSequenceConcurrency | JsonObject | None = None,
        throttle: models.CreateSequenceThrottle | JsonObject | None = None,
        cancel_on: Sequence[models.CancelOn | JsonObject] | None = None,
        debounce: models.CreateSequenceDebounce | JsonObject | None = None,
        batch: models.CreateSequenceBatch | JsonObject | None = None,
        searchable: Sequence[str] | None = None,
        interceptors: Literal[False] | None = None,
        sla: Literal[False] | None = None,
    ) -> models.DryRun:
        """Run a definition that is not stored on the initial data of an instance, as a dry run.

        For the root key and for keys with the capability operator.

        Args:
            version: Unique with tenant, namespace and name.
            blocks: At most 5000 blocks in total, 64 levels deep.
            id: Default: generated.
            tenant_id: Required. May be blank with the header x-tenant-id; else both must be
                equal. Must not be . or .., or begin or end with spaces or tabs.
            deprecated: Default: False.
            hold: Lookups by name without version exclude it until lifted or promoted.
                Default: False.
            status: Default: "production".
            input_schema: Schema of context.data; other data is answered 422. JSON Schema
                2020-12 without pattern, patternProperties and recursive references. At most
                65536 bytes, and with references followed 5000 values, 1000 schemas, keywords
                and listed names, and 100 schemas within one another.
            on_failure: Steps that run in the server after an instance has failed, in order. A
                failed step does not stop the next.
            on_cancel: Steps that run in the server after an instance was cancelled, in order.
                A failed step does not stop the next.
            concurrency: Limits how many instances of the sequence, in all versions, run at
                once.
            throttle: Puts off starts of instances of the sequence, in all versions.
            cancel_on: Events, sent after the creation of an instance, that cancel it.
            debounce: Of creations in quick succession, only the last one starts an instance.
            batch: One instance starts with the data of several creations: context.data.items
                is their list.
            searchable: Paths below context.data, such as customer.email, or with metadata as
                their first name below the metadata. Instances are found by the texts and
                numbers there.
            interceptors: Not supported.
            sla: Not supported.
        """
        return await self._call(
            "POST",
            path("/instances/{id}/dry-run", id=instance_id),
            models.DryRun,
            body={
                "id": id,
                "tenant_id": tenant_id or self._tenant,
                "namespace": namespace or self._namespace,
                "name": name,
                "version": version,
                "blocks": blocks,
                "deprecated": deprecated,
                "hold": hold,
                "status": status,
                "input_schema": input_schema,
                "created_at": created_at,
                "on_failure": on_failure,
                "on_cancel": on_cancel,
                "concurrency": concurrency,
                "throttle": throttle,
                "cancel_on": cancel_on,
                "debounce": debounce,
                "batch": batch,
                "searchable": searchable,
                "interceptors": interceptors,
                "sla": sla,
            },
            repeatable=True,
        )

    def effects(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.EffectReceipt]:
        """List the effect receipts of an instance, oldest first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 1000.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            path("/instances/{id}/effects", id=id),
            models.EffectReceipt,
            query={
                "tenant_id": tenant_id,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def failures(
        self,
        *,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence_name: str | None = None,
        failed_after: datetime | str | None = None,
        failed_before: datetime | str | None = None,
    ) -> models.FailureGroups:
        """Count failed instances by sequence and reason.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            failed_after: Only instances that failed after this time: the start of the period
                of counts, new and share.
            failed_before: Only instances that failed before this time.
        """
        return await self._call(
            "GET",
            "/instances/failures",
            models.FailureGroups,
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "sequence_name": sequence_name,
                "failed_after": failed_after,
                "failed_before": failed_before,
            },
            repeatable=True,
        )

    async def failure_attributes(
        self,
        *,
        failure_code: str,
        failure_reason: str,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence_name: str | None = None,
        failed_after: datetime | str | None = None,
        failed_before: datetime | str | None = None,
        failure_handler: str | None = None,
    ) -> models.FailureAttributes:
        """Compare the failed instances of one cause with other runs.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            failed_after: Only instances that failed after this time: the start of the period
                of counts, new and share.
            failed_before: Only instances that failed before this time.
        """
        return await self._call(
            "GET",
            "/instances/failures/attributes",
            models.FailureAttributes,
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "sequence_name": sequence_name,
                "failed_after": failed_after,
                "failed_before": failed_before,
                "failure_code": failure_code,
                "failure_reason": failure_reason,
                "failure_handler": failure_handler,
            },
            repeatable=True,
        )

    async def slowest(
        self,
        *,
        sequence_id: str,
        block: str | None = None,
        limit: int | None = None,
    ) -> models.SlowestRuns:
        """List the slowest of the newest instances of a version, as a whole or at a block.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            sequence_id: The version.
            block: Id of a block of the version. Default: the whole instance.
            limit: Maximum number of rows. Default: 20.
        """
        return await self._call(
            "GET",
            "/instances/slowest",
            models.SlowestRuns,
            query={
                "sequence_id": sequence_id,
                "block": block,
                "limit": limit,
            },
            repeatable=True,
        )


class AsyncApprovalsOperations(Resource):
    """The operations `approvals.*`."""

    def list(
        self,
        *,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence_id: str | None = None,
        sequence_name: str | None = None,
        sequence: str | None = None,
        group: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Approval]:
        """List open approvals, oldest first.

        For the root key and for keys with the capability operator or approver or auditor.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            sequence_name: Includes every version of the sequences with this name.
            sequence: Alias of sequence_name.
            group: Only approvals that name this group; takes a tenant. Letters, digits and .
                _ @ : / + -
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/approvals",
            models.Approval,
            member="items",
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "sequence_id": sequence_id,
                "sequence_name": sequence_name,
                "sequence": sequence,
                "group": group,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def answer(
        self,
        id: str,
        *,
        value: str,
        comment: str | None = None,
        answer_id: str | None = None,
    ) -> models.ApprovalAnswered:
        """Answer an approval. The first answer counts.

        Answers 409 if it was answered, has timed out or was withdrawn. With the answer_id of
        the accepted answer, that answer is returned. For the root key and for keys with the
        capability operator or approver.

        Args:
            value: One of the values in choices.
            comment: Comment, allowed only with allow_comment. An empty text counts as absent.
            answer_id: A repetition with the same id returns the first answer. An empty text
                counts as absent.
        """
        return await self._call(
            "POST",
            path("/approvals/{id}", id=id),
            models.ApprovalAnswered,
            body={
                "value": value,
                "comment": comment,
                "answer_id": answer_id,
            },
            keyed=Keyed("answer_id"),
        )

    async def link(
        self,
        id: str,
        *,
        expires_in_seconds: int | None = None,
        value: str | None = None,
        recipient: str | None = None,
    ) -> models.ApprovalLink:
        """Create a link with which one person can answer once, without a key.

        Requires an encryption key, else 503. The link ends with the approval. For the root
        key and for keys with the capability operator.

        Args:
            expires_in_seconds: Default: 604800.
            value: Restricts the link to this value. One of the values in choices.
            recipient: Name of the recipient, recorded as answered_by.
        """
        return await self._call(
            "POST",
            path("/approvals/{id}/link", id=id),
            models.ApprovalLink,
            body={
                "expires_in_seconds": expires_in_seconds,
                "value": value,
                "recipient": recipient,
            },
        )

    async def page(self, token: str) -> str:
        """Show the question and choices of a link, without answering.

        Open to everyone.
        """
        return await self._call(
            "GET",
            path("/approvals/by-link/{token}", token=token),
            str,
            repeatable=True,
        )

    async def answer_by_link(
        self,
        token: str,
        *,
        value: str | None = None,
        comment: str | None = None,
    ) -> str:
        """Answer an approval once, by a link.

        Open to everyone.

        Args:
            value: One of the values in choices.
            comment: Comment, allowed only with allow_comment. An empty text counts as absent.
        """
        return await self._call(
            "POST",
            path("/approvals/by-link/{token}", token=token),
            str,
            body={
                "value": value,
                "comment": comment,
            },
        )


class AsyncLogsOperations(Resource):
    """The operations `logs.*`."""

    def list(
        self,
        *,
        tenant_id: str | None = None,
        block_id: str | None = None,
        level: Sequence[str] | None = None,
        text: str | None = None,
        instance_id: str | None = None,
        namespace: str | None = None,
        sequence_id: str | None = None,
        sequence_name: str | None = None,
        sequence: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.LogLine]:
        """List the log lines of steps of all instances of a tenant, newest first.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            level: Any of these levels, such as warn,error.
            text: Part of the message; case-insensitive.
            sequence_name: Includes every version of the sequences with this name.
            sequence: Alias of sequence_name.
            since: Only lines stored after this time.
            until: Only lines stored before this time.
            limit: Maximum number of rows. Larger values are lowered to 500. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/logs",
            models.LogLine,
            query={
                "tenant_id": tenant_id,
                "block_id": block_id,
                "level": level,
                "text": text,
                "instance_id": instance_id,
                "namespace": namespace,
                "sequence_id": sequence_id,
                "sequence_name": sequence_name,
                "sequence": sequence,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )


class AsyncBulkJobsOperations(Resource):
    """The operations `bulk_jobs.*`."""

    def list(
        self,
        *,
        tenant_id: str | None = None,
        state: models.BulkJobState | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.BulkJob]:
        """List bulk jobs, newest first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            state: Separated by commas; default: all.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/instances/bulk/jobs",
            models.BulkJob,
            query={
                "tenant_id": tenant_id,
                "state": state,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def get(self, id: str) -> models.BulkJob:
        """Get the progress of a bulk job, and the outcome of a retry.

        For the root key and for keys with the capability operator or auditor or starter.
        """
        return await self._call(
            "GET",
            path("/instances/bulk/jobs/{id}", id=id),
            models.BulkJob,
            repeatable=True,
        )

    async def cancel(self, id: str) -> models.BulkJob:
        """Cancel a bulk job. Completed changes remain.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "POST",
            path("/instances/bulk/jobs/{id}/cancel", id=id),
            models.BulkJob,
            repeatable=True,
        )


class AsyncRateLimitsOperations(Resource):
    """The operations `rate_limits.*`."""

    async def put(
        self,
        key: str,
        *,
        max_count: int,
        window_seconds: int,
        if_unchanged_since: datetime | str | None = None,
    ) -> models.RateLimit:
        """Set the rate limit of a key, or with * in it of every key that matches.

        For the root key and for keys with the capability operator.

        Args:
            if_unchanged_since: The updated_at that was read: 409 if it has changed.
        """
        return await self._call(
            "PUT",
            path("/rate-limits/{key}", key=key),
            models.RateLimit,
            body={
                "max_count": max_count,
                "window_seconds": window_seconds,
                "if_unchanged_since": if_unchanged_since,
            },
            repeatable=True,
        )

    async def get(self, key: str) -> models.RateLimit:
        """Get the rate limit that applies to a key.

        For the root key and for keys with the capability operator or auditor.
        """
        return await self._call(
            "GET",
            path("/rate-limits/{key}", key=key),
            models.RateLimit,
            repeatable=True,
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> AsyncPages[models.RateLimit]:
        """List rate limits and patterns by key.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
        """
        return self._pages(
            "GET",
            "/rate-limits",
            models.RateLimit,
            query={
                "tenant_id": tenant_id,
                "offset": offset,
                "limit": limit,
            },
            repeatable=True,
        )

    async def delete(self, key: str) -> None:
        """Delete the rate limit of a key, to which then the best pattern applies, if any.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "DELETE",
            path("/rate-limits/{key}", key=key),
            None,
            repeatable=True,
        )


class AsyncCredentialsOperations(Resource):
    """The operations `credentials.*`."""

    async def create(
        self,
        *,
        value: str,
        tenant_id: str | None = None,
        id: str | None = None,
        name: str | None = None,
        kind: models.CredentialKind | None = None,
        description: str | None = None,
        expires_at: datetime | str | None = None,
        refresh_url: str | None = None,
        refresh_token: str | None = None,
    ) -> models.Credential:
        """Store a sealed secret for the steps of the tenant. It is never returned.

        For the root key and for keys with the capability operator.

        Args:
            value: The secret: a text of at most 262144 bytes. If it is a JSON object,
                templates can use {{secrets.id.member}}. Never returned. Must not be
                [REDACTED].
            tenant_id: Must equal the header x-tenant-id, if sent. Must not be . or .., or
                begin or end with spaces or tabs.
            id: Default: the name. Used in templates as {{secrets.id}}. Letters, digits, dots,
                _ and -. Must not be . or ..
            name: Default: the id.
            kind: Kind, a label for people. Default: "api_key".
            expires_at: Time from which steps cannot use the credential.
            refresh_url: Public address, for clients that renew the secret; with oauth2 only.
            refresh_token: Refresh token, sealed like the value. Must not be [REDACTED].
        """
        return await self._call(
            "POST",
            "/credentials",
            models.Credential,
            body={
                "tenant_id": tenant_id,
                "id": id,
                "name": name,
                "value": value,
                "kind": kind,
                "description": description,
                "expires_at": expires_at,
                "refresh_url": refresh_url,
                "refresh_token": refresh_token,
            },
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        kind: models.CredentialKind | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Credential]:
        """List the credentials of the tenant, oldest first, without their secrets.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/credentials",
            models.Credential,
            query={
                "tenant_id": tenant_id,
                "kind": kind,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def get(self, id: str) -> models.Credential:
        """Get a credential without its secret.

        For the root key and for keys with the capability operator or auditor.
        """
        return await self._call(
            "GET",
            path("/credentials/{id}", id=id),
            models.Credential,
            repeatable=True,
        )

    async def update(
        self,
        id: str,
        *,
        name: str | Null | None = None,
        value: str | None = None,
        kind: models.CredentialKind | Null | None = None,
        description: str | Null | None = None,
        expires_at: datetime | str | Null | None = None,
        refresh_url: str | Null | None = None,
        refresh_token: str | Null | None = None,
        enabled: bool | Null | None = None,
    ) -> models.Credential:
        """Change a credential. The next call of a step uses the new secret.

        For the root key and for keys with the capability operator.

        Args:
            value: The secret: a text of at most 262144 bytes. If it is a JSON object,
                templates can use {{secrets.id.member}}. Never returned. Must not be
                [REDACTED].
            expires_at: Time from which steps cannot use the credential.
            refresh_url: Public address, for clients that renew the secret; with oauth2 only.
            refresh_token: Refresh token, sealed like the value. Must not be [REDACTED].
            enabled: False: steps cannot use the credential.
        """
        return await self._call(
            "PATCH",
            path("/credentials/{id}", id=id),
            models.Credential,
            body={
                "name": name,
                "value": value,
                "kind": kind,
                "description": description,
                "expires_at": expires_at,
                "refresh_url": refresh_url,
                "refresh_token": refresh_token,
                "enabled": enabled,
            },
            repeatable=True,
        )

    async def delete(self, id: str) -> None:
        """Delete a credential. Steps that use it fail from then on.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "DELETE",
            path("/credentials/{id}", id=id),
            None,
            repeatable=True,
        )


class AsyncWorkersOperations(Resource):
    """The operations `workers.*`."""

    async def poll(
        self,
        *,
        handler_name: str,
        worker_id: str,
        limit: int | None = None,
        wait_ms: int | None = None,
        version: str | None = None,
    ) -> builtins.list[models.WorkerTask]:
        """Claim tasks of a handler.

        Each task is claimed by one worker only, by priority of its instance, then age. The
        response is empty if there is none. For the root key and for keys with the capability
        operator or worker.

        Args:
            worker_id: Must not begin with endpoint:.
            limit: Maximum number of tasks; 0 claims none. Larger values are lowered to 1000.
                Default: 1.
            wait_ms: Maximum wait in ms if there is no task. Larger values are lowered to
                60000. Default: 0.
        """
        return await self._call(
            "POST",
            "/workers/tasks/poll",
            builtins.list[models.WorkerTask],
            body={
                "handler_name": handler_name,
                "worker_id": worker_id,
                "limit": limit,
                "wait_ms": wait_ms,
                "version": version,
            },
            repeatable=True,
        )

    async def poll_queue(
        self,
        *,
        handler_name: str,
        worker_id: str,
        queue_name: str,
        limit: int | None = None,
        wait_ms: int | None = None,
        version: str | None = None,
    ) -> builtins.list[models.WorkerTask]:
        """Claim tasks of a handler from a named queue.

        For the root key and for keys with the capability operator or worker.

        Args:
            worker_id: Must not begin with endpoint:.
            limit: Maximum number of tasks; 0 claims none. Larger values are lowered to 1000.
                Default: 1.
            wait_ms: Maximum wait in ms if there is no task. Larger values are lowered to
                60000. Default: 0.
        """
        return await self._call(
            "POST",
            "/workers/tasks/poll/queue",
            builtins.list[models.WorkerTask],
            body={
                "handler_name": handler_name,
                "worker_id": worker_id,
                "limit": limit,
                "wait_ms": wait_ms,
                "version": version,
                "queue_name": queue_name,
            },
            repeatable=True,
        )

    async def exchange(
        self,
        *,
        worker_id: str,
        version: str | None = None,
        results: Sequence[models.TaskResult | JsonObject] | None = None,
        poll: models.ExchangeTasksPoll | JsonObject | None = None,
        end_polls: bool | None = None,
    ) -> models.TasksExchanged:
        """Report the results of many tasks, and claim new ones.

        Each result is checked separately and durable before the response, whatever happens to
        the others and to the poll. With results the response does not wait for tasks. For the
        root key and for keys with the capability operator or worker.

        Args:
            worker_id: Must not begin with endpoint:.
            results: Results, each checked separately, in this order.
            poll: At most 100 pairs of a handler and a queue.
            end_polls: For a worker that stops: answers its waiting polls at once. Default:
                False.
        """
        return await self._call(
            "POST",
            "/workers/tasks/exchange",
            models.TasksExchanged,
            body={
                "worker_id": worker_id,
                "version": version,
                "results": results,
                "poll": poll,
                "end_polls": end_polls,
            },
            repeatable=True,
        )

    def tasks(
        self,
        *,
        tenant_id: str | None = None,
        state: Sequence[models.TaskState] | None = None,
        handler_name: str | None = None,
        worker_id: str | None = None,
        queue_name: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        sequence_name: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.WorkerTask]:
        """List tasks, newest first.

        For the root key and for keys with the capability operator or worker or auditor.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            state: Separated by commas; default: all.
            created_after: Only objects created after this time.
            created_before: Only objects created before this time.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 50.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/workers/tasks",
            models.WorkerTask,
            query={
                "tenant_id": tenant_id,
                "state": state,
                "handler_name": handler_name,
                "worker_id": worker_id,
                "queue_name": queue_name,
                "created_after": created_after,
                "created_before": created_before,
                "sequence_name": sequence_name,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def stats(self, *, tenant_id: str | None = None) -> models.TaskStats:
        """Count tasks by state and handler.

        For the root key and for keys with the capability operator or worker or auditor.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            "/workers/tasks/stats",
            models.TaskStats,
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def complete(
        self,
        id: str,
        *,
        worker_id: str,
        output: JsonObject,
        claim_epoch: int | None = None,
        logs: Sequence[models.CompleteTaskLog | JsonObject] | None = None,
    ) -> models.WorkerTask:
        """Complete a claimed task with its output.

        The instance continues immediately. For the root key and for keys with the capability
        operator or worker.

        Args:
            worker_id: Must equal the claim's worker_id.
            output: Its top-level keys are merged into context.data.
            claim_epoch: Must equal the claim's epoch; required by some deployments.
        """
        return await self._call(
            "POST",
            path("/workers/tasks/{id}/complete", id=id),
            models.WorkerTask,
            body={
                "worker_id": worker_id,
                "output": output,
                "claim_epoch": claim_epoch,
                "logs": logs,
            },
            repeatable=True,
        )

    async def fail(
        self,
        id: str,
        *,
        worker_id: str,
        message: str,
        retryable: bool | None = None,
        claim_epoch: int | None = None,
        logs: Sequence[models.CompleteTaskLog | JsonObject] | None = None,
    ) -> models.WorkerTask:
        """Fail a claimed task.

        With retryable true the step is retried; otherwise it fails, and with it an instance
        that has only steps. For the root key and for keys with the capability operator or
        worker.

        Args:
            worker_id: Must equal the claim's worker_id.
            retryable: Default: False.
            claim_epoch: Must equal the claim's epoch; required by some deployments.
        """
        return await self._call(
            "POST",
            path("/workers/tasks/{id}/fail", id=id),
            models.WorkerTask,
            body={
                "worker_id": worker_id,
                "message": message,
                "retryable": retryable,
                "claim_epoch": claim_epoch,
                "logs": logs,
            },
            repeatable=True,
        )

    async def heartbeat(
        self,
        id: str,
        *,
        worker_id: str,
        claim_epoch: int | None = None,
        checkpoint_seq: int | None = None,
        checkpoint: JsonObject | None = None,
        release: bool | None = None,
    ) -> models.HeartbeatAccepted:
        """Renew a claim and save a checkpoint.

        Recommended every 15 to 30 seconds. A task without one for 60 seconds returns to its
        queue. For the root key and for keys with the capability operator or worker.

        Args:
            worker_id: Must equal the claim's worker_id.
            claim_epoch: Must equal the claim's epoch; required by some deployments.
            checkpoint_seq: Value of the last response.
            release: Releases the claim: the task can be claimed again immediately. Default:
                False.
        """
        return await self._call(
            "POST",
            path("/workers/tasks/{id}/heartbeat", id=id),
            models.HeartbeatAccepted,
            body={
                "worker_id": worker_id,
                "claim_epoch": claim_epoch,
                "checkpoint_seq": checkpoint_seq,
                "checkpoint": checkpoint,
                "release": release,
            },
        )

    def attempts(
        self,
        id: str,
        *,
        offset: int | None = None,
        limit: int | None = None,
    ) -> AsyncPages[models.WorkerAttempt]:
        """List the claim history of a task, oldest first.

        For the root key and for keys with the capability operator or worker or auditor.
        Unknown parameters are refused.

        Args:
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
        """
        return self._pages(
            "GET",
            path("/workers/tasks/{id}/attempts", id=id),
            models.WorkerAttempt,
            query={
                "offset": offset,
                "limit": limit,
            },
            repeatable=True,
        )

    async def list(
        self,
        *,
        tenant_id: str | None = None,
        alive_within_secs: int | None = None,
        include_stale: bool | None = None,
    ) -> builtins.list[models.WorkerInfo]:
        """List workers, last contact first.

        For the root key and for keys with the capability operator or worker or auditor.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            alive_within_secs: Workers seen within this time count as alive. Default: 60.
            include_stale: Also lists workers that are not alive. Default: False.
        """
        return await self._call(
            "GET",
            "/workers",
            builtins.list[models.WorkerInfo],
            query={
                "tenant_id": tenant_id,
                "alive_within_secs": alive_within_secs,
                "include_stale": include_stale,
            },
            repeatable=True,
        )


class AsyncWorkerEndpointsOperations(Resource):
    """The operations `worker_endpoints.*`."""

    async def put(
        self,
        name: str,
        *,
        handlers: Sequence[str],
        url: str,
        tenant_id: str | None = None,
        secret: str | None = None,
        concurrency: int | None = None,
        timeout_ms: int | None = None,
        enabled: bool | None = None,
        receives_secrets: bool | None = None,
        if_unchanged_since: datetime | str | None = None,
    ) -> models.WorkerEndpoint:
        """Set an endpoint to which the tasks of handlers are delivered by signed POST.

        For the root key and for keys with the capability operator.

        Args:
            handlers: The handlers whose tasks are delivered, from every queue.
            url: http or https, without credentials; a public address unless the deployment
                allows others.
            tenant_id: Must equal the header x-tenant-id, if sent. Must not be . or .., or
                begin or end with spaces or tabs.
            secret: Key of the signatures: whsec_ and base64 as in Standard Webhooks, or any
                text. Required for a new endpoint; never returned. Must not be [REDACTED].
            concurrency: Maximum number of requests at a time. Default: 10.
            timeout_ms: Maximum time until the end of the response, in ms. Default: 30000.
            enabled: False: no new tasks are delivered. Default: True.
            receives_secrets: True: tasks are delivered with the secrets that they name.
                Requires the capability secrets. Default: False.
            if_unchanged_since: The updated_at that was read: 409 if it has changed.
        """
        return await self._call(
            "PUT",
            path("/worker-endpoints/{name}", name=name),
            models.WorkerEndpoint,
            body={
                "tenant_id": tenant_id,
                "handlers": handlers,
                "url": url,
                "secret": secret,
                "concurrency": concurrency,
                "timeout_ms": timeout_ms,
                "enabled": enabled,
                "receives_secrets": receives_secrets,
                "if_unchanged_since": if_unchanged_since,
            },
            repeatable=True,
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> AsyncPages[models.WorkerEndpoint]:
        """List the worker endpoints of the tenant by name, with their current state.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
        """
        return self._pages(
            "GET",
            "/worker-endpoints",
            models.WorkerEndpoint,
            query={
                "tenant_id": tenant_id,
                "offset": offset,
                "limit": limit,
            },
            repeatable=True,
        )

    async def get(self, name: str) -> models.WorkerEndpoint:
        """Get a worker endpoint with its current state.

        For the root key and for keys with the capability operator or auditor.
        """
        return await self._call(
            "GET",
            path("/worker-endpoints/{name}", name=name),
            models.WorkerEndpoint,
            repeatable=True,
        )

    async def delete(self, name: str) -> None:
        """Delete a worker endpoint. Requests in flight still count.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "DELETE",
            path("/worker-endpoints/{name}", name=name),
            None,
            repeatable=True,
        )


class AsyncCronOperations(Resource):
    """The operations `cron.*`."""

    async def create(
        self,
        *,
        cron_expr: str,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence_id: str | None = None,
        sequence: str | None = None,
        version: int | None = None,
        timezone: str | None = None,
        metadata: JsonObject | None = None,
        context: models.CreateInstanceContext | JsonObject | None = None,
        timeout: int | None = None,
        priority: models.Priority | None = None,
        enabled: bool | None = None,
        overlap_policy: models.OverlapPolicy | None = None,
    ) -> models.ScheduleCreated:
        """Create a schedule, which creates instances.

        For the root key and for keys with the capability operator.

        Args:
            cron_expr: Seven fields: second minute hour day month day_of_week year. Also
                accepted: six (without year) or five (without second and year), ?, and
                @hourly, @daily, @weekly, @monthly, @yearly.
            tenant_id: Must not be . or .., or begin or end with spaces or tabs.
            sequence_id: Id of a version, from which a release may route to another one.
                Exactly one of sequence_id and sequence is required.
            sequence: Name of a sequence in the namespace, instead of sequence_id.
            version: With sequence: pins this version; no release routes it elsewhere.
                Default: the newest version that is not deprecated, on hold, or held back by a
                release.
            timezone: IANA time zone, such as Europe/Berlin. Default: "UTC".
            metadata: Metadata of the created instances.
            context: Initial context; data must conform to the input_schema.
            timeout: Maximum duration in ms from the first step, without pauses; then it
                fails.
            priority: Case-insensitive. Default: "normal".
            enabled: Default: True.
            overlap_policy: Action of a fire while an earlier run has not finished. Default:
                "allow".
        """
        return await self._call(
            "POST",
            "/cron",
            models.ScheduleCreated,
            body={
                "tenant_id": tenant_id or self._tenant,
                "namespace": namespace or self._namespace,
                "sequence_id": sequence_id,
                "sequence": sequence,
                "version": version,
                "cron_expr": cron_expr,
                "timezone": timezone,
                "metadata": metadata,
                "context": context,
                "timeout": timeout,
                "priority": priority,
                "enabled": enabled,
                "overlap_policy": overlap_policy,
            },
        )

    async def preview(
        self,
        *,
        cron_expr: str,
        timezone: str | None = None,
        count: int | None = None,
        from_: datetime | str | None = None,
    ) -> models.SchedulePreview:
        """Preview the next fires of an expression without creating a schedule.

        For the root key and for keys with the capability operator or auditor.

        Args:
            cron_expr: Seven fields: second minute hour day month day_of_week year. Also
                accepted: six (without year) or five (without second and year), ?, and
                @hourly, @daily, @weekly, @monthly, @yearly.
            timezone: IANA time zone, such as Europe/Berlin. Default: "UTC".
            count: Default: 5.
            from_: Time after which fires are listed; default: now.
        """
        return await self._call(
            "POST",
            "/cron/preview",
            models.SchedulePreview,
            body={
                "cron_expr": cron_expr,
                "timezone": timezone,
                "count": count,
                "from": from_,
            },
            repeatable=True,
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        order: Literal["created", "next_fire"] | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.CronSchedule]:
        """List schedules, oldest first or by next fire.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            order: next_fire: only enabled, by next fire. Default: created.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/cron",
            models.CronSchedule,
            query={
                "tenant_id": tenant_id,
                "order": order,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def get(self, id: str) -> models.CronSchedule:
        """Get a schedule.

        For the root key and for keys with the capability operator or auditor.
        """
        return await self._call(
            "GET",
            path("/cron/{id}", id=id),
            models.CronSchedule,
            repeatable=True,
        )

    async def update(
        self,
        id: str,
        *,
        if_unchanged_since: datetime | str | Null | None = None,
        cron_expr: str | None = None,
        timezone: str | Null | None = None,
        enabled: bool | Null | None = None,
        metadata: JsonObject | Null | None = None,
        context: models.CreateInstanceContext | JsonObject | Null | None = None,
        timeout: int | Null | None = None,
        priority: models.Priority | Null | None = None,
        overlap_policy: models.OverlapPolicy | Null | None = None,
    ) -> models.CronSchedule:
        """Change a schedule.

        A changed cron_expr, timezone or enabled recomputes the next fire from now. Other
        changes, and repeated values, keep a fire that is due or waits for an earlier run. For
        the root key and for keys with the capability operator.

        Args:
            if_unchanged_since: The updated_at that was read: 409 if it has changed.
            cron_expr: Seven fields: second minute hour day month day_of_week year. Also
                accepted: six (without year) or five (without second and year), ?, and
                @hourly, @daily, @weekly, @monthly, @yearly.
            timezone: IANA time zone, such as Europe/Berlin.
            metadata: Metadata of the created instances.
            context: Initial context; data must conform to the input_schema.
            timeout: Maximum duration in ms from the first step, without pauses; then it
                fails.
            priority: Case-insensitive.
            overlap_policy: Action of a fire while an earlier run has not finished.
        """
        return await self._call(
            "PUT",
            path("/cron/{id}", id=id),
            models.CronSchedule,
            body={
                "if_unchanged_since": if_unchanged_since,
                "cron_expr": cron_expr,
                "timezone": timezone,
                "enabled": enabled,
                "metadata": metadata,
                "context": context,
                "timeout": timeout,
                "priority": priority,
                "overlap_policy": overlap_policy,
            },
            repeatable=True,
        )

    async def delete(self, id: str) -> None:
        """Delete a schedule. Its instances continue.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "DELETE",
            path("/cron/{id}", id=id),
            None,
            repeatable=True,
        )

    async def run(self, id: str, *, idempotency_key: str | None = None) -> models.ScheduleRun:
        """Fire a schedule now, without changing its next fire.

        For the root key and for keys with the capability operator.

        Args:
            idempotency_key: A repetition with the same key returns the first instance. An
                empty text counts as absent.
        """
        return await self._call(
            "POST",
            path("/cron/{id}/run", id=id),
            models.ScheduleRun,
            body={
                "idempotency_key": idempotency_key,
            },
            keyed=Keyed("idempotency_key"),
        )

    async def next_fires(self, id: str, *, n: int | None = None) -> models.NextFires:
        """List next fires of a schedule.

        For the root key and for keys with the capability operator or auditor.

        Args:
            n: Number of fires. At least 1 and at most 50. Default: 5.
        """
        return await self._call(
            "GET",
            path("/cron/{id}/next-fires", id=id),
            models.NextFires,
            query={
                "n": n,
            },
            repeatable=True,
        )


class AsyncPendingStartsOperations(Resource):
    """The operations `pending_starts.*`."""

    def list(
        self,
        *,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.PendingStart]:
        """List the instances that are yet to start from collected creations, oldest first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/pending-starts",
            models.PendingStart,
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "sequence": sequence,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def get(self, id: str) -> models.PendingStart:
        """Get an instance that is yet to start from collected creations.

        For the root key and for keys with the capability operator or auditor or starter.
        """
        return await self._call(
            "GET",
            path("/pending-starts/{id}", id=id),
            models.PendingStart,
            repeatable=True,
        )

    async def start(self, id: str) -> models.PendingStart:
        """Start the instance now, without waiting for more creations.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "POST",
            path("/pending-starts/{id}/start", id=id),
            models.PendingStart,
            repeatable=True,
        )

    async def drop(self, id: str) -> None:
        """Drop the collected creations: the instance does not start.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "DELETE",
            path("/pending-starts/{id}", id=id),
            None,
            repeatable=True,
        )


class AsyncReleasesOperations(Resource):
    """The operations `releases.*`."""

    async def create(
        self,
        *,
        baseline_sequence_id: str,
        candidate_sequence_id: str,
        tenant_id: str | None = None,
        gates: Sequence[models.Gate | JsonObject] | None = None,
        in_flight_policy: models.CreateReleaseInFlightPolicy | None = None,
    ) -> models.Release:
        """Draft a release from one version of a sequence to another.

        Answers 409 while another release of the baseline routes instances. For the root key
        and for keys with the capability operator or publisher.

        Args:
            tenant_id: Must equal the header x-tenant-id, if sent.
            gates: Default: [].
            in_flight_policy: Neither migrates running instances: with operator_decision an
                operator does so explicitly. Default: "pin".
        """
        return await self._call(
            "POST",
            "/releases",
            models.Release,
            body={
                "tenant_id": tenant_id,
                "baseline_sequence_id": baseline_sequence_id,
                "candidate_sequence_id": candidate_sequence_id,
                "gates": gates,
                "in_flight_policy": in_flight_policy,
            },
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        state: models.ReleaseState | None = None,
        sequence_name: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Release]:
        """List releases, newest first.

        For the root key and for keys with the capability operator or publisher or auditor.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            state: Separated by commas; default: all.
            limit: Maximum number of rows. At least 1 and at most 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/releases",
            models.Release,
            query={
                "tenant_id": tenant_id,
                "state": state,
                "sequence_name": sequence_name,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def get(self, id: str) -> models.Release:
        """Get a release.

        For the root key and for keys with the capability operator or publisher or auditor.
        """
        return await self._call(
            "GET",
            path("/releases/{id}", id=id),
            models.Release,
            repeatable=True,
        )

    async def diff(self, id: str) -> models.SemanticDiff:
        """Compare baseline and candidate.

        For the root key and for keys with the capability operator or publisher or auditor.
        """
        return await self._call(
            "GET",
            path("/releases/{id}/diff", id=id),
            models.SemanticDiff,
            repeatable=True,
        )

    async def gates(self, id: str) -> models.GateReport:
        """Get current verdicts of gates.

        For the root key and for keys with the capability operator or publisher or auditor.
        """
        return await self._call(
            "GET",
            path("/releases/{id}/gates", id=id),
            models.GateReport,
            repeatable=True,
        )

    async def decisions(self, id: str) -> builtins.list[models.ReleaseDecision]:
        """List the decisions about a release, oldest first.

        For the root key and for keys with the capability operator or publisher or auditor.
        """
        return await self._call(
            "GET",
            path("/releases/{id}/decisions", id=id),
            builtins.list[models.ReleaseDecision],
            repeatable=True,
        )

    async def validate(
        self,
        id: str,
        *,
        sample: int | None = None,
        skip: bool | None = None,
    ) -> models.ValidationReport:
        """Replay finished runs of the baseline with the candidate, without side effects.

        Only for a draft. It becomes ready whatever the replays find, or failed if the
        candidate cannot run at all. For the root key and for keys with the capability
        operator or publisher.

        Args:
            sample: Number of newest finished runs to replay: at least 1 and at most 50.
                Default: 10.
            skip: Makes the release ready without a replay. Default: False.
        """
        return await self._call(
            "POST",
            path("/releases/{id}/validate", id=id),
            models.ValidationReport,
            body={
                "sample": sample,
                "skip": skip,
            },
        )

    async def canary(self, id: str, *, percent: int) -> models.Release:
        """Route a percentage of the baseline's new instances to the candidate.

        For a ready or paused release. Answered once the whole server routes so. For the root
        key and for keys with the capability operator or publisher.

        Args:
            percent: Percentage of the baseline's new instances routed to the candidate.
        """
        return await self._call(
            "POST",
            path("/releases/{id}/canary", id=id),
            models.Release,
            body={
                "percent": percent,
            },
        )

    async def evaluate(self, id: str) -> models.EvaluationReport:
        """Evaluate the gates now. A failed gate rolls a canary back.

        Gates are also evaluated automatically while instances finish. For the root key and
        for keys with the capability operator or publisher.
        """
        return await self._call(
            "POST",
            path("/releases/{id}/evaluate", id=id),
            models.EvaluationReport,
            repeatable=True,
        )

    async def promote(self, id: str, *, force: bool | None = None) -> models.Release:
        """Route all new instances of the baseline to the candidate permanently.

        Only for a canary. Answers 409 unless every gate passes; a failed gate rolls back. For
        the root key and for keys with the capability operator or publisher.

        Args:
            force: Recorded in the decision; failing evidence is refused regardless. Default:
                False.
        """
        return await self._call(
            "POST",
            path("/releases/{id}/promote", id=id),
            models.Release,
            body={
                "force": force,
            },
        )

    async def pause(self, id: str) -> models.Release:
        """Route new instances to the baseline until the canary continues.

        Only for a canary; canary, with any percentage, continues it. For the root key and for
        keys with the capability operator or publisher.
        """
        return await self._call(
            "POST",
            path("/releases/{id}/pause", id=id),
            models.Release,
        )

    async def rollback(self, id: str) -> models.Release:
        """Route new instances to the baseline permanently.

        For a canary or a paused release; repetitions are no error. For the root key and for
        keys with the capability operator or publisher.
        """
        return await self._call(
            "POST",
            path("/releases/{id}/rollback", id=id),
            models.Release,
            repeatable=True,
        )

    async def series(self, id: str, *, step: int | None = None) -> models.ReleaseSeries:
        """Compare both versions of a release over time.

        For the root key and for keys with the capability operator or publisher or auditor.
        Unknown parameters are refused.

        Args:
            step: Length of an interval in seconds. Default: a sixtieth of the time since the
                canary started.
        """
        return await self._call(
            "GET",
            path("/releases/{id}/series", id=id),
            models.ReleaseSeries,
            query={
                "step": step,
            },
            repeatable=True,
        )


class AsyncContinuityOperations(Resource):
    """The operations `continuity.*`."""

    async def create(
        self,
        *,
        instance_id: str,
        runtime_id: str,
        tenant_id: str | None = None,
    ) -> models.ContinuityExecution:
        """Create an execution: a portable identity of an instance, with an owner and an epoch.

        In any state of the instance. The id is that of the instance. For the root key and for
        keys with the capability operator.
        """
        return await self._call(
            "POST",
            "/continuity/executions",
            models.ContinuityExecution,
            body={
                "tenant_id": tenant_id,
                "instance_id": instance_id,
                "runtime_id": runtime_id,
            },
        )

    async def claim(
        self,
        *,
        ownership_grant: models.OwnershipGrant | JsonObject,
        tenant_id: str | None = None,
    ) -> models.ContinuityExecution:
        """Claim an imported execution that its source has granted to this server.

        The instance stays paused until its state is changed or it is resumed. For the root
        key and for keys with the capability operator.
        """
        return await self._call(
            "POST",
            "/continuity/executions/claim",
            models.ContinuityExecution,
            body={
                "tenant_id": tenant_id,
                "ownership_grant": ownership_grant,
            },
            repeatable=True,
        )

    async def get(self, id: str, *, tenant_id: str | None = None) -> models.ContinuityExecution:
        """Get an execution.

        For the root key and for keys with the capability operator or auditor.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            path("/continuity/executions/{id}", id=id),
            models.ContinuityExecution,
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def locations(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
    ) -> builtins.list[models.ContinuityLocation]:
        """List the locations of an execution by epoch.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            path("/continuity/executions/{id}/locations", id=id),
            builtins.list[models.ContinuityLocation],
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def effects(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
    ) -> builtins.list[models.EffectReceipt]:
        """List the effect receipts of an execution; empty for an unknown one.

        Receipts of all instances of the execution on this server. For the root key and for
        keys with the capability operator or auditor. Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            path("/continuity/executions/{id}/effects", id=id),
            builtins.list[models.EffectReceipt],
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def checkpoints(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
        limit: int | None = None,
    ) -> builtins.list[models.CheckpointBoundary]:
        """List the boundaries at which checkpoints of an execution were saved.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            limit: Maximum number of rows. Larger values are lowered to 10000. Default: 1000.
        """
        return await self._call(
            "GET",
            path("/continuity/executions/{id}/checkpoints", id=id),
            builtins.list[models.CheckpointBoundary],
            query={
                "tenant_id": tenant_id,
                "limit": limit,
            },
            repeatable=True,
        )

    async def checkpoint(
        self,
        id: str,
        checkpoint_id: str,
        *,
        tenant_id: str | None = None,
    ) -> models.CheckpointBoundaryDetail:
        """Get a boundary with the changes since the previous one.

        For the root key and for keys with the capability operator or auditor.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            path(
                "/continuity/executions/{id}/checkpoints/{checkpoint_id}",
                id=id,
                checkpoint_id=checkpoint_id,
            ),
            models.CheckpointBoundaryDetail,
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def provenance(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
    ) -> builtins.list[models.ProvenanceEntry]:
        """List the provenance chain of an execution; empty for an unknown one.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            path("/continuity/executions/{id}/provenance", id=id),
            builtins.list[models.ProvenanceEntry],
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def append_provenance(
        self,
        id: str,
        *,
        kind: models.AppendProvenanceKind,
        payload_sha256: str,
        tenant_id: str | None = None,
    ) -> models.ProvenanceEntry:
        """Append an entry to the provenance chain.

        The server writes the other kinds itself. Answers 409 once the chain has 10,000
        entries. For the root key and for keys with the capability operator.
        """
        return await self._call(
            "POST",
            path("/continuity/executions/{id}/provenance", id=id),
            models.ProvenanceEntry,
            body={
                "tenant_id": tenant_id,
                "kind": kind,
                "payload_sha256": payload_sha256,
            },
        )

    async def verify_provenance(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
        expected_head: str | None = None,
    ) -> models.ProvenanceVerdict:
        """Verify every link, hash and signature of the provenance chain.

        An empty chain is valid. The deployment sets the trusted keys. For the root key and
        for keys with the capability operator or auditor.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            path("/continuity/executions/{id}/provenance/verify", id=id),
            models.ProvenanceVerdict,
            query={
                "tenant_id": tenant_id,
                "expected_head": expected_head,
            },
            repeatable=True,
        )

    async def place(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
        requirements: models.Requirements | JsonObject | None = None,
        policy: models.LocalityPolicy | JsonObject | None = None,
        locality_policy: models.LocalityPolicy | JsonObject | None = None,
        classification: models.CreateHandoffClassification | None = None,
        data_classification: models.CreateHandoffClassification | None = None,
    ) -> models.PlacementDecision:
        """Evaluate every live runtime as a place for an execution.

        The decision is stored, and nothing is moved. For the root key and for keys with the
        capability operator.

        Args:
            policy: Alias of locality_policy.
            classification: Alias of data_classification.
            data_classification: Default: "internal".
        """
        return await self._call(
            "POST",
            path("/continuity/executions/{id}/placement", id=id),
            models.PlacementDecision,
            body={
                "tenant_id": tenant_id,
                "requirements": requirements,
                "policy": policy,
                "locality_policy": locality_policy,
                "classification": classification,
                "data_classification": data_classification,
            },
        )

    async def preview(
        self,
        id: str,
        *,
        destination_runtime_id: str,
        tenant_id: str | None = None,
        requirements: models.Requirements | JsonObject | None = None,
        policy: models.LocalityPolicy | JsonObject | None = None,
        locality_policy: models.LocalityPolicy | JsonObject | None = None,
        classification: models.CreateHandoffClassification | None = None,
        data_classification: models.CreateHandoffClassification | None = None,
    ) -> models.HandoffPreview:
        """Evaluate one runtime as the destination of a handoff.

        Also answered if not compatible. 404 if the runtime is not live. For the root key and
        for keys with the capability operator.

        Args:
            policy: Alias of locality_policy.
            classification: Alias of data_classification.
            data_classification: Default: "internal".
        """
        return await self._call(
            "POST",
            path("/continuity/executions/{id}/handoff-preview", id=id),
            models.HandoffPreview,
            body={
                "tenant_id": tenant_id,
                "requirements": requirements,
                "policy": policy,
                "locality_policy": locality_policy,
                "classification": classification,
                "data_classification": data_classification,
                "destination_runtime_id": destination_runtime_id,
            },
        )

    async def resolve_effect(
        self,
        id: str,
        *,
        state: models.EffectReceiptState,
        tenant_id: str | None = None,
        provider_receipt_id: str | None = None,
    ) -> models.EffectReceipt:
        """Record the result of an effect.

        unknown becomes verified, committed, compensated or abandoned; committed and verified
        become compensated. Other transitions are answered 409. For the root key and for keys
        with the capability operator.
        """
        return await self._call(
            "POST",
            path("/continuity/effects/{id}/resolve", id=id),
            models.EffectReceipt,
            body={
                "tenant_id": tenant_id,
                "state": state,
                "provider_receipt_id": provider_receipt_id,
            },
        )


class AsyncMigrationsOperations(Resource):
    """The operations `migrations.*`."""

    async def migrate(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
        version: int | None = None,
        sequence_id: str | None = None,
        to_sequence_id: str | None = None,
        target_sequence_id: str | None = None,
        transforms: Sequence[models.Transform | JsonObject] | None = None,
        approved: bool | None = None,
        rollback_retention_seconds: int | None = None,
        dry_run: bool | None = None,
    ) -> models.MigratedInstance:
        """Migrate an instance to another version, if that is safe.

        For the root key and for keys with the capability operator.

        Args:
            version: Version of the same sequence.
            sequence_id: Id of the target version.
            to_sequence_id: Alias of sequence_id.
            target_sequence_id: Alias of sequence_id.
            transforms: Default: [].
            approved: Also migrates where the verdict is approval_required. Default: False.
            rollback_retention_seconds: Time for a rollback in seconds: 60 to 2,592,000;
                default: 86,400. Default: 86400.
            dry_run: Only returns the verdict: nothing is changed. Default: False.
        """
        return await self._call(
            "POST",
            path("/instances/{id}/migrate", id=id),
            models.MigratedInstance,
            body={
                "tenant_id": tenant_id,
                "version": version,
                "sequence_id": sequence_id,
                "to_sequence_id": to_sequence_id,
                "target_sequence_id": target_sequence_id,
                "transforms": transforms,
                "approved": approved,
                "rollback_retention_seconds": rollback_retention_seconds,
                "dry_run": dry_run,
            },
        )

    async def plan(
        self,
        *,
        continuity_id: str,
        to_sequence_id: str,
        to_version: int,
        tenant_id: str | None = None,
        transforms: Sequence[models.Transform | JsonObject] | None = None,
        rollback_retention_seconds: int | None = None,
        capture_checkpoint: bool | None = None,
    ) -> models.MigrationPlan:
        """Plan the migration of a live execution to another version.

        Only for a waiting or paused instance, which is not changed. For the root key and for
        keys with the capability operator.

        Args:
            to_version: Version of to_sequence_id, else 404.
            transforms: Default: [].
            rollback_retention_seconds: Time for a rollback in seconds: 60 to 2,592,000;
                default: 86,400. Default: 86400.
            capture_checkpoint: First saves a checkpoint of the live state. Without any
                checkpoint: 409. First saves a checkpoint of the live state. Default: False.
        """
        return await self._call(
            "POST",
            "/continuity/migrations/plan",
            models.MigrationPlan,
            body={
                "tenant_id": tenant_id,
                "continuity_id": continuity_id,
                "to_sequence_id": to_sequence_id,
                "to_version": to_version,
                "transforms": transforms,
                "rollback_retention_seconds": rollback_retention_seconds,
                "capture_checkpoint": capture_checkpoint,
            },
        )

    async def get(self, id: str, *, tenant_id: str | None = None) -> models.MigrationRecord:
        """Get a migration.

        For the root key and for keys with the capability operator or auditor.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            path("/continuity/migrations/{id}", id=id),
            models.MigrationRecord,
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def apply(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
        approved: bool | None = None,
    ) -> models.MigrationRecord:
        """Migrate to the other version and leave the instance paused.

        Answers 409 if anything has changed since the plan. Requires an encryption key, else
        503. The instance is left paused, in the next epoch. For the root key and for keys
        with the capability operator.

        Args:
            approved: Default: False.
        """
        return await self._call(
            "POST",
            path("/continuity/migrations/{id}/apply", id=id),
            models.MigrationRecord,
            body={
                "tenant_id": tenant_id,
                "approved": approved,
            },
        )

    async def rollback(self, id: str, *, tenant_id: str | None = None) -> models.MigrationRecord:
        """Roll a migration back to its sealed capsule.

        Answers 409 once the target has run: if an effect of its epoch was dispatched,
        committed or verified, or is unknown. For the root key and for keys with the
        capability operator.
        """
        return await self._call(
            "POST",
            path("/continuity/migrations/{id}/rollback", id=id),
            models.MigrationRecord,
            body={
                "tenant_id": tenant_id,
            },
        )


class AsyncRuntimesOperations(Resource):
    """The operations `runtimes.*`."""

    async def register(
        self,
        *,
        capabilities: models.RegisterRuntimeCapabilities | JsonObject,
        tenant_id: str | None = None,
    ) -> models.RuntimeCapabilities:
        """Register the facts of a runtime for some minutes.

        Repeat it while the runtime lives. Earlier observations change nothing. For the root
        key and for keys with the capability operator.

        Args:
            capabilities: observed_at: at most 30 s ahead. expires_at: 5 min later at most.
                trust: unverified or registered. Lists: at most 256 entries of 256 bytes.
        """
        return await self._call(
            "POST",
            "/runtimes/register",
            models.RuntimeCapabilities,
            body={
                "tenant_id": tenant_id,
                "capabilities": capabilities,
            },
            repeatable=True,
        )

    async def list(
        self,
        *,
        tenant_id: str | None = None,
    ) -> builtins.list[models.RuntimeCapabilities]:
        """List live runtimes, last seen first.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            "/runtimes",
            builtins.list[models.RuntimeCapabilities],
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )


class AsyncHandoffsOperations(Resource):
    """The operations `handoffs.*`."""

    async def create(
        self,
        *,
        placement_decision_id: str,
        preview_sha256: str,
        destination_runtime_id: str,
        tenant_id: str | None = None,
        requirements: models.Requirements | JsonObject | None = None,
        policy: models.LocalityPolicy | JsonObject | None = None,
        locality_policy: models.LocalityPolicy | JsonObject | None = None,
        classification: models.CreateHandoffClassification | None = None,
        data_classification: models.CreateHandoffClassification | None = None,
        continuity_id: str | None = None,
    ) -> models.Handoff:
        """Start the handoff of an execution to the runtime of a current preview.

        Answers 409 if anything has changed since the preview. For the root key and for keys
        with the capability operator.

        Args:
            policy: Alias of locality_policy.
            classification: Alias of data_classification.
            data_classification: Default: "internal".
        """
        return await self._call(
            "POST",
            "/continuity/handoffs",
            models.Handoff,
            body={
                "tenant_id": tenant_id,
                "requirements": requirements,
                "policy": policy,
                "locality_policy": locality_policy,
                "classification": classification,
                "data_classification": data_classification,
                "continuity_id": continuity_id,
                "placement_decision_id": placement_decision_id,
                "preview_sha256": preview_sha256,
                "destination_runtime_id": destination_runtime_id,
            },
        )

    async def get(self, id: str, *, tenant_id: str | None = None) -> models.Handoff:
        """Get a handoff.

        For the root key and for keys with the capability operator or auditor.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            path("/continuity/handoffs/{id}", id=id),
            models.Handoff,
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def export(
        self,
        id: str,
        *,
        tenant_id: str | None = None,
        requirements: models.Requirements | JsonObject | None = None,
        expires_in_seconds: int | None = None,
        payload_key_base64: str | None = None,
        capture_checkpoint: bool | None = None,
    ) -> models.HandoffExported:
        """Seal the execution into a capsule for its destination.

        The instance does not run here from then on. Requires an encryption key, else 503.
        Exported once: after a lost response, revoke the handoff and create another one. For
        the root key and for keys with the capability operator.

        Args:
            requirements: Findings of the placement decision.
            expires_in_seconds: Default: 300.
            payload_key_base64: A single-use key of 32 bytes, made by the destination.
                Default: only servers with the same encryption key can open the capsule.
            capture_checkpoint: First saves a checkpoint of the live state. Default: False.
        """
        return await self._call(
            "POST",
            path("/continuity/handoffs/{id}/export", id=id),
            models.HandoffExported,
            body={
                "tenant_id": tenant_id,
                "requirements": requirements,
                "expires_in_seconds": expires_in_seconds,
                "payload_key_base64": payload_key_base64,
                "capture_checkpoint": capture_checkpoint,
            },
        )

    async def attach(
        self,
        id: str,
        *,
        destination_instance_id: str,
        capsule: models.Capsule | JsonObject,
        payload_base64: str,
        payload_key_base64: str,
        tenant_id: str | None = None,
    ) -> models.CapsuleAttached:
        """Import a capsule sealed by an isolated device, as the export of its handoff.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "POST",
            path("/continuity/handoffs/{id}/attach-device-capsule", id=id),
            models.CapsuleAttached,
            body={
                "tenant_id": tenant_id,
                "destination_instance_id": destination_instance_id,
                "capsule": capsule,
                "payload_base64": payload_base64,
                "payload_key_base64": payload_key_base64,
            },
        )

    async def accept(
        self,
        id: str,
        *,
        destination_instance_id: str,
        tenant_id: str | None = None,
        import_receipt: models.ImportReceipt | JsonObject | None = None,
    ) -> models.HandoffAccepted:
        """Make the destination the owner.

        The epoch grows by 1. From then on the source never runs it again. For the root key
        and for keys with the capability operator.

        Args:
            import_receipt: For an instance on another server.
        """
        return await self._call(
            "POST",
            path("/continuity/handoffs/{id}/accept", id=id),
            models.HandoffAccepted,
            body={
                "tenant_id": tenant_id,
                "destination_instance_id": destination_instance_id,
                "import_receipt": import_receipt,
            },
            repeatable=True,
        )

    async def resume(self, id: str, *, tenant_id: str | None = None) -> models.Handoff:
        """Start running at the destination.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "POST",
            path("/continuity/handoffs/{id}/resume", id=id),
            models.Handoff,
            body={
                "tenant_id": tenant_id,
            },
        )

    async def reject(self, id: str, *, tenant_id: str | None = None) -> models.Handoff:
        """Reject a handoff before its export.

        Owner and epoch do not change. For the root key and for keys with the capability
        operator.
        """
        return await self._call(
            "POST",
            path("/continuity/handoffs/{id}/reject", id=id),
            models.Handoff,
            body={
                "tenant_id": tenant_id,
            },
        )

    async def revoke(self, id: str, *, tenant_id: str | None = None) -> models.Handoff:
        """Revoke an exported capsule before it is accepted.

        Owner and epoch do not change; the next handoff or migration takes the execution back.
        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "POST",
            path("/continuity/handoffs/{id}/revoke", id=id),
            models.Handoff,
            body={
                "tenant_id": tenant_id,
            },
        )


class AsyncCapsulesOperations(Resource):
    """The operations `capsules.*`."""

    async def import_(
        self,
        *,
        destination_runtime_id: str,
        expected_epoch: int,
        capsule: models.Capsule | JsonObject,
        tenant_id: str | None = None,
        destination_instance_id: str | None = None,
        payload_base64: str | None = None,
        payload_key_base64: str | None = None,
    ) -> models.CapsuleImported:
        """Create the paused instance of a capsule.

        A repetition returns the same instance. Requires an encryption key, else 503. For the
        root key and for keys with the capability operator.

        Args:
            destination_instance_id: Default: generated.
            payload_base64: Default: the capsule that this server sealed.
        """
        return await self._call(
            "POST",
            "/continuity/capsules/import",
            models.CapsuleImported,
            body={
                "tenant_id": tenant_id,
                "destination_runtime_id": destination_runtime_id,
                "expected_epoch": expected_epoch,
                "destination_instance_id": destination_instance_id,
                "capsule": capsule,
                "payload_base64": payload_base64,
                "payload_key_base64": payload_key_base64,
            },
            repeatable=True,
        )


class AsyncApiKeysOperations(Resource):
    """The operations `api_keys.*`."""

    async def mint(
        self,
        *,
        capabilities: Sequence[models.Capability],
        tenant_id: str | None = None,
        name: str | None = None,
        groups: Sequence[str] | None = None,
        expires_at: datetime | str | None = None,
    ) -> models.KeyMinted:
        """Create a key for a tenant. Only this response has its secret.

        For the root key only.

        Args:
            tenant_id: Must not be . or .., or begin or end with spaces or tabs.
            name: Default: "".
            groups: Groups for which the key answers approvals; only with the capability
                approver.
        """
        return await self._call(
            "POST",
            "/api-keys",
            models.KeyMinted,
            body={
                "tenant_id": tenant_id or self._tenant,
                "name": name,
                "capabilities": capabilities,
                "groups": groups,
                "expires_at": expires_at,
            },
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.ApiKey]:
        """List the keys of a tenant, oldest first.

        For the root key only. Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/api-keys",
            models.ApiKey,
            query={
                "tenant_id": tenant_id or self._tenant,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def revoke(self, id: str) -> None:
        """Revoke a key immediately and permanently.

        For the root key only.
        """
        return await self._call(
            "DELETE",
            path("/api-keys/{id}", id=id),
            None,
            repeatable=True,
        )


class AsyncActionsOperations(Resource):
    """The operations `actions.*`."""

    def list(
        self,
        *,
        tenant_id: str | None = None,
        by: str | None = None,
        kind: Literal[
            "sequence",
            "instance",
            "bulk_job",
            "pending_start",
            "approval",
            "release",
            "migration",
            "effect",
            "credential",
            "trigger",
            "webhook",
            "webhook_delivery",
            "cron_schedule",
            "rate_limit",
            "worker_endpoint",
            "api_key",
            "tenant_limits",
        ]
        | None = None,
        operation: str | None = None,
        target: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Action]:
        """List what people and keys have changed, newest first.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            by: Name of the key.
            target: Id or name of the changed object.
            since: Only actions after this time.
            until: Only actions before this time.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/actions",
            models.Action,
            query={
                "tenant_id": tenant_id,
                "by": by,
                "kind": kind,
                "operation": operation,
                "target": target,
                "since": since,
                "until": until,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )


class AsyncTenantsOperations(Resource):
    """The operations `tenants.*`."""

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Tenant]:
        """List the tenants that have sequences, instances, keys or limits, by name.

        For the root key only. Unknown parameters are refused.

        Args:
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/tenants",
            models.Tenant,
            query={
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )


class AsyncTenantLimitsOperations(Resource):
    """The operations `tenant_limits.*`."""

    async def put(
        self,
        id: str,
        *,
        bytes_per_second: int | None = None,
        bytes_burst: int | None = None,
        rows_per_second: int | None = None,
        rows_burst: int | None = None,
        blocks_per_second: int | None = None,
        blocks_burst: int | None = None,
        schedules_per_second: int | None = None,
        schedules_burst: int | None = None,
        schedules_max: int | None = None,
        queue_depth_max: int | None = None,
        if_unchanged_since: datetime | str | None = None,
    ) -> models.TenantLimits:
        """Replace the limits of a tenant; absent members are reset to the default.

        For the root key only.

        Args:
            if_unchanged_since: The updated_at that was read: 409 if it has changed.
        """
        return await self._call(
            "PUT",
            path("/tenants/{id}/limits", id=id),
            models.TenantLimits,
            body={
                "bytes_per_second": bytes_per_second,
                "bytes_burst": bytes_burst,
                "rows_per_second": rows_per_second,
                "rows_burst": rows_burst,
                "blocks_per_second": blocks_per_second,
                "blocks_burst": blocks_burst,
                "schedules_per_second": schedules_per_second,
                "schedules_burst": schedules_burst,
                "schedules_max": schedules_max,
                "queue_depth_max": queue_depth_max,
                "if_unchanged_since": if_unchanged_since,
            },
            repeatable=True,
        )

    async def get(self, id: str) -> models.TenantLimits:
        """Get the limits that were set for a tenant.

        For the root key only.
        """
        return await self._call(
            "GET",
            path("/tenants/{id}/limits", id=id),
            models.TenantLimits,
            repeatable=True,
        )

    async def delete(self, id: str) -> None:
        """Reset a tenant to the default limits.

        For the root key only.
        """
        return await self._call(
            "DELETE",
            path("/tenants/{id}/limits", id=id),
            None,
            repeatable=True,
        )


class AsyncCellsOperations(Resource):
    """The operations `cells.*`."""

    async def list(self) -> models.Cells:
        """List the cells of the cluster with their engines, from the directory.

        For the root key only.
        """
        return await self._call(
            "GET",
            "/cells",
            models.Cells,
            repeatable=True,
        )

    def moves(
        self,
        *,
        under_way: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.TenantMove]:
        """List tenant moves, newest first.

        For the root key only. Unknown parameters are refused.

        Args:
            under_way: Only unfinished moves. Default: False.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/cells/moves",
            models.TenantMove,
            query={
                "under_way": under_way,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )


class AsyncWebhooksOperations(Resource):
    """The operations `webhooks.*`."""

    async def subscribe(
        self,
        *,
        url: str,
        tenant_id: str | None = None,
        events: Sequence[models.WebhookEvent] | None = None,
        secret: str | None = None,
    ) -> models.SubscriptionCreated:
        """Subscribe to finished instances of the tenant. Only this response has the secret.

        For the root key and for keys with the capability operator.

        Args:
            url: http or https, without credentials; a public address unless the deployment
                allows others.
            tenant_id: Must equal the header x-tenant-id, if sent. Must not be . or .., or
                begin or end with spaces or tabs.
            events: Default: all events.
            secret: Default: generated. Key of the webhooks' signatures. Must not be
                [REDACTED].
        """
        return await self._call(
            "POST",
            "/webhooks",
            models.SubscriptionCreated,
            body={
                "tenant_id": tenant_id,
                "url": url,
                "events": events,
                "secret": secret,
            },
        )

    def subscriptions(
        self,
        *,
        tenant_id: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> AsyncPages[models.WebhookSubscription]:
        """List the webhook subscriptions of the tenant, oldest first.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
        """
        return self._pages(
            "GET",
            "/webhooks",
            models.WebhookSubscription,
            query={
                "tenant_id": tenant_id,
                "offset": offset,
                "limit": limit,
            },
            repeatable=True,
        )

    async def subscription(self, id: str) -> models.WebhookSubscription:
        """Get a subscription.

        For the root key and for keys with the capability operator or auditor.
        """
        return await self._call(
            "GET",
            path("/webhooks/{id}", id=id),
            models.WebhookSubscription,
            repeatable=True,
        )

    async def update(
        self,
        id: str,
        *,
        if_unchanged_since: datetime | str | Null | None = None,
        url: str | None = None,
        events: Sequence[models.WebhookEvent] | Null | None = None,
        secret: str | None = None,
    ) -> models.WebhookSubscription:
        """Change a webhook subscription. A new secret signs from the next attempt on.

        For the root key and for keys with the capability operator.

        Args:
            if_unchanged_since: The updated_at that was read: 409 if it has changed.
            url: http or https, without credentials; a public address unless the deployment
                allows others.
            secret: Key of the webhooks' signatures. Must not be [REDACTED].
        """
        return await self._call(
            "PATCH",
            path("/webhooks/{id}", id=id),
            models.WebhookSubscription,
            body={
                "if_unchanged_since": if_unchanged_since,
                "url": url,
                "events": events,
                "secret": secret,
            },
            repeatable=True,
        )

    async def unsubscribe(self, id: str) -> None:
        """Delete a webhook subscription. Undelivered webhooks are dropped.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "DELETE",
            path("/webhooks/{id}", id=id),
            None,
            repeatable=True,
        )

    def subscription_deliveries(
        self,
        id: str,
        *,
        event_type: models.WebhookEvent | None = None,
        delivered: bool | None = None,
        error_class: models.DeliveryAttemptErrorClass | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.DeliverySummary]:
        """List deliveries to a webhook subscription, newest first.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            path("/webhooks/{id}/deliveries", id=id),
            models.DeliverySummary,
            query={
                "event_type": event_type,
                "delivered": delivered,
                "error_class": error_class,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def outbox(self, *, limit: int | None = None) -> builtins.list[models.OutboxEntry]:
        """List undelivered webhooks, oldest first.

        For the root key only. Unknown parameters are refused.

        Args:
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
        """
        return await self._call(
            "GET",
            "/webhooks/outbox",
            builtins.list[models.OutboxEntry],
            query={
                "limit": limit,
            },
            repeatable=True,
        )

    async def redeliver(self, id: str) -> models.Redelivered:
        """Deliver a webhook now; the response reports success or failure.

        For the root key only.
        """
        return await self._call(
            "POST",
            path("/webhooks/outbox/{id}/redeliver", id=id),
            models.Redelivered,
        )

    async def redeliver_preview(self, id: str) -> models.RedeliverPreview:
        """Get the body that a redelivery would send.

        For the root key only.
        """
        return await self._call(
            "GET",
            path("/webhooks/outbox/{id}/redeliver-preview", id=id),
            models.RedeliverPreview,
            repeatable=True,
        )

    async def discard(self, id: str) -> None:
        """Drop an undelivered webhook.

        For the root key only.
        """
        return await self._call(
            "DELETE",
            path("/webhooks/outbox/{id}", id=id),
            None,
            repeatable=True,
        )

    def deliveries(
        self,
        *,
        url: str | None = None,
        event_type: models.WebhookEvent | None = None,
        delivered: bool | None = None,
        error_class: models.DeliveryAttemptErrorClass | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.DeliverySummary]:
        """List deliveries, newest first.

        For the root key only. Unknown parameters are refused.

        Args:
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/webhooks/deliveries",
            models.DeliverySummary,
            query={
                "url": url,
                "event_type": event_type,
                "delivered": delivered,
                "error_class": error_class,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def delivery(self, delivery_id: str) -> builtins.list[models.DeliveryAttempt]:
        """List the attempts of one delivery, oldest first.

        For the root key only.
        """
        return await self._call(
            "GET",
            path("/webhooks/deliveries/{delivery_id}", delivery_id=delivery_id),
            builtins.list[models.DeliveryAttempt],
            repeatable=True,
        )


class AsyncTriggersOperations(Resource):
    """The operations `triggers.*`."""

    async def create(
        self,
        *,
        slug: str,
        tenant_id: str | None = None,
        sequence_name: str | None = None,
        publish: models.TriggerPublish | JsonObject | None = None,
        verify: models.TriggerVerify | JsonObject | None = None,
        version: int | None = None,
        namespace: str | None = None,
        trigger_type: models.TriggerType | None = None,
        secret: str | None = None,
        config: JsonObject | None = None,
        enabled: bool | None = None,
    ) -> models.Trigger:
        """Create a trigger, which starts instances or publishes events from outside.

        For the root key and for keys with the capability operator.

        Args:
            slug: Part of the address, unique on the server: letters, digits, dots, _, ~ and
                -. Must not be . or ..
            tenant_id: Must equal the header x-tenant-id, if sent. Must not be . or .., or
                begin or end with spaces or tabs.
            sequence_name: Name of the sequence, resolved at each fire. Exactly one of
                sequence_name and publish.
            publish: Publishes an event instead.
            verify: Of webhook triggers, instead of secret: how requests are verified.
            version: Pins this version. Default: as for an instance created by name.
            namespace: Default: "default".
            trigger_type: webhook: a signed request to /webhooks/{slug}. event: every event
                with a given name. Default: "webhook".
            secret: Authenticates callers. Never returned. Must not be [REDACTED].
            config: For event triggers: event_name, and optionally correlation_key to filter
                events.
            enabled: Default: True.
        """
        return await self._call(
            "POST",
            "/triggers",
            models.Trigger,
            body={
                "slug": slug,
                "tenant_id": tenant_id or self._tenant,
                "sequence_name": sequence_name,
                "publish": publish,
                "verify": verify,
                "version": version,
                "namespace": namespace,
                "trigger_type": trigger_type,
                "secret": secret,
                "config": config,
                "enabled": enabled,
            },
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        namespace: str | None = None,
        sequence_name: str | None = None,
        trigger_type: models.TriggerType | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Trigger]:
        """List triggers of a tenant, oldest first.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            trigger_type: webhook: a signed request to /webhooks/{slug}. event: every event
                with a given name.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/triggers",
            models.Trigger,
            query={
                "tenant_id": tenant_id,
                "namespace": namespace,
                "sequence_name": sequence_name,
                "trigger_type": trigger_type,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def get(self, slug: str) -> models.Trigger:
        """Get a trigger.

        For the root key and for keys with the capability operator or auditor.
        """
        return await self._call(
            "GET",
            path("/triggers/{slug}", slug=slug),
            models.Trigger,
            repeatable=True,
        )

    async def update(
        self,
        slug: str,
        *,
        if_unchanged_since: datetime | str | Null | None = None,
        sequence_name: str | Null | None = None,
        publish: models.TriggerPublish | JsonObject | Null | None = None,
        verify: models.TriggerVerify | JsonObject | Null | None = None,
        version: int | Null | None = None,
        secret: str | Null | None = None,
        config: JsonObject | Null | None = None,
        enabled: bool | Null | None = None,
    ) -> models.Trigger:
        """Change a trigger.

        For the root key and for keys with the capability operator.

        Args:
            if_unchanged_since: The updated_at that was read: 409 if it has changed.
            sequence_name: Name of the sequence, resolved at each fire. Exactly one of
                sequence_name and publish.
            publish: Publishes an event instead.
            verify: Of webhook triggers, instead of secret: how requests are verified.
            secret: Authenticates callers. Never returned. Must not be [REDACTED].
            config: For event triggers: event_name, and optionally correlation_key to filter
                events.
        """
        return await self._call(
            "PATCH",
            path("/triggers/{slug}", slug=slug),
            models.Trigger,
            body={
                "if_unchanged_since": if_unchanged_since,
                "sequence_name": sequence_name,
                "publish": publish,
                "verify": verify,
                "version": version,
                "secret": secret,
                "config": config,
                "enabled": enabled,
            },
            repeatable=True,
        )

    async def delete(self, slug: str) -> None:
        """Delete a trigger. Its instances continue.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "DELETE",
            path("/triggers/{slug}", slug=slug),
            None,
            repeatable=True,
        )

    async def fire(self, slug: str, body: JsonObject | None = None) -> models.TriggerFired:
        """Start an instance with the body as its context.data, or publish the event.

        For the root key and for keys with the capability operator.
        """
        return await self._call(
            "POST",
            path("/triggers/{slug}/fire", slug=slug),
            models.TriggerFired,
            body=body,
        )

    async def receive(self, id: str, body: JsonObject) -> models.WebhookTaken:
        """Start an instance or publish an event with a verified request.

        Open to everyone.
        """
        return await self._call(
            "POST",
            path("/webhooks/{id}", id=id),
            models.WebhookTaken,
            body=body,
        )


class AsyncEventsOperations(Resource):
    """The operations `events.*`."""

    async def send(
        self,
        *,
        event_name: str,
        producer_event_id: str,
        tenant_id: str | None = None,
        correlation_key: str | None = None,
        payload: Any = None,
        ttl_seconds: int | None = None,
    ) -> models.EventReceipt:
        """Send an event to all steps that wait for it, or else to the first that will.

        For the root key and for keys with the capability operator or starter or events.

        Args:
            producer_event_id: Producer's id: a repeated id is a duplicate.
            tenant_id: Must equal the header x-tenant-id, if sent. Must not be . or .., or
                begin or end with spaces or tabs.
            correlation_key: Matches steps that wait for the name and this key.
            payload: Becomes the output of the steps.
            ttl_seconds: Seconds for which a later wait can match the event. Default: 86400.
        """
        return await self._call(
            "POST",
            "/events",
            models.EventReceipt,
            body={
                "tenant_id": tenant_id,
                "event_name": event_name,
                "producer_event_id": producer_event_id,
                "correlation_key": correlation_key,
                "payload": payload,
                "ttl_seconds": ttl_seconds,
            },
            keyed=Keyed("producer_event_id"),
        )

    async def send_batch(
        self,
        *,
        events: Sequence[models.SendEvent | JsonObject],
    ) -> models.EventReceipts:
        """Send up to 100 events; none is sent unless all are valid.

        For the root key and for keys with the capability operator or starter or events.
        """
        return await self._call(
            "POST",
            "/events/batch",
            models.EventReceipts,
            body={
                "events": events,
            },
            keyed=Keyed("producer_event_id", "events"),
        )

    def list(
        self,
        *,
        tenant_id: str | None = None,
        status: models.EventDetailsStatus | None = None,
        event_name: str | None = None,
        correlation_key: str | None = None,
        producer_event_id: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        offset: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.StoredEvent]:
        """List events, newest first.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            created_after: Only events created after this time.
            created_before: Only events created before this time.
            offset: Number of rows to skip. Default: 0.
            limit: Maximum number of rows. Larger values are lowered to 1000. Default: 100.
            cursor: Position after which the list continues. From the header x-next-cursor of
                the previous page; instead of an offset.
        """
        return self._pages(
            "GET",
            "/events",
            models.StoredEvent,
            query={
                "tenant_id": tenant_id,
                "status": status,
                "event_name": event_name,
                "correlation_key": correlation_key,
                "producer_event_id": producer_event_id,
                "created_after": created_after,
                "created_before": created_before,
                "offset": offset,
                "limit": limit,
                "cursor": cursor,
            },
            repeatable=True,
        )

    async def get(self, id: str) -> models.EventDetails:
        """Get an event with its consumers.

        For the root key and for keys with the capability operator or auditor.
        """
        return await self._call(
            "GET",
            path("/events/{id}", id=id),
            models.EventDetails,
            repeatable=True,
        )


class AsyncChangesOperations(Resource):
    """The operations `changes.*`."""

    def list(
        self,
        *,
        tenant_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> AsyncPages[models.AuditEntry]:
        """List changes of instances of a tenant, oldest first.

        For the root key and for keys with the capability operator or auditor. The header
        x-tenant-id may be left out. Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            cursor: Position after which the list continues. Cursor of an earlier response;
                exclusive. Default: the oldest entry.
            limit: Maximum number of rows. Larger values are lowered to 500. Default: 100.
        """
        return self._pages(
            "GET",
            "/changes",
            models.AuditEntry,
            member="changes",
            query={
                "tenant_id": tenant_id,
                "cursor": cursor,
                "limit": limit,
            },
            repeatable=True,
        )


class AsyncSearchOperations(Resource):
    """The operations `search.*`."""

    async def list(
        self,
        *,
        q: str,
        tenant_id: str | None = None,
        namespace: str | None = None,
        limit: int | None = None,
    ) -> builtins.list[models.SearchHit]:
        """Find instances by id, idempotency key, metadata or searchable data, and sequences by
        name; best first.

        For the root key and for keys with the capability operator or auditor or starter.
        Unknown parameters are refused.

        Args:
            q: An id or at least its first 8 characters, an idempotency key, a value or its
                start, or a part of the name of a sequence.
            tenant_id: The header x-tenant-id overrides it. Without any tenant only ids are
                searched.
            limit: Maximum number of rows. Default: 20.
        """
        return await self._call(
            "GET",
            "/search",
            builtins.list[models.SearchHit],
            query={
                "q": q,
                "tenant_id": tenant_id,
                "namespace": namespace,
                "limit": limit,
            },
            repeatable=True,
        )


class AsyncQueuesOperations(Resource):
    """The operations `queues.*`."""

    async def list(
        self,
        *,
        tenant_id: str | None = None,
        alive_within_secs: int | None = None,
    ) -> models.Queues:
        """Count open tasks and workers by handler and queue.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            alive_within_secs: Workers seen within this time count as alive. Default: 60.
        """
        return await self._call(
            "GET",
            "/queues",
            models.Queues,
            query={
                "tenant_id": tenant_id,
                "alive_within_secs": alive_within_secs,
            },
            repeatable=True,
        )

    async def series(
        self,
        *,
        handler: str,
        tenant_id: str | None = None,
        queue: str | None = None,
        since: datetime | str | None = None,
        step: int | None = None,
    ) -> models.QueueSeries:
        """Count tasks of a queue that came, were claimed and ended over time.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            queue: Default: tasks without a queue.
            since: Default: an hour ago. At most seven days ago.
            step: Length of an interval in seconds. Default: 60.
        """
        return await self._call(
            "GET",
            "/queues/series",
            models.QueueSeries,
            query={
                "tenant_id": tenant_id,
                "handler": handler,
                "queue": queue,
                "since": since,
                "step": step,
            },
            repeatable=True,
        )


class AsyncActivityOperations(Resource):
    """The operations `activity.*`."""

    async def get(
        self,
        *,
        tenant_id: str | None = None,
        since: datetime | str | None = None,
        step: int | None = None,
    ) -> models.Activity:
        """Count created and finished instances over time.

        For the root key and for keys with the capability operator or auditor. Unknown
        parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
            since: Default: an hour ago. At most seven days ago.
            step: Length of an interval in seconds. Default: 60.
        """
        return await self._call(
            "GET",
            "/activity",
            models.Activity,
            query={
                "tenant_id": tenant_id,
                "since": since,
                "step": step,
            },
            repeatable=True,
        )


class AsyncOperations(Resource):
    """All operations: `client.<resource>.<operation>(...)`."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self.actions = AsyncActionsOperations(caller)
        self.activity = AsyncActivityOperations(caller)
        self.api_keys = AsyncApiKeysOperations(caller)
        self.approvals = AsyncApprovalsOperations(caller)
        self.bulk_jobs = AsyncBulkJobsOperations(caller)
        self.capsules = AsyncCapsulesOperations(caller)
        self.cells = AsyncCellsOperations(caller)
        self.changes = AsyncChangesOperations(caller)
        self.continuity = AsyncContinuityOperations(caller)
        self.credentials = AsyncCredentialsOperations(caller)
        self.cron = AsyncCronOperations(caller)
        self.docs = AsyncDocsOperations(caller)
        self.events = AsyncEventsOperations(caller)
        self.handoffs = AsyncHandoffsOperations(caller)
        self.health = AsyncHealthOperations(caller)
        self.instances = AsyncInstancesOperations(caller)
        self.logs = AsyncLogsOperations(caller)
        self.migrations = AsyncMigrationsOperations(caller)
        self.pending_starts = AsyncPendingStartsOperations(caller)
        self.queues = AsyncQueuesOperations(caller)
        self.rate_limits = AsyncRateLimitsOperations(caller)
        self.releases = AsyncReleasesOperations(caller)
        self.runtimes = AsyncRuntimesOperations(caller)
        self.search = AsyncSearchOperations(caller)
        self.sequences = AsyncSequencesOperations(caller)
        self.tenant_limits = AsyncTenantLimitsOperations(caller)
        self.tenants = AsyncTenantsOperations(caller)
        self.triggers = AsyncTriggersOperations(caller)
        self.webhooks = AsyncWebhooksOperations(caller)
        self.worker_endpoints = AsyncWorkerEndpointsOperations(caller)
        self.workers = AsyncWorkersOperations(caller)

    async def info(self) -> models.Info:
        """Get the versions of the server and of its schemas.

        Open to everyone. Served at the root as well: /info.
        """
        return await self._call(
            "GET",
            "/info",
            models.Info,
            repeatable=True,
        )

    async def metrics(self) -> str:
        """Get the metrics in the text format of Prometheus.

        Text format version 0.0.4. For the root key and for keys with the capability operator
        or auditor. Served at the root as well: /metrics.
        """
        return await self._call(
            "GET",
            "/metrics",
            str,
            repeatable=True,
        )

    async def handlers(self, *, tenant_id: str | None = None) -> models.HandlerNames:
        """List built-in handlers and those of workers.

        For the root key and for keys with the capability operator or worker or auditor.
        Unknown parameters are refused.

        Args:
            tenant_id: The header x-tenant-id overrides it.
        """
        return await self._call(
            "GET",
            "/handlers",
            models.HandlerNames,
            query={
                "tenant_id": tenant_id,
            },
            repeatable=True,
        )

    async def whoami(self) -> models.WhoAmI:
        """Get the tenant and capabilities of the request's key.

        For the root key and for keys with the capability operator or worker or device or
        publisher or approver or auditor or starter or events or secrets.
        """
        return await self._call(
            "GET",
            "/whoami",
            models.WhoAmI,
            repeatable=True,
        )
