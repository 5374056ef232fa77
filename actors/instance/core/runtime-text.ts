/** The section `runtime` of a context as its column has it, which is shorter than what it says. Pure. */

import { type JsonObject, objectText } from '../../../src/base/json.js';

/** What an instance has whose current step was not retried, in the order in which readers get it. */
const USUAL = 6;

/**
 * The usual runtime is `[started_at, current_step, current_step_started_at, total_steps_executed]`, with 0 for a time that
 * is that of the creation.
 */
export function storedRuntime(id: string, created_at: string, runtime: JsonObject): string {
  const { started_at, current_step, current_step_started_at: since } = runtime;
  const { total_steps_executed: total } = runtime;
  const isUsual =
    runtime.instance_id === id &&
    runtime.attempt === 0 &&
    typeof started_at === 'string' &&
    typeof current_step === 'string' &&
    typeof since === 'string' &&
    typeof total === 'number' &&
    Object.keys(runtime).length === USUAL;
  if (!isUsual) return objectText(runtime);
  // Imported runtimes may have any text as a time.
  const stored = (time: string) => (time === created_at ? 0 : time);
  return JSON.stringify([stored(started_at), current_step, stored(since), total]);
}

/** The whole text of a stored runtime. */
export function runtimeText(
  id: string,
  { runtime, created_at }: { readonly runtime: string; readonly created_at: string },
): string {
  if (!runtime.startsWith('[')) return spelledOut(id, runtime, created_at);
  const [started_at, current_step, since, total_steps_executed] = JSON.parse(runtime);
  const timeOf = (stored: string | 0) => (stored === 0 ? created_at : stored);
  return JSON.stringify({
    instance_id: id,
    started_at: timeOf(started_at),
    current_step,
    attempt: 0,
    current_step_started_at: timeOf(since),
    total_steps_executed,
  });
}

/** Rows of engines up to migration 0057: without the id of a started instance, with which it begins, and 0 as above. */
function spelledOut(id: string, runtime: string, created_at: string): string {
  const isShort = runtime.startsWith('{"started_at":') && !runtime.includes('"instance_id":');
  if (!isShort) return runtime;
  // In a string the quotation mark would be escaped.
  const text = runtime.replaceAll('started_at":0', `started_at":"${created_at}"`);
  return `{"instance_id":"${id}",${text.slice(1)}`;
}
