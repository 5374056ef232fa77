/** The event that a trigger publishes: its templates, rendered with the request or the event that fires it. Pure. */

import { NAME_LENGTH_MAX } from '../../../schema/common.js';
import type { ReceivedEvent } from '../../../schema/event.js';
import { PAYLOAD_LENGTH_MAX, type TriggerPublish } from '../../../schema/trigger-parts.js';
import { EngineError } from '../../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../../src/base/json.js';
import { TRIGGER_ID_PREFIX } from '../../../src/core/creation-key.js';
import type { Scope } from '../../../src/core/expression/scope.js';
import {
  compileKey,
  type KeyTemplate,
  keyTemplateProblem,
  renderKey,
} from '../../../src/core/key-params.js';
import { type Parsed, refused } from '../../../src/core/parsed.js';
import { rootScope, templateProblem } from '../../../src/core/root-templates.js';
import { compileTemplate, renderTemplate, type Template } from '../../../src/core/template.js';

/** What the templates may read. */
export interface Sources {
  readonly body: JsonValue;
  readonly headers: JsonObject;
}

const ROOTS = ['body', 'headers'] as const satisfies readonly (keyof Sources)[];

/** What is wrong with the templates, beginning with the member. */
export function publishProblem(publish: TriggerPublish): string | undefined {
  const length = JSON.stringify(publish.payload ?? null).length;
  if (length > PAYLOAD_LENGTH_MAX) {
    return `publish.payload has ${length} characters; the limit is ${PAYLOAD_LENGTH_MAX}`;
  }
  const problem = templateProblem({ ...publish } as JsonObject, ROOTS, 'publish');
  if (problem !== undefined) return problem;
  const { event, key, id } = compilePublish(publish);
  if (id?.text.startsWith(TRIGGER_ID_PREFIX)) return OWN_ID;
  return (
    keyTemplateProblem(event, NAME_LENGTH_MAX) ??
    (key && keyTemplateProblem(key)) ??
    (id && keyTemplateProblem(id))
  );
}

const OWN_ID = `publish.id must not come to ${TRIGGER_ID_PREFIX}…`;

/** The templates of a trigger, compiled. */
export interface PublishPlan {
  readonly event: KeyTemplate;
  readonly key: KeyTemplate | undefined;
  readonly id: KeyTemplate | undefined;
  /** Undefined: the body. */
  readonly payload: Template | undefined;
}

export function compilePublish({ event, key, id, payload }: TriggerPublish): PublishPlan {
  const named = (member: string, text: string) => compileKey(`publish.${member}`, text, isKnown);
  return {
    event: named('event', event),
    key: key == null ? undefined : named('key', key),
    id: id == null ? undefined : named('id', id),
    payload: payload === undefined ? undefined : compileTemplate(payload, isKnown),
  };
}

const isKnown = (word: string) => (ROOTS as readonly string[]).includes(word);

/** Twice the largest body of a request: these templates are rendered on a thread that serves other tenants, too. */
const SIZE_MAX = 2 * 1024 * 1024;

/** @param id of the event unless the trigger has a template for it @throws EngineError 422 names the member */
export function publishedEvent(plan: PublishPlan, sources: Sources, id: string): ReceivedEvent {
  const scope = rootScope({ ...sources });
  const named = (key: KeyTemplate, max?: number) => usable(renderKey(key, scope, max, SIZE_MAX));
  return {
    event_name: named(plan.event, NAME_LENGTH_MAX),
    correlation_key: plan.key === undefined ? null : named(plan.key),
    producer_event_id: plan.id === undefined ? id : ownId(named(plan.id)),
    payload: plan.payload === undefined ? sources.body : payloadOf(plan.payload, scope),
  };
}

function payloadOf(payload: Template, scope: Scope): JsonValue {
  const rendered = renderTemplate(payload, scope, SIZE_MAX);
  return usable(rendered.ok ? rendered : refused(`publish.payload: ${rendered.message}`));
}

/** The sender must not choose the id of another trigger's delivery. @throws EngineError 422 */
function ownId(id: string): string {
  if (!id.startsWith(TRIGGER_ID_PREFIX)) return id;
  return usable(refused(OWN_ID));
}

/** @throws EngineError 422 */
function usable<T>(rendered: Parsed<T>): T {
  if (rendered.ok) return rendered.value;
  throw new EngineError('ENG_TEMPLATE', `unprocessable: ${rendered.message}`);
}
