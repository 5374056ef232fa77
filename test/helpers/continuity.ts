/**
 * Executions and their handoffs as a tenant sees them. Everything that a body needs is filled in;
 * a method that takes no status requires the success status.
 */

import { randomUUID } from 'node:crypto';
import type { Execution, Location, ProvenanceEntry } from '../../schema/continuity.js';
import type {
  Handoff,
  HandoffPreview,
  PlacementDecision,
  RuntimeCapabilities,
} from '../../schema/handoff.js';
import { eventually, type Json, step, type Tenant } from './api.js';
import { expectStatus, type Reply } from './client.js';

export interface Continuity {
  /** An instance that is paused before its first step; resolves with its id. */
  paused(blocks?: readonly Json[]): Promise<string>;
  /** Registers a live server that offers nothing; resolves with what is stored. */
  runtime(more?: Json): Promise<RuntimeCapabilities>;
  /** Enrols the instance, of a new runtime's unless one is named. */
  enrol(instanceId: string, runtimeId?: string): Promise<Execution>;
  execution(id: string): Promise<Execution>;
  locations(id: string): Promise<Location[]>;
  provenance(id: string): Promise<ProvenanceEntry[]>;
  place(id: string, terms?: Json): Promise<PlacementDecision>;
  preview(id: string, destination: string, terms?: Json): Promise<HandoffPreview>;
  /** The body of a creation that agrees with the preview, made under the same terms. */
  creation(preview: HandoffPreview, terms?: Json): Json;
  /** Previews and creates. */
  handoff(id: string, destination: string, terms?: Json): Promise<Handoff>;
  getHandoff(id: string): Promise<Handoff>;
  /** One of the moves, such as `reject`. */
  act<T = Handoff>(handoff: string, move: string, body?: Json): Promise<Reply<T>>;
}

const START_AFTER_MS = 3_000;

/** A start that comes later than a pause, and soon enough for what is resumed. */
export const soon = () => new Date(Date.now() + START_AFTER_MS).toISOString();

/** What a runtime says of itself: live for some minutes. */
export function capabilities(more: Json = {}): Json {
  const now = Date.now();
  return {
    runtime_id: randomUUID(),
    kind: 'server',
    trust: 'registered',
    observed_at: new Date(now).toISOString(),
    expires_at: new Date(now + 240_000).toISOString(),
    ...more,
  };
}

export function continuityOf(tenant: Tenant): Continuity {
  const read = async <T>(path: string) => expectStatus(await tenant.get<T>(path), 200);
  const execution = '/continuity/executions';
  const self: Continuity = {
    // On a busy machine it may have ended before it is paused: then another one is.
    paused: async (blocks = [step('a', 'noop'), step('b', 'noop')]) => {
      const sequence = await tenant.sequence(blocks);
      return eventually(async () => {
        const id = await tenant.create(sequence, { next_fire_at: soon() });
        await tenant.move(id, 'paused');
        return id;
      });
    },
    runtime: async (more) => {
      const body = { capabilities: capabilities(more) };
      return expectStatus(await tenant.post<RuntimeCapabilities>('/runtimes/register', body), 201);
    },
    enrol: async (instance_id, runtime_id = randomUUID()) =>
      expectStatus(await tenant.post<Execution>(execution, { instance_id, runtime_id }), 201),
    execution: (id) => read(`${execution}/${id}`),
    locations: (id) => read(`${execution}/${id}/locations`),
    provenance: (id) => read(`${execution}/${id}/provenance`),
    place: async (id, terms = {}) => {
      const path = `${execution}/${id}/placement`;
      return expectStatus(await tenant.post<PlacementDecision>(path, terms), 200);
    },
    preview: async (id, destination_runtime_id, terms = {}) => {
      const path = `${execution}/${id}/handoff-preview`;
      const body = { destination_runtime_id, ...terms };
      return expectStatus(await tenant.post<HandoffPreview>(path, body), 200);
    },
    creation: (preview, terms = {}) => ({
      placement_decision_id: preview.placement_decision_id,
      preview_sha256: preview.preview_sha256,
      destination_runtime_id: preview.destination_runtime_id,
      ...terms,
    }),
    handoff: async (id, destination, terms = {}) => {
      const body = self.creation(await self.preview(id, destination, terms), terms);
      return expectStatus(await tenant.post<Handoff>('/continuity/handoffs', body), 201);
    },
    getHandoff: (id) => read(`/continuity/handoffs/${id}`),
    act: (handoff, move, body = {}) => tenant.post(`/continuity/handoffs/${handoff}/${move}`, body),
  };
  return self;
}
